//! Clearance: everything declared is laid side by side, and ruled on before any of it moves.
//!
//! Pure, total and deterministic: the same round gives the same rulings, in the same order.

mod amendment;
mod conflict;
mod contradiction;
mod round;

use crate::ruling::Ruling;

pub use amendment::amend;
pub use round::{Laid, Round, Standing};

/// Rules on a round: denials first, then who goes before whom, then who may go.
///
/// ```
/// use orchestrator::{clearance::{Laid, Round, Standing, review}, package::Claims, ruling::Ruling};
///
/// let claims = Claims { owns: ["index".to_string()].into(), ..Claims::default() };
/// let (first, second) = ("a#1".into(), "b#1".into());
/// let laid = |key| Laid {
///     key, name: "writer", claims: &claims, standing: Standing::New, known: true, within: None, nests: false,
/// };
/// let rulings = review(&Round { packages: vec![laid(&first), laid(&second)], edges: vec![] });
/// assert!(matches!(&rulings[0], Ruling::After { package, first, .. } if **package == *"b#1" && **first == *"a#1"));
/// ```
pub fn review(round: &Round<'_>) -> Vec<Ruling> {
    let mut rulings = unknown(round);
    let mut graph = round::graph(round);
    let denied = contradiction::find(round, &mut graph, &mut rulings);
    conflict::settle(round, &denied, &graph, &mut rulings);
    let refused = |place: usize| denied[place] || !round.packages[place].known;
    for (place, package) in round.packages.iter().enumerate() {
        if package.standing == Standing::New && !refused(place) {
            let because = reason(round, &rulings, package);
            let package = package.key.clone();
            rulings.push(Ruling::Go { package, because });
        }
    }
    rulings
}

fn unknown(round: &Round<'_>) -> Vec<Ruling> {
    let strangers = round
        .packages
        .iter()
        .filter(|package| package.standing == Standing::New && !package.known);
    let denials = strangers.map(|package| Ruling::Denied {
        package: package.key.clone(),
        because: format!(
            "`{}` is not registered in this program: link the crate that defines it, or correct the name",
            package.name
        ),
        with: None,
    });
    denials.collect()
}

fn reason(round: &Round<'_>, rulings: &[Ruling], package: &Laid<'_>) -> String {
    let after = |ruling: &&Ruling| matches!(ruling, Ruling::After { package: waits, .. } if waits == package.key);
    let waits = rulings.iter().filter(after).count();
    match (package.claims.is_empty(), waits) {
        (true, _) => "it claims nothing that another package holds".into(),
        (false, 0) => format!("its claims are free among {} packages", round.packages.len()),
        (false, 1) => "its claims are free once the package before it has ended".into(),
        (false, more) => format!("its claims are free once the {more} packages before it have ended"),
    }
}
