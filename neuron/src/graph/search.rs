//! Whether one node leads to another, asked from both ends at once.

use std::collections::BTreeSet;

use super::line::Line;

/// What a search between two nodes found.
pub(super) enum Found {
    /// There is a way.
    Way,
    /// There is none; these are all nodes between the two that the lower one leads to, itself included.
    Below(Vec<usize>),
    /// There is none; these are all nodes between the two that lead to the higher one, itself included.
    Above(Vec<usize>),
}

/// Looks from `low` upwards and from `high` downwards, an edge at a time, until the sides meet or one is exhausted.
/// Only nodes between the two on the line can lie on a way, so nothing outside is looked at.
pub(super) fn between(low: usize, high: usize, line: &Line, after: &[Vec<usize>], before: &[Vec<usize>]) -> Found {
    let (floor, ceiling) = (line.place(low), line.place(high));
    let inside = |node: usize| (floor..=ceiling).contains(&line.place(node));
    let (mut up, mut down) = (Side::new(low), Side::new(high));
    loop {
        match up.step(after, inside) {
            Step::Met(node) if down.known.contains(&node) => return Found::Way,
            Step::Exhausted => return Found::Below(up.queue),
            Step::Met(_) | Step::Nothing => {}
        }
        match down.step(before, inside) {
            Step::Met(node) if up.known.contains(&node) => return Found::Way,
            Step::Exhausted => return Found::Above(down.queue),
            Step::Met(_) | Step::Nothing => {}
        }
    }
}

/// One side of a search, advanced by one edge at a time so that neither side pays for the other's size.
struct Side {
    queue: Vec<usize>,
    known: BTreeSet<usize>,
    node: usize,
    edge: usize,
}

enum Step {
    Met(usize),
    Nothing,
    Exhausted,
}

impl Side {
    fn new(start: usize) -> Self {
        Self {
            queue: vec![start],
            known: BTreeSet::from([start]),
            node: 0,
            edge: 0,
        }
    }

    fn step(&mut self, edges: &[Vec<usize>], inside: impl Fn(usize) -> bool) -> Step {
        let Some(&node) = self.queue.get(self.node) else {
            return Step::Exhausted;
        };
        let Some(&met) = edges[node].get(self.edge) else {
            (self.node, self.edge) = (self.node + 1, 0);
            return Step::Nothing;
        };
        self.edge += 1;
        if !inside(met) || !self.known.insert(met) {
            return Step::Nothing;
        }
        self.queue.push(met);
        Step::Met(met)
    }
}
