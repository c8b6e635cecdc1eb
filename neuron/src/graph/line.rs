//! All nodes on one line that agrees with every edge, so that most edges are known to be sound without a search.

use std::collections::BTreeMap;

/// Distance between neighbours on a fresh line: room for moves between them before all places are given anew.
const SPACING: i64 = 1 << 32;

/// The nodes `0..n`, each at a place of its own.
#[derive(Clone, Default)]
pub(super) struct Line {
    places: Vec<i64>,
    nodes: BTreeMap<i64, usize>,
}

impl Line {
    /// Puts the next node at the end.
    pub(super) fn push(&mut self) -> usize {
        let node = self.places.len();
        let place = self.end().unwrap_or_else(|| {
            self.respace();
            self.end().unwrap_or_default()
        });
        self.places.push(place);
        self.nodes.insert(place, node);
        node
    }

    /// A node's place: lower is earlier.
    pub(super) fn place(&self, node: usize) -> i64 {
        self.places[node]
    }

    /// Moves `nodes`, in their present order, directly behind `anchor`.
    pub(super) fn move_behind(&mut self, nodes: Vec<usize>, anchor: usize) {
        self.shift(nodes, |line, count| {
            let low = line.places[anchor];
            let next = line.nodes.range(low + 1..).next();
            (low, next.map_or(low.saturating_add(room(count)), |(&place, _)| place))
        });
    }

    /// Moves `nodes`, in their present order, directly before `anchor`.
    pub(super) fn move_before(&mut self, nodes: Vec<usize>, anchor: usize) {
        self.shift(nodes, |line, count| {
            let high = line.places[anchor];
            let last = line.nodes.range(..high).next_back();
            (last.map_or(high.saturating_sub(room(count)), |(&place, _)| place), high)
        });
    }

    /// Spreads `nodes` over the open interval that `gap` finds, after giving all places anew if it is too narrow.
    fn shift(&mut self, mut nodes: Vec<usize>, gap: impl Fn(&Self, i64) -> (i64, i64)) {
        nodes.sort_unstable_by_key(|&node| self.places[node]);
        let count = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
        let (mut low, mut high) = gap(self, count);
        if (high - low) / (count + 1) == 0 {
            self.respace();
            (low, high) = gap(self, count);
        }
        for &node in &nodes {
            self.nodes.remove(&self.places[node]);
        }
        let step = (high - low) / (count + 1);
        for (nth, node) in (1..).zip(nodes) {
            self.places[node] = low + nth * step;
            self.nodes.insert(self.places[node], node);
        }
    }

    fn end(&self) -> Option<i64> {
        self.nodes
            .last_key_value()
            .map_or(Some(0), |(last, _)| last.checked_add(SPACING))
    }

    fn respace(&mut self) {
        let nodes = std::mem::take(&mut self.nodes);
        self.nodes = (0..).map(|nth: i64| nth * SPACING).zip(nodes.into_values()).collect();
        for (&place, &node) in &self.nodes {
            self.places[node] = place;
        }
    }
}

/// Room beyond either end of the line for `count` nodes.
fn room(count: i64) -> i64 {
    count.saturating_add(1).saturating_mul(SPACING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(line: &Line) -> Vec<usize> {
        line.nodes.values().copied().collect()
    }

    #[test]
    fn moved_nodes_keep_their_order_beside_the_anchor() {
        let mut line = Line::default();
        for _ in 0..5 {
            line.push();
        }
        line.move_behind(vec![1, 0], 3);
        assert_eq!(order(&line), [2, 3, 0, 1, 4]);
        line.move_before(vec![4, 1], 2);
        assert_eq!(order(&line), [1, 4, 2, 3, 0]);
    }

    #[test]
    fn a_gap_that_is_used_up_is_made_anew() {
        let mut line = Line::default();
        for _ in 0..200 {
            line.push();
        }
        for node in 2..200 {
            line.move_behind(vec![node], 0);
        }
        let expected: Vec<usize> = [0].into_iter().chain((2..200).rev()).chain([1]).collect();
        assert_eq!(order(&line), expected);
        assert!((0..200).all(|node| line.nodes[&line.place(node)] == node));
    }
}
