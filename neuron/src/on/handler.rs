use std::{fmt, panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use serde::de::DeserializeOwned;

use super::event::{Event, Occurrence};
use crate::{
    Append, ConsumerId, Envelope, Error, ErrorKind, Kind, Pattern, Result,
    consumer::Builder,
    def::{Body, RetryOn, judged, recorded},
    ledger::From,
    limits,
    ownership::Ownership,
    scope::panicked,
    store::INJECTED,
    topic::catalog,
};

/// One function with `#[on("…")]`. The attribute implements it; nobody else does.
pub trait On: 'static {
    /// What the first parameter refers to: [`Event`].
    type Event: Occurrence;
    /// The payload, in a tuple of none or one.
    type Payload: Arrival;
    /// What a success holds.
    type Effect: Effect;
    /// What the attribute says.
    const META: OnMeta;

    /// The function, not yet polled.
    fn body(event: &Self::Event, payload: Self::Payload) -> Body<'_, Self::Effect>;
}

/// What a handler takes beside its event: nothing, or one payload.
#[doc(hidden)]
pub trait Arrival: Sized + Send {
    /// What the message says.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if it has no payload or one of another shape.
    fn read(message: &Envelope) -> Result<Self, Error>;
}

impl Arrival for () {
    fn read(_: &Envelope) -> Result<Self, Error> {
        Ok(())
    }
}

impl<T: DeserializeOwned + Send + 'static> Arrival for (T,) {
    fn read(message: &Envelope) -> Result<Self, Error> {
        message.decode().map(|payload| (payload,))
    }
}

/// What a handler may give: `()`, or an [`Append`] that is committed together with the handler's position, so that it
/// stands exactly once in this store.
#[diagnostic::on_unimplemented(
    message = "a handler gives `()` or an `Append`, not `{Self}`",
    label = "the output of a handler",
    note = "nobody reads what a handler gives: put it on the log with `Ok(Append::of([draft]))`"
)]
pub trait Effect: Send {
    /// What is committed with the position; nothing for a plain success.
    #[doc(hidden)]
    fn into_append(self) -> Option<Append>;
}

impl Effect for () {
    fn into_append(self) -> Option<Append> {
        None
    }
}

impl Effect for Append {
    fn into_append(self) -> Option<Append> {
        Some(self)
    }
}

/// What an `#[on]` says about a function: a table, filled at compile time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OnMeta {
    /// The name of the consumer.
    pub name: &'static str,
    /// Which topics it is given.
    pub pattern: &'static str,
    /// The doc comment.
    pub doc: &'static str,
    /// Where it is written.
    pub file: &'static str,
    /// Where it is written, from 1.
    pub line: u32,
    /// The types it is given; none for all.
    pub kinds: &'static [&'static str],
    /// Whether it begins with the first envelope of the log, not with the first after it was made.
    pub from_start: bool,
    /// How often a message is handed out, and the wait before the second time in milliseconds, which doubles from one to
    /// the next; 0 for the waits of a consumer that names none.
    pub retry: Option<(u32, u64)>,
    /// After which failures a message is handed out again, of those that are not terminal; all, if nobody says.
    pub retry_on: Option<RetryOn>,
    /// The longest an attempt may take, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Messages in flight together.
    pub in_flight: Option<u32>,
}

impl OnMeta {
    /// A handler without options.
    pub const fn new(
        name: &'static str,
        pattern: &'static str,
        doc: &'static str,
        file: &'static str,
        line: u32,
    ) -> Self {
        Self {
            name,
            pattern,
            doc,
            file,
            line,
            kinds: &[],
            from_start: false,
            retry: None,
            retry_on: None,
            timeout_ms: None,
            in_flight: None,
        }
    }

    /// Only messages of these types.
    #[must_use]
    pub const fn kinds(self, kinds: &'static [&'static str]) -> Self {
        Self { kinds, ..self }
    }

    /// It begins with the first envelope of the log.
    #[must_use]
    pub const fn from_start(self) -> Self {
        Self {
            from_start: true,
            ..self
        }
    }

    /// At most `max` deliveries, the second not before `backoff_ms` have passed, each further one twice as late; 0 for the
    /// waits of a consumer that names none.
    #[must_use]
    pub const fn retry(self, max: u32, backoff_ms: u64) -> Self {
        Self {
            retry: Some((max, backoff_ms)),
            ..self
        }
    }

    /// Only after failures of which this is true is a message handed out again; after the others it is parked.
    #[must_use]
    pub const fn retry_on(self, retry_on: RetryOn) -> Self {
        Self {
            retry_on: Some(retry_on),
            ..self
        }
    }

    /// The longest an attempt may take.
    #[must_use]
    pub const fn timeout_ms(self, timeout_ms: u64) -> Self {
        Self {
            timeout_ms: Some(timeout_ms),
            ..self
        }
    }

    /// So many messages are handed out or wait to be tried again, together.
    #[must_use]
    pub const fn in_flight(self, count: u32) -> Self {
        Self {
            in_flight: Some(count),
            ..self
        }
    }
}

type Run = for<'a> fn(&'a Event) -> BoxFuture<'a, Result<Option<Append>, Error>>;

/// A handler without its types.
#[derive(Clone, Copy)]
pub struct Handler {
    meta: OnMeta,
    run: Run,
}

inventory::collect!(Handler);

impl Handler {
    /// The entry of a function.
    pub const fn of<H: On>() -> Self {
        Self {
            meta: H::META,
            run: |event| Box::pin(run::<H>(event)),
        }
    }

    /// What the attribute says.
    pub fn meta(&self) -> &OnMeta {
        &self.meta
    }

    /// Handles one message, and gives what is to be committed with its position. A panic is a failure like another.
    ///
    /// A message of type `header.injected` is no event of its own: it is passed over unless its type is asked for.
    ///
    /// # Errors
    /// The handler's own, in the form in which errors are recorded; a terminal [`ErrorKind::Schema`] if the payload
    /// cannot be read, for it will be the same at every attempt.
    pub async fn handle(&self, event: &Event) -> Result<Option<Append>, Error> {
        let is_header = event.envelope().body.kind == INJECTED;
        if is_header && !self.meta.kinds.contains(&INJECTED) {
            return Ok(None);
        }
        (self.run)(event).await
    }

    /// The consumer that hands it its messages.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for a name, a pattern or a type that is none.
    pub fn consumer(&self, process: &Ownership) -> Result<Builder, Error> {
        let meta = &self.meta;
        let mut consumer = process.consumer(meta.name)?.pattern(Pattern::new(meta.pattern)?);
        for kind in meta.kinds {
            consumer = consumer.kind(Kind::new(*kind)?);
        }
        if !meta.from_start {
            consumer = consumer.from(From::Now);
        }
        if let Some((max, backoff_ms)) = meta.retry {
            consumer = consumer.max_deliveries(max);
            if backoff_ms > 0 {
                consumer = consumer.schedule(waits(max, backoff_ms));
            }
        }
        Ok(match meta.in_flight {
            Some(count) => consumer.in_flight(count),
            None => consumer,
        })
    }

    /// Holds what the attribute says to what a consumer may be.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] or [`ErrorKind::Misuse`], naming the place.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let OnMeta { name, file, line, .. } = self.meta;
        let here = |error: Error| error.context(format!("the handler `{name}` ({file}:{line}) cannot be run"));
        let (own, pattern) = (ConsumerId::new(name), Pattern::new(self.meta.pattern));
        let (own, pattern) = (own.map_err(here)?, pattern.map_err(here)?);
        for kind in self.meta.kinds {
            Kind::new(*kind).map_err(here)?;
        }
        let refuse = |why: String| Err(here(Error::new(ErrorKind::Misuse, why)));
        if pattern.matches(&catalog::consumer(&own)) {
            return refuse(format!(
                "pattern `{pattern}` selects the topic on which its own position is recorded"
            ));
        }
        let most = limits::CONSUMER_IN_FLIGHT_MAX;
        match self.meta.in_flight {
            Some(count) if count > most => refuse(format!("{count} messages in flight: use 1 to {most}")),
            _ => Ok(()),
        }
    }
}

async fn run<H: On>(event: &Event) -> Result<Option<Append>, Error> {
    let payload = H::Payload::read(event.envelope())?;
    let body = H::body(H::Event::of(event), payload);
    let ended = AssertUnwindSafe(body).catch_unwind().await;
    let ended = ended.unwrap_or_else(|panic| Err(panicked(&*panic).retryable().into()));
    let ended = recorded(ended).map(Effect::into_append);
    ended.map_err(|error| judged(H::META.retry_on, error))
}

/// The waits of a schedule that doubles; the last one repeats.
fn waits(deliveries: u32, first_ms: u64) -> Vec<Duration> {
    let mut waits = Vec::new();
    let mut wait = Duration::from_millis(first_ms);
    while waits.len() < limits::CONSUMER_SCHEDULE_MAX && (waits.len() as u64) + 1 < u64::from(deliveries) {
        waits.push(wait.min(limits::BACKOFF_MAX));
        wait = wait.saturating_mul(2);
    }
    waits
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_has_a_wait_between_any_two_deliveries_and_ends_at_the_bound() {
        let ms = Duration::from_millis;
        assert_eq!(waits(1, 200), []);
        assert_eq!(waits(4, 200), [ms(200), ms(400), ms(800)]);
        assert_eq!(waits(3, u64::MAX), [limits::BACKOFF_MAX, limits::BACKOFF_MAX]);
        assert_eq!(waits(1_000, 1).len(), limits::CONSUMER_SCHEDULE_MAX);
    }
}
