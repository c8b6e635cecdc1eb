use std::fmt;

use crate::{Envelope, Error, Result, envelope::Cause, scope::State};

/// What a handler is given: one message of the log, and how it was handed out.
///
/// ```
/// use neuron::{Append, Author, Draft, Event, Result, Topic, on};
///
/// /// One bill per order, whatever crashes: the bill and the handler's position are one batch.
/// #[on("orders.placed")]
/// async fn bill(event: &Event, cents: u64) -> Result<Append> {
///     let bill = Draft::new(Topic::new("bills")?, Author::new("bill")?, "bill.made")?;
///     Ok(Append::of([bill.payload(&cents)?.cause(event.cause())]))
/// }
/// # fn main() {}
/// ```
pub struct Event {
    envelope: Envelope,
    attempt: u32,
    key: String,
    state: State,
}

impl Event {
    /// A message as it was handed out: for which time, under which key for the outside, to a program with this state.
    #[doc(hidden)]
    pub fn new(envelope: Envelope, attempt: u32, key: String, state: State) -> Self {
        Self {
            envelope,
            attempt,
            key,
            state,
        }
    }

    /// The message: its topic and type, its author and headers, its place on the log.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Which delivery of the message this is, from 1; a redriven message begins anew.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What the outside may know this message by: the same for every attempt, in every process, and no other handler's. A
    /// service that is given it does once what it is asked for twice.
    pub fn idempotency_key(&self) -> &str {
        &self.key
    }

    /// What a draft names as its cause if it comes of this message.
    pub fn cause(&self) -> Cause {
        Cause::Envelope(self.envelope.reference())
    }

    /// The program's shared state of a type. Where `serve` of the crate `orchestrator` runs the handler, its `Neuron` is
    /// part of it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if none was given.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, Error> {
        self.state.get()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("envelope", &self.envelope.reference())
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// What the first parameter of a handler refers to.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a handler is given an event, not a `{Self}`",
    label = "expected `&Event`",
    note = "a handler is an `async fn name(event: &Event, payload: T) -> Result<()>`"
)]
pub trait Occurrence: Sync + 'static {
    /// The event as this type.
    fn of(event: &Event) -> &Self;
}

impl Occurrence for Event {
    fn of(event: &Event) -> &Self {
        event
    }
}
