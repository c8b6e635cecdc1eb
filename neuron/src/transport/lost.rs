use std::collections::BTreeMap;

use super::Loss;
use crate::{Envelope, Topic, limits};

/// How many envelopes were lost on the way to a bus, by topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    topics: BTreeMap<Topic, u64>,
    others: u64,
}

impl Lost {
    /// Counts more of a topic. Beyond [`LOST_TOPICS_MAX`](limits::LOST_TOPICS_MAX) topics they are no longer told apart.
    pub fn add(&mut self, topic: &Topic, count: u64) {
        if let Some(known) = self.topics.get_mut(topic) {
            *known = known.saturating_add(count);
        } else if self.topics.len() < limits::LOST_TOPICS_MAX {
            self.topics.insert(topic.clone(), count);
        } else {
            self.others = self.others.saturating_add(count);
        }
    }

    /// Counts more of topics that are not told apart.
    pub fn add_others(&mut self, count: u64) {
        self.others = self.others.saturating_add(count);
    }

    /// How many of each topic.
    pub fn topics(&self) -> impl Iterator<Item = (&Topic, u64)> {
        self.topics.iter().map(|(topic, count)| (topic, *count))
    }

    /// How many of topics that are not told apart.
    pub fn others(&self) -> u64 {
        self.others
    }
}

impl<T: AsRef<Envelope>> Loss<T> for Lost {
    fn count(&mut self, item: &T) {
        self.add(&item.as_ref().topic, 1);
    }

    fn add(&mut self, other: Self) {
        other
            .topics
            .iter()
            .for_each(|(topic, count)| Self::add(self, topic, *count));
        self.add_others(other.others);
    }
}
