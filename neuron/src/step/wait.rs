use std::{
    any::Any,
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::{self, BoxFuture};
use serde::Serialize;
use tokio::sync::oneshot;

use super::{
    Cx,
    builtin::milliseconds,
    deadline,
    halt::{Halt, held},
};
use crate::{
    Cause, Envelope, EnvelopeRef, Error, ErrorKind, Filter, Json, Millis, Result,
    def::Context as _,
    ledger::{Found, Wanted},
    scope::{Ask, Record, Recorded, Scope, Stop, Taken, Then, WAIT},
    vocabulary::step::{WaitEnded, WaitStarted},
};

impl Cx {
    /// Waits for an envelope, for ever if need be: on the log of a restarted machine it goes on. What was committed since
    /// the run was created, or after [`Filter::after`], counts, also while nobody waited or nobody was up.
    ///
    /// An envelope answers one wait of this body at most: each takes the first that is meant and that no other took. Waiting
    /// costs memory alone. In a step the answer holds for its later attempts.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// use neuron::Filter;
    ///
    /// # cx.emit(cx.draft("approvals", "order.approved")?.payload(&std::collections::BTreeMap::from([("order", 7)]))?).await?;
    /// let mine = Filter::on("approvals").of_type("order.approved").payload("/order", &7);
    /// let approved = cx.wait_for(mine).await?;
    /// println!("approved by {}", approved.author);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTopic`] for a topic that was not declared, [`ErrorKind::Contract`] for an ephemeral one, whose
    /// envelopes are never on the log; [`ErrorKind::Malformed`] or [`ErrorKind::TooLarge`] for what is wrong with the
    /// filter.
    pub fn wait_for(&self, what: impl Into<Filter>) -> Wait<'_, Envelope> {
        Wait::new(wait(self.scope(), what.into(), None), |came| came)
    }

    /// As [`wait_for`](Self::wait_for), until a timer of `time` fires; `None` if none was committed by then. The moment
    /// stands on the log from the start, so a machine that was off waits for the rest. Whichever was first stays first in
    /// every replay.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// # cx.emit(cx.draft("approvals", "order.refused")?).await?;
    /// use neuron::Filter;
    ///
    /// let approved = Filter::on("approvals").of_type("order.approved");
    /// let came = cx.wait_within(approved, Duration::from_millis(5)).await?;
    /// assert!(came.is_none(), "nobody approved in time");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    pub fn wait_within(&self, what: impl Into<Filter>, time: Duration) -> Wait<'_, Option<Envelope>> {
        Wait::new(wait(self.scope(), what.into(), Some(time)), Some)
    }
}

/// The answer of a wait: the envelope that came.
#[must_use = "nothing waits until it is awaited"]
pub struct Wait<'a, T> {
    ask: Result<Ask, Error>,
    /// What the body is given; `None` where there has to be an envelope and is none.
    give: fn(Option<Envelope>) -> Option<T>,
    context: PhantomData<&'a ()>,
}

impl<T> fmt::Debug for Wait<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wait({:?})", self.ask)
    }
}

impl<T> Unpin for Wait<'_, T> {}

impl<T> Wait<'_, T> {
    fn new(ask: Result<Ask, Error>, give: fn(Option<Envelope>) -> Option<T>) -> Self {
        Self {
            ask,
            give,
            context: PhantomData,
        }
    }
}

impl<T> Future for Wait<'_, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let give = self.give;
        let ask = match &mut self.ask {
            Ok(ask) => ask,
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        let taken = match Pin::new(&mut *ask).poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(taken) => taken?,
        };
        match named(ask.scope(), taken) {
            Ok(came) => {
                let nothing = || {
                    Error::new(
                        ErrorKind::Corrupt,
                        "a wait without a deadline was answered with nothing",
                    )
                };
                Poll::Ready(give(came).ok_or_else(nothing))
            }
            // What the log names and cannot show is no answer: the body is held, not told.
            Err(error) => {
                ask.scope().runtime().stop(Stop::Refused(error));
                Poll::Pending
            }
        }
    }
}

/// The envelope that a recorded answer names, as the log holds it.
fn named(scope: &Scope, mut taken: Taken) -> Result<Option<Envelope>, Error> {
    if let Some(Ok(came)) = taken.typed.take().map(<Box<dyn Any + Send>>::downcast::<Envelope>) {
        return Ok(Some(*came));
    }
    let Some(named) = taken.json.decode::<Option<EnvelopeRef>>()? else {
        return Ok(None);
    };
    let EnvelopeRef { topic, seq, .. } = &named;
    let place = format!("{topic} seq {seq}, which answered a wait, cannot be read");
    let read = scope.runtime().journal().envelope(&named);
    read.map(Some).map_err(|error| error.context(place))
}

/// A wait: it is on the log before anybody waits.
fn wait(scope: &Arc<Scope>, filter: Filter, within: Option<Duration>) -> Result<Ask, Error> {
    #[derive(Serialize)]
    struct Args<'a> {
        filter: &'a Filter,
        #[serde(skip_serializing_if = "Option::is_none")]
        ms: Option<u64>,
    }
    filter.check()?;
    if filter.begins_after().is_none() && scope.runtime().has_begun_again() {
        let why = "this body has begun again, and what the one before it was given is not known any more: say from where, \
                   with `Filter::after` and the `pos` of the last envelope that was taken";
        return Err(Error::new(ErrorKind::Misuse, why));
    }
    let ms = within.map(milliseconds);
    let key = scope.claim(WAIT, &Json::of(&Args { filter: &filter, ms })?)?;
    let waiting = Waiting {
        home: scope.clone(),
        key: key.clone(),
        filter: Arc::new(filter),
        within,
    };
    let start = move |mut hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match waiting.run(&mut hold).await {
                // Its body may have gone on meanwhile.
                Ok(()) if !waiting.home.is_let_go(&waiting.key) => {}
                Ok(()) | Err(Halt::Dropped) => waiting.home.leave(&waiting.key, || None),
                Err(Halt::Stopped(why)) => waiting.home.runtime().stop(why),
            }
        })
    };
    Ok(Ask::new(scope, key, Box::new(start)))
}

struct Waiting {
    home: Arc<Scope>,
    key: Arc<str>,
    filter: Arc<Filter>,
    within: Option<Duration>,
}

impl Waiting {
    /// Only the waiting itself is called off. An end that is with the store will stand, and an attempt that was not told
    /// of it would wait for another envelope.
    async fn run(&self, hold: &mut oneshot::Receiver<()>) -> Result<(), Halt> {
        let journal = self.home.runtime().journal();
        let deadline = self.begin().await?;
        let wanted = Wanted {
            filter: self.filter.clone(),
            after: self.filter.begins_after().unwrap_or(self.home.runtime().birthplace()),
            used: self.home.used().clone(),
            deadline,
        };
        let came = held(hold, journal.wait(wanted, self.timer(deadline))).await??;
        let (record, outcome, found) = self.end(came)?;
        let (home, key) = (self.home.clone(), self.key.clone());
        let hand_over: Then = Box::new(move |place| {
            let mut answer = Recorded::new(place, outcome);
            if let Some(envelope) = found.map(Found::keep) {
                home.known(&key, |call| call.came = Some(envelope.reference()));
                answer.typed = Some(Box::new(envelope));
            }
            home.answered(&key, WAIT, answer);
        });
        journal.append(record, hand_over).await?;
        Ok(())
    }

    /// Puts the wait on the log, unless it stands there; until when it lasts.
    async fn begin(&self) -> Result<Option<Millis>, Error> {
        let journal = self.home.runtime().journal();
        let (born, set) = self.home.known(&self.key, |call| (call.born, call.deadline));
        let deadline = set.or_else(|| Some(journal.now().plus(self.within?)));
        if born > 0 {
            return Ok(set);
        }
        let started = WaitStarted {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: WAIT.into(),
            filter: Filter::clone(&self.filter),
            deadline,
        };
        let (home, key) = (self.home.clone(), self.key.clone());
        let note: Then = Box::new(move |place| {
            home.known(&key, |call| {
                WAIT.clone_into(&mut call.name);
                (call.born, call.deadline) = (place.pos, deadline);
            });
        });
        journal
            .append(Record::of(self.home.id(), &self.key, &started)?, note)
            .await?;
        Ok(deadline)
    }

    fn timer(&self, deadline: Option<Millis>) -> BoxFuture<'static, ()> {
        let (Some(deadline), Some(span)) = (deadline, self.within) else {
            return Box::pin(future::pending());
        };
        let journal = self.home.runtime().journal().clone();
        Box::pin(async move { deadline::passed(&*journal, deadline, span).await })
    }

    /// The answer: what stands on the log, what the body is told, and the envelope that is held for it.
    #[allow(
        clippy::type_complexity,
        reason = "three things that belong together, for one caller"
    )]
    fn end(&self, came: Result<Option<Found>, Error>) -> Result<(Record, Result<Json, Error>, Option<Found>), Error> {
        let (found, error) = match came {
            Ok(found) => (found, None),
            Err(error) => (None, Some(error.settled())),
        };
        let envelope = found.as_ref().map(|found| found.envelope().reference());
        let outcome = match &error {
            Some(error) => Err(error.clone()),
            None => Json::of(&envelope),
        };
        let ended = WaitEnded {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: WAIT.into(),
            envelope: envelope.clone(),
            error,
        };
        let mut record = Record::of(self.home.id(), &self.key, &ended)?;
        record.cause = envelope.map(Cause::Envelope);
        Ok((record, outcome, found))
    }
}
