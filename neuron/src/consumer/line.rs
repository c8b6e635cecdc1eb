//! Messages that wait for each other: those of one topic, where a consumer keeps the order of topics.

use std::collections::{BTreeSet, HashMap};

use crate::Topic;

/// The lines of all topics; empty where no order is kept.
#[derive(Debug, Default)]
pub(super) struct Lines(HashMap<Topic, Line>);

#[derive(Debug, Default)]
struct Line {
    members: BTreeSet<u64>,
    in_hand: BTreeSet<u64>,
}

impl Lines {
    pub(super) fn join(&mut self, topic: &Topic, pos: u64, in_hand: bool) {
        let line = self.0.entry(topic.clone()).or_default();
        line.members.insert(pos);
        if in_hand {
            line.in_hand.insert(pos);
        }
    }

    pub(super) fn leave(&mut self, topic: &Topic, pos: u64) {
        let Some(line) = self.0.get_mut(topic) else { return };
        line.members.remove(&pos);
        line.in_hand.remove(&pos);
        if line.members.is_empty() {
            self.0.remove(topic);
        }
    }

    /// The first of a topic, unless one of it is in hand.
    pub(super) fn first(&self, topic: &Topic) -> Option<u64> {
        let line = self.0.get(topic)?;
        line.in_hand.is_empty().then(|| line.members.first().copied()).flatten()
    }
}
