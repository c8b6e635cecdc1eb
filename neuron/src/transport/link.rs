use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::Lost;
use crate::{Envelope, Error, Result};

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
