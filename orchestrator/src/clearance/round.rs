use neuron::graph::Graph;

use crate::package::{Claims, Key};

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

/// Where a package starts, in the graph of a round.
pub(super) fn start(place: usize) -> usize {
    place * 2
}

/// Where a package ends: an orchestrator's only after all that it assigned.
pub(super) fn end(round: &Round<'_>, place: usize) -> usize {
    place * 2 + usize::from(round.packages[place].nests)
}

/// The order among packages that follows from one being assigned by another; edges come later. What runs comes first, so
/// that it is first in every order.
pub(super) fn graph(round: &Round<'_>) -> Graph<usize> {
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
