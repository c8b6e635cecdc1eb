//! Clearance: everything declared is laid side by side, and ruled on before any of it moves.
//!
//! Pure, total and deterministic: the same round gives the same rulings, in the same order.

mod amendment;
mod conflict;
mod contradiction;

use neuron::graph::Graph;

use crate::{
    package::{Claims, Key},
    ruling::Ruling,
};

pub use amendment::amend;

/// What is laid side by side: every package of a run that has not ended.
#[derive(Clone, Debug, Default)]
pub struct Round<'a> {
    /// The packages, in the order of their assignment.
    pub packages: Vec<Laid<'a>>,
    /// Which package waits for which, both by place, in the order of declaration.
    pub edges: Vec<(usize, usize)>,
}

/// One package of a round.
#[derive(Clone, Debug)]
pub struct Laid<'a> {
    /// Its key.
    pub key: &'a Key,
    /// The agent, plan or orchestrator.
    pub name: &'a str,
    /// What it asks for.
    pub claims: &'a Claims,
    /// How it stands.
    pub standing: Standing,
    /// Whether the program holds the code that executes it.
    pub known: bool,
    /// The orchestrator's package whose body assigned it, by place.
    pub within: Option<usize>,
    /// Whether it is an orchestrator's, which ends only after all that it assigned.
    pub nests: bool,
}

/// How a package of a round stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It asks for a ruling.
    New,
    /// It cannot say yet what it will do: nothing is ruled on it, but on what waits for it.
    Silent,
    /// It was cleared, and waits.
    Cleared,
    /// It runs.
    Running,
}

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
    let mut graph = graph(round);
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

/// Where a package starts, in the graph of a round.
fn start(place: usize) -> usize {
    place * 2
}

/// Where a package ends: an orchestrator's only after all that it assigned.
fn end(round: &Round<'_>, place: usize) -> usize {
    place * 2 + usize::from(round.packages[place].nests)
}

/// The order among packages that follows from one being assigned by another; edges come later. What runs comes first, so
/// that it is first in every order.
fn graph(round: &Round<'_>) -> Graph<usize> {
    let mut graph = Graph::new();
    let places = 0..round.packages.len();
    let runs = |place: &usize| round.packages[*place].standing == Standing::Running;
    let (running, others): (Vec<_>, Vec<_>) = places.partition(runs);
    for place in running.into_iter().chain(others) {
        graph.add_node(start(place));
    }
    for (place, package) in round.packages.iter().enumerate() {
        let mut must = |from, to| {
            // An orchestrator's package is older than what it assigned, so this closes no cycle.
            let _ = graph.add_edge(from, to);
        };
        if package.nests {
            must(start(place), end(round, place));
        }
        if let Some(within) = package.within {
            must(start(within), start(place));
            must(end(round, place), end(round, within));
        }
    }
    graph
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
