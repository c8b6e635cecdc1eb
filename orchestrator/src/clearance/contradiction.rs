//! Packages that wait for each other.

use neuron::graph::Graph;

use super::round::{Round, Standing, end, start};
use crate::ruling::Ruling;

/// Adds the edges of a round to its graph. An edge that would close a cycle is left out, and every package on the
/// smallest such cycle is denied, for each waits for the others. Gives which packages those are.
pub(super) fn find(round: &Round<'_>, graph: &mut Graph<usize>, rulings: &mut Vec<Ruling>) -> Vec<bool> {
    let mut denied = vec![false; round.packages.len()];
    for &(first, second) in &round.edges {
        let Err(cycle) = graph.add_edge(end(round, first), start(second)) else {
            continue;
        };
        let mut places: Vec<usize> = cycle.nodes().iter().map(|node| node / 2).collect();
        places.dedup();
        if places.len() > 1 && places.first() == places.last() {
            places.pop();
        }
        let because = describe(round, &places);
        for (at, &place) in places.iter().enumerate() {
            let package = &round.packages[place];
            if package.standing == Standing::Running || std::mem::replace(&mut denied[place], true) {
                continue;
            }
            let before = places[(at + places.len() - 1) % places.len()];
            rulings.push(Ruling::Denied {
                package: package.key.clone(),
                because: because.clone(),
                with: (before != place).then(|| round.packages[before].key.clone()),
            });
        }
    }
    denied
}

fn describe(round: &Round<'_>, places: &[usize]) -> String {
    let name = |place: &usize| {
        let package = &round.packages[*place];
        let key: String = package.key.chars().take(8).collect();
        let occurrence = package.key.rsplit_once('#').map_or("", |(_, occurrence)| occurrence);
        format!("{} {key}#{occurrence}", package.name)
    };
    let ring: Vec<String> = places.iter().chain(places.first()).map(name).collect();
    format!(
        "these packages wait for each other: {}; remove one of the edges",
        ring.join(" → ")
    )
}
