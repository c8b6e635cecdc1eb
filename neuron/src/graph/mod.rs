//! A directed graph without cycles: the steps of a plan, and the packages of a run, in the order they may start.

mod line;
mod search;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque},
    fmt,
};

use self::{line::Line, search::Found};
use crate::{Error, ErrorKind};

/// Nodes and edges, where an edge `a → b` says that `b` waits for `a`. It can hold no cycle.
///
/// Everything is deterministic: nodes come in the order they were added, and so does whatever is derived from them.
/// An edge that agrees with the order of the nodes costs constant time, any other a search that stops at the smaller
/// side, so that plans of ten thousand steps are built in near-linear time.
///
/// ```
/// use std::collections::BTreeSet;
/// use neuron::graph::Graph;
///
/// let mut plan = Graph::new();
/// plan.add_edge("fetch", "summarise")?;
/// plan.add_edge("fetch", "count")?;
/// plan.add_edge("summarise", "merge")?;
/// plan.add_edge("count", "merge")?;
///
/// let done = BTreeSet::from(["fetch"]);
/// assert!(plan.runnable(&done).eq(&["summarise", "count"]));
///
/// let refused = plan.add_edge("merge", "fetch").unwrap_err();
/// assert_eq!(refused.to_string(), "a cycle: fetch → summarise → merge → fetch; remove one of its edges");
/// # Ok::<(), neuron::Error>(())
/// ```
#[derive(Clone)]
pub struct Graph<K> {
    index: BTreeMap<K, usize>,
    keys: Vec<K>,
    after: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    /// Every edge leads from an earlier place to a later one.
    line: Line,
}

/// The edge that was refused would have closed this cycle, the smallest one there would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle<K>(Vec<K>);

impl<K: Ord + Clone> Graph<K> {
    /// A graph without nodes.
    pub fn new() -> Self {
        Self {
            index: BTreeMap::new(),
            keys: Vec::new(),
            after: Vec::new(),
            before: Vec::new(),
            line: Line::default(),
        }
    }

    /// Adds a node; gives `false` when it was there already.
    pub fn add_node(&mut self, key: K) -> bool {
        let fresh = !self.index.contains_key(&key);
        self.node(key);
        fresh
    }

    /// Adds the edge `from → to`, and its nodes where they are missing; gives `false` when it was there already.
    ///
    /// # Errors
    /// [`Cycle`], the smallest one that the edge would close; the graph is left as it was.
    pub fn add_edge(&mut self, from: K, to: K) -> Result<bool, Cycle<K>> {
        if from == to {
            return Err(Cycle(vec![from]));
        }
        let (from, to) = (self.node(from), self.node(to));
        if self.has_edge(from, to) {
            return Ok(false);
        }
        if self.line.place(from) > self.line.place(to) {
            match search::between(to, from, &self.line, &self.after, &self.before) {
                Found::Way => return Err(Cycle(self.shortest(to, from).unwrap_or_default())),
                Found::Below(nodes) => self.line.move_behind(nodes, from),
                Found::Above(nodes) => self.line.move_before(nodes, to),
            }
        }
        self.after[from].push(to);
        self.before[to].push(from);
        Ok(true)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether `key` is a node.
    pub fn contains(&self, key: &K) -> bool {
        self.index.contains_key(key)
    }

    /// The nodes, in the order they were added.
    pub fn nodes(&self) -> impl Iterator<Item = &K> {
        self.keys.iter()
    }

    /// The edges, grouped by the node they leave.
    pub fn edges(&self) -> impl Iterator<Item = (&K, &K)> {
        let leaving = move |from: usize| {
            self.after[from]
                .iter()
                .map(move |&to| (&self.keys[from], &self.keys[to]))
        };
        (0..self.keys.len()).flat_map(leaving)
    }

    /// What `key` waits for directly; nothing for a key that is no node.
    pub fn predecessors(&self, key: &K) -> impl Iterator<Item = &K> {
        self.neighbours(&self.before, key)
    }

    /// What waits for `key` directly; nothing for a key that is no node.
    pub fn successors(&self, key: &K) -> impl Iterator<Item = &K> {
        self.neighbours(&self.after, key)
    }

    /// The nodes that are not done while everything they wait for is.
    ///
    /// This looks at the whole graph; a loop asks it once, then [`freed`](Self::freed) after each node that ends.
    pub fn runnable<'a>(&'a self, done: &'a BTreeSet<K>) -> impl Iterator<Item = &'a K> {
        (0..self.keys.len())
            .filter(|&node| self.is_runnable(node, done))
            .map(|node| &self.keys[node])
    }

    /// The nodes that became runnable because `ended`, which is part of `done`, ended last.
    ///
    /// ```
    /// # use std::collections::BTreeSet;
    /// # use neuron::graph::Graph;
    /// let mut graph = Graph::new();
    /// graph.add_edge(1, 3)?;
    /// graph.add_edge(2, 3)?;
    /// assert_eq!(graph.freed(&1, &BTreeSet::from([1])).count(), 0);
    /// assert!(graph.freed(&2, &BTreeSet::from([1, 2])).eq(&[3]));
    /// # Ok::<(), neuron::Error>(())
    /// ```
    pub fn freed<'a>(&'a self, ended: &K, done: &'a BTreeSet<K>) -> impl Iterator<Item = &'a K> {
        let waiting = self.index.get(ended).map_or(&[][..], |&node| &self.after[node]);
        waiting
            .iter()
            .filter(|&&node| self.is_runnable(node, done))
            .map(|&node| &self.keys[node])
    }

    /// All nodes, each after everything it waits for; of those that could come next, the one added first.
    ///
    /// ```
    /// # use neuron::graph::Graph;
    /// let mut graph = Graph::new();
    /// graph.add_edge("roof", "paint")?;
    /// graph.add_edge("walls", "roof")?;
    /// assert!(graph.order().eq(&["walls", "roof", "paint"]));
    /// # Ok::<(), neuron::Error>(())
    /// ```
    pub fn order(&self) -> impl Iterator<Item = &K> {
        let mut open: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let free = (0..open.len()).filter(|&node| open[node] == 0);
        let mut next: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
        std::iter::from_fn(move || {
            let Reverse(node) = next.pop()?;
            for &waiting in &self.after[node] {
                open[waiting] -= 1;
                if open[waiting] == 0 {
                    next.push(Reverse(waiting));
                }
            }
            Some(&self.keys[node])
        })
    }

    /// A shortest way along the edges, both ends included; `None` when there is none or an end is no node.
    pub fn path(&self, from: &K, to: &K) -> Option<Vec<K>> {
        self.shortest(*self.index.get(from)?, *self.index.get(to)?)
    }

    /// Whether `to` waits for `from`, directly or through others. No node waits for itself.
    pub fn reaches(&self, from: &K, to: &K) -> bool {
        let (Some(&from), Some(&to)) = (self.index.get(from), self.index.get(to)) else {
            return false;
        };
        let between = || search::between(from, to, &self.line, &self.after, &self.before);
        self.line.place(from) < self.line.place(to) && matches!(between(), Found::Way)
    }

    fn node(&mut self, key: K) -> usize {
        if let Some(&node) = self.index.get(&key) {
            return node;
        }
        let node = self.line.push();
        self.index.insert(key.clone(), node);
        self.keys.push(key);
        self.after.push(Vec::new());
        self.before.push(Vec::new());
        node
    }

    fn has_edge(&self, from: usize, to: usize) -> bool {
        let (leaving, entering) = (&self.after[from], &self.before[to]);
        if leaving.len() < entering.len() {
            leaving.contains(&to)
        } else {
            entering.contains(&from)
        }
    }

    fn neighbours<'a>(&'a self, lists: &'a [Vec<usize>], key: &K) -> impl Iterator<Item = &'a K> {
        let list = self.index.get(key).map_or(&[][..], |&node| &lists[node]);
        list.iter().map(|&node| &self.keys[node])
    }

    fn is_runnable(&self, node: usize, done: &BTreeSet<K>) -> bool {
        let satisfied = |&cause: &usize| done.contains(&self.keys[cause]);
        !done.contains(&self.keys[node]) && self.before[node].iter().all(satisfied)
    }

    fn shortest(&self, from: usize, to: usize) -> Option<Vec<K>> {
        let mut causes = BTreeMap::from([(from, from)]);
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            if node == to {
                let back = std::iter::successors(Some(to), |node| (*node != from).then(|| causes[node]));
                let mut way: Vec<K> = back.map(|node| self.keys[node].clone()).collect();
                way.reverse();
                return Some(way);
            }
            for &next in &self.after[node] {
                if self.line.place(next) <= self.line.place(to) && !causes.contains_key(&next) {
                    causes.insert(next, node);
                    queue.push_back(next);
                }
            }
        }
        None
    }
}

impl<K: Ord + Clone> Default for Graph<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug> fmt::Debug for Graph<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.keys.iter().zip(&self.after);
        f.debug_map()
            .entries(lines.map(|(key, after)| (key, after.iter().map(|&node| &self.keys[node]).collect::<Vec<_>>())))
            .finish()
    }
}

impl<K> Cycle<K> {
    /// The nodes of the cycle, each once: every one leads to the next, the last to the first.
    pub fn nodes(&self) -> &[K] {
        &self.0
    }
}

impl<K: fmt::Display> fmt::Display for Cycle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cycle: ")?;
        self.0.iter().try_for_each(|node| write!(f, "{node} → "))?;
        self.0.first().map_or(Ok(()), |first| write!(f, "{first}"))?;
        f.write_str("; remove one of its edges")
    }
}

impl<K: fmt::Debug + fmt::Display> std::error::Error for Cycle<K> {}

impl<K: fmt::Display> From<Cycle<K>> for Error {
    fn from(cycle: Cycle<K>) -> Self {
        Self::new(ErrorKind::Misuse, cycle)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Edges that agree with a hidden order of the nodes, in any sequence, so that they close no cycle.
    fn acyclic() -> impl Strategy<Value = Vec<(u8, u8)>> {
        let order = Just((0..24).collect::<Vec<u8>>()).prop_shuffle();
        let edges = prop::collection::vec((0..24_usize, 0..24_usize), 0..90);
        (order, edges).prop_map(|(order, edges)| {
            let ends = edges.into_iter().filter(|(a, b)| a != b);
            ends.map(|(a, b)| (order[a.min(b)], order[a.max(b)])).collect()
        })
    }

    fn graph(edges: &[(u8, u8)]) -> Graph<u8> {
        let mut graph = Graph::new();
        for &(from, to) in edges {
            graph.add_edge(from, to).expect("agrees with one order");
        }
        graph
    }

    /// Whether a non-empty way leads from one node to another, by the plainest means.
    fn leads(edges: &[(u8, u8)], from: u8, to: u8) -> bool {
        let mut known = BTreeSet::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            let next = edges.iter().filter(|(a, _)| *a == node).map(|(_, b)| *b);
            open.extend(next.filter(|b| known.insert(*b)));
        }
        known.contains(&to)
    }

    fn look(graph: &Graph<u8>) -> String {
        format!("{graph:?} {:?}", graph.order().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn a_node_is_runnable_exactly_when_all_it_waits_for_is_done(edges in acyclic()) {
            let graph = graph(&edges);
            let mut done = BTreeSet::new();
            let mut ready: BTreeSet<u8> = graph.runnable(&done).copied().collect();
            while let Some(&node) = ready.iter().next_back() {
                prop_assert!(edges.iter().all(|(from, to)| *to != node || done.contains(from)));
                ready.remove(&node);
                done.insert(node);
                ready.extend(graph.freed(&node, &done));
                prop_assert_eq!(graph.runnable(&done).copied().collect::<BTreeSet<_>>(), ready.clone());
            }
            prop_assert_eq!(done.len(), graph.len());
        }

        #[test]
        fn an_edge_that_closes_a_cycle_is_refused_and_changes_nothing(edges in acyclic(), ends in any::<(u8, u8)>()) {
            let (from, to) = (ends.0 % 24, ends.1 % 24);
            let mut graph = graph(&edges);
            let before = look(&graph);
            let closes = from == to || leads(&edges, to, from);
            match graph.add_edge(from, to) {
                Err(cycle) => {
                    prop_assert!(closes);
                    prop_assert_eq!(look(&graph), before);
                    let nodes = cycle.nodes();
                    let ring = nodes.iter().zip(nodes.iter().cycle().skip(1));
                    prop_assert!(ring.clone().all(|(a, b)| (*a, *b) == (from, to) || edges.contains(&(*a, *b))));
                    prop_assert!(ring.clone().any(|(a, b)| (*a, *b) == (from, to)));
                    prop_assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), nodes.len());
                    prop_assert_eq!(nodes.len(), graph.path(&to, &from).map_or(1, |way| way.len()));
                }
                Ok(fresh) => {
                    prop_assert!(!closes);
                    prop_assert_eq!(fresh, !edges.contains(&(from, to)));
                }
            }
        }

        #[test]
        fn every_node_comes_after_what_it_waits_for(edges in acyclic()) {
            let graph = graph(&edges);
            let order: Vec<u8> = graph.order().copied().collect();
            let place = |node: u8| order.iter().position(|other| *other == node);
            prop_assert!(edges.iter().all(|(from, to)| place(*from) < place(*to)));
            prop_assert_eq!(order.len(), graph.len());
        }

        #[test]
        fn a_node_reaches_exactly_what_a_way_leads_to(edges in acyclic(), from in 0..24_u8, to in 0..24_u8) {
            let graph = graph(&edges);
            prop_assert_eq!(graph.reaches(&from, &to), leads(&edges, from, to));
            let way = graph.path(&from, &to);
            prop_assert_eq!(way.is_some(), leads(&edges, from, to) || (from == to && graph.contains(&from)));
            let way = way.unwrap_or_default();
            prop_assert!(way.windows(2).all(|pair| edges.contains(&(pair[0], pair[1]))));
        }

        #[test]
        fn the_order_does_not_depend_on_the_sequence_of_the_edges(
            (edges, other) in acyclic().prop_flat_map(|edges| (Just(edges.clone()), Just(edges).prop_shuffle())),
        ) {
            let build = |edges: &[(u8, u8)]| {
                let mut graph = Graph::new();
                for node in 0..24 {
                    graph.add_node(node);
                }
                for &(from, to) in edges {
                    assert!(graph.add_edge(from, to).is_ok());
                }
                graph.order().copied().collect::<Vec<u8>>()
            };
            prop_assert_eq!(build(&edges), build(&other));
        }
    }

    #[test]
    fn an_edge_to_itself_is_the_smallest_cycle_and_adds_no_node() {
        let mut graph = Graph::new();
        assert_eq!(
            graph.add_edge(7, 7).map_err(|cycle| cycle.nodes().to_vec()),
            Err(vec![7])
        );
        assert!(graph.is_empty());
    }

    #[test]
    fn ten_thousand_steps_are_ordered_however_they_are_declared() {
        let last = 10_000_u32;
        let rising: Vec<(u32, u32)> = (0..last).map(|step| (step, step + 1)).collect();
        let falling = rising.iter().rev().copied().collect();
        let turned = rising.iter().map(|&(from, to)| (last - from, last - to)).collect();
        let wide = (1..last).flat_map(|step| [(0, step), (step, last)]).collect();
        let stride = (0..last)
            .map(|nth| rising[(nth as usize * 7919) % rising.len()])
            .collect();
        for edges in [rising.clone(), falling, turned, wide, stride] {
            let mut graph = Graph::new();
            for &(from, to) in &edges {
                graph.add_edge(from, to).expect("no cycle");
            }
            let place: BTreeMap<u32, usize> = graph.order().copied().zip(0..).collect();
            assert_eq!(place.len(), 10_001);
            assert!(edges.iter().all(|(from, to)| place[from] < place[to]));
        }
    }
}
