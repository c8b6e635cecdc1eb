use std::time::Duration;

use neuron::{
    Append, Error, ErrorKind, Result,
    consumer::{Consumer, Delivery},
    limits,
    on::{Event, Handler},
    scope,
};
use tokio::{sync::watch, task::JoinSet, time::timeout};

use super::Neuron;
use crate::builds::{BuildOrder, Standing};

/// How often a delivery whose handler still works asks for more time: well within what a consumer waits.
const EXTEND_EVERY: Duration = Duration::from_secs(10);

/// The handlers of a serving process, each on its own task; dropped, they stop, and what they had in hand is handed back.
pub(super) struct Handlers {
    tasks: JoinSet<Result<(), Error>>,
    closed: watch::Sender<bool>,
}

impl Handlers {
    /// Starts every handler that this program registers.
    pub(super) fn start(neuron: &Neuron) -> Self {
        let (mut tasks, closed) = (JoinSet::new(), watch::Sender::new(false));
        for handler in neuron.0.registry.handlers() {
            tasks.spawn(serve(neuron.clone(), handler, closed.subscribe()));
        }
        Self { tasks, closed }
    }

    /// Lets them take no further message. What they have in hand they may end, within
    /// [`limits::DRAIN_GRACE`]. Whether they were open.
    pub(super) fn close(&self) -> bool {
        !self.closed.send_replace(true)
    }

    /// Whether they were closed and have ended.
    pub(super) fn are_over(&self) -> bool {
        *self.closed.borrow() && self.tasks.is_empty()
    }

    /// Waits, no longer than `time`, for a handler that can go on no more.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) async fn watch(&mut self, time: Duration) -> Result<(), Error> {
        if self.tasks.is_empty() {
            tokio::time::sleep(time).await;
            return Ok(());
        }
        match timeout(time, self.tasks.join_next()).await {
            Ok(Some(Ok(Err(error)))) => Err(error),
            Ok(Some(Err(panic))) => Err(Error::new(ErrorKind::Panicked, panic)),
            Ok(None | Some(Ok(Ok(())))) | Err(_) => Ok(()),
        }
    }
}

/// Runs one handler until it is closed: stands by, works, and stands by again if it is taken over.
async fn serve(neuron: Neuron, handler: &'static Handler, mut closed: watch::Receiver<bool>) -> Result<(), Error> {
    let mut state = neuron.0.state.clone();
    state.insert(neuron.clone());
    let name = handler.meta().name;
    loop {
        let named = |error: Error| error.context(format!("the handler `{name}` cannot go on"));
        let consumer = handler.consumer(&neuron.0.ownership).map_err(named)?;
        let consumer = tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => return Ok(()),
            consumer = consumer.open() => consumer,
        };
        let mut consumer = consumer.map_err(named)?;
        let error = match hand_out(&mut consumer, handler, &state, &mut closed).await {
            Err(error) if error.kind() == ErrorKind::Fenced => error,
            ended => return ended.map_err(named),
        };
        tracing::warn!(%error, handler = name, "another process runs the handler now; this one stands by");
    }
}

/// Hands out messages until that cannot go on, or the handler is closed.
async fn hand_out(
    consumer: &mut Consumer,
    handler: &'static Handler,
    state: &scope::State,
    closed: &mut watch::Receiver<bool>,
) -> Result<(), Error> {
    let mut in_hand = JoinSet::new();
    let mut told = false;
    loop {
        let next = tokio::select! {
            next = consumer.next() => next,
            Some(_) = in_hand.join_next() => continue,
            _ = closed.wait_for(|closed| *closed) => break,
        };
        match next {
            Ok(delivery) => {
                told = false;
                in_hand.spawn(deliver(delivery, handler, state.clone()));
            }
            // As many are parked as may be. Somebody will redrive them; until then it asks now and then.
            Err(error) if error.kind() == ErrorKind::TooLarge => {
                if !told {
                    tracing::error!(%error, handler = handler.meta().name, "a handler stands still");
                }
                told = true;
                tokio::time::sleep(limits::SERVE_POLL).await;
            }
            Err(error) => return Err(error),
        }
    }
    let ended = async { while in_hand.join_next().await.is_some() {} };
    if timeout(limits::DRAIN_GRACE, ended).await.is_err() {
        let handler = handler.meta().name;
        tracing::warn!(
            handler,
            "a closed handler has not ended what it has in hand, which is handed back"
        );
    }
    Ok(())
}

/// A message in hand. Dropped with it, as the process stops to serve, it is handed back: that is no fault of its own.
struct InHand(Option<Delivery>);

impl InHand {
    fn extend(&mut self) -> Result<(), Error> {
        self.0.as_mut().map_or(Ok(()), Delivery::extend)
    }

    /// The delivery, to end it.
    fn take(&mut self) -> Result<Delivery, Error> {
        let gone = || Error::new(ErrorKind::Misuse, "the delivery was ended before");
        self.0.take().ok_or_else(gone)
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        if let Some(delivery) = self.0.take() {
            delivery.hand_back(Duration::ZERO, "its process stopped to serve");
        }
    }
}

/// Handles one message and says how that ended.
async fn deliver(delivery: Delivery, handler: &'static Handler, state: scope::State) {
    let (pos, attempt) = (delivery.envelope().pos, delivery.attempt());
    let event = Event::new(delivery.envelope().clone(), attempt, delivery.key(), state);
    let mut in_hand = InHand(Some(delivery));
    let verdict = handle(&mut in_hand, handler, &event).await;
    let said = match verdict.and_then(|verdict| Ok((verdict, in_hand.take()?))) {
        Ok((Verdict::Done(Some(effect)), delivery)) => commit(delivery, effect).await,
        Ok((verdict, delivery)) => end(delivery, verdict).await,
        Err(lost) => Err(lost),
    };
    // Then somebody else has the message, or it will be handed out again.
    if let Err(error) = said {
        let handler = handler.meta().name;
        tracing::warn!(%error, handler, pos, attempt, "how a message ended could not be recorded");
    }
}

/// What a handler made of a message.
enum Verdict {
    /// It is settled, with what is committed in the same batch.
    Done(Option<Append>),
    /// It is tried again: by the schedule, or after a wait of its own.
    Again(Option<Duration>, String),
    /// It is laid aside.
    Never(String),
    /// An order about a build leaves it to others: it is handed back for so long.
    NotHere(Duration, String),
}

impl Verdict {
    fn of(outcome: Result<Option<Append>, Error>) -> Self {
        match outcome {
            Ok(effect) => Self::Done(effect),
            Err(error) => match Standing::of_refusal(&error) {
                Some(order) => Self::NotHere(apart(order.order), error.to_string()),
                None if error.is_terminal() => Self::Never(error.to_string()),
                None => Self::Again(error.wait(), error.to_string()),
            },
        }
    }

    /// What becomes of a message whose effect was refused: another time might see another store, but no other draft.
    fn refused(error: &Error) -> Self {
        let because = format!("what the handler gave was refused: {error}");
        match error.kind() {
            ErrorKind::Conflict | ErrorKind::Fenced | ErrorKind::Busy | ErrorKind::Full | ErrorKind::Io => {
                Self::Again(None, because)
            }
            _ => Self::Never(because),
        }
    }
}

/// How long a message is left alone that an order has refused.
fn apart(order: BuildOrder) -> Duration {
    match order {
        // The run it is about is one of a build that ends it in its own time; until then each look is on the log.
        BuildOrder::Pin => limits::RETAKE_WAIT_MAX,
        // By then the handlers of this build have stopped.
        BuildOrder::Drain | BuildOrder::Retire | BuildOrder::Release => 2 * limits::SERVE_POLL,
    }
}

/// Runs the handler within its time.
///
/// # Errors
/// Why the delivery is not this process's any more. The handler is stopped then, for somebody else has the message.
async fn handle(in_hand: &mut InHand, handler: &Handler, event: &Event) -> Result<Verdict, Error> {
    let longest = handler.meta().timeout_ms.map(Duration::from_millis);
    let (work, late) = (handler.handle(event), past(longest));
    tokio::pin!(work, late);
    loop {
        tokio::select! {
            biased;
            outcome = &mut work => return Ok(Verdict::of(outcome)),
            because = &mut late => return Ok(Verdict::Again(None, because)),
            () = tokio::time::sleep(EXTEND_EVERY) => in_hand.extend()?,
        }
    }
}

async fn past(longest: Option<Duration>) -> String {
    match longest {
        Some(longest) => {
            tokio::time::sleep(longest).await;
            format!("the handler took longer than {longest:?}")
        }
        None => std::future::pending().await,
    }
}

async fn commit(mut delivery: Delivery, effect: Append) -> Result<(), Error> {
    match delivery.ack_with(effect).await {
        Ok(_) => Ok(()),
        Err(error) => end(delivery, Verdict::refused(&error)).await,
    }
}

async fn end(delivery: Delivery, verdict: Verdict) -> Result<(), Error> {
    match verdict {
        Verdict::Done(_) => delivery.ack().await,
        Verdict::Again(Some(wait), because) => delivery.fail_after(wait, because).await,
        Verdict::Again(None, because) => delivery.fail(because).await,
        Verdict::Never(because) => delivery.poison(because).await,
        Verdict::NotHere(apart, because) => {
            delivery.hand_back(apart, because);
            Ok(())
        }
    }
}
