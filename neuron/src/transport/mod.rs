//! What carries ephemeral envelopes from one bus to the others that have the same store open.
//!
//! Durable topics never pass here: other processes see commits through the store. What is lost on the way is no loss of
//! data; it is counted, and whoever listens on the other side is told.

#[cfg(unix)]
mod bridge;
#[cfg(feature = "testing")]
pub mod conformance;
#[cfg(unix)]
mod frame;
mod local;
#[cfg(unix)]
mod meeting;
#[cfg(unix)]
mod peer;
mod queue;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

#[cfg(unix)]
pub use bridge::Bridge;
pub use local::Local;
pub(crate) use queue::{Loss, Queue};

use crate::{Envelope, Error, Result, Topic, limits};

/// Carries ephemeral envelopes between the buses of one store.
///
/// Obligations: what one bus sends reaches every other that has joined, at most once, in the order in which it was sent,
/// or is told there as lost; never the sender itself. A bus that joins later gets what the others
/// [retain](Inbox::welcome) before what they send next. What was received is never passed on, so nothing can go round in
/// a circle. Nobody who is slow, stopped or dead makes a sender wait.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Joins the others, until what this gives is dropped. The inbox is not kept alive.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) if there is no way to the others; the bus then goes on alone.
    fn join(&self, inbox: Weak<dyn Inbox>) -> Result<Box<dyn Link>, Error>;
}

/// The sending end of a bus that has joined.
pub trait Link: Send + Sync + fmt::Debug {
    /// Sends an envelope of about so many bytes to all others. Never waits.
    fn send(&self, envelope: &Arc<Envelope>, bytes: usize);

    /// Called after [`Link::send`], when the bus holds no lock any more.
    fn sent(&self) {}
}

/// The receiving end: what a [`Transport`] asks of a bus.
pub trait Inbox: Send + Sync {
    /// What another bus published.
    ///
    /// # Errors
    /// [`Contract`](crate::ErrorKind::Contract) or [`UnknownTopic`](crate::ErrorKind::UnknownTopic) if its topic is not
    /// ephemeral: whoever sent it is not to be trusted.
    fn receive(&self, envelope: Arc<Envelope>) -> Result<(), Error>;

    /// What another bus retained before this one came. It is delivered if it is newer than what is known here.
    ///
    /// # Errors
    /// As [`Inbox::receive`].
    fn receive_retained(&self, envelope: Arc<Envelope>) -> Result<(), Error>;

    /// What others published and could not be brought here.
    fn lost(&self, lost: &Lost);

    /// Shows what this bus itself has published and retains, to be sent to one that has just come. Nothing is published
    /// while `admit` runs, so that the newcomer misses nothing and gets nothing twice.
    fn welcome(&self, admit: &mut dyn FnMut(Vec<Arc<Envelope>>));
}

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
