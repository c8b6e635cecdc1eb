use std::{fmt, sync::Arc, time::Duration};

use super::{desk::Verdict, plan::Occasion, shared::Shared};
use crate::{Append, Envelope, Error, ErrorKind, Receipt, Result, limits};

/// A message that was handed out. It is ended by one of its methods; dropped without a word, the message is tried again
/// by the consumer's schedule.
///
/// Once the ack wait is over the message is handed out again. Until that has happened this delivery may still end it;
/// from then on its word is refused as [`ErrorKind::Conflict`].
#[must_use = "a delivery that is dropped is tried again"]
pub struct Delivery {
    shared: Arc<Shared>,
    envelope: Envelope,
    attempt: u32,
    ended: bool,
}

impl Delivery {
    pub(super) fn new(shared: Arc<Shared>, envelope: Envelope, attempt: u32) -> Self {
        Self {
            shared,
            envelope,
            attempt,
            ended: false,
        }
    }

    /// The message.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Which delivery of the message this is, from 1; a redriven message begins anew.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What the outside may know this message by: the same for every delivery, in every process, and no other
    /// consumer's. A service that is given it as idempotency key does once what it is asked for twice.
    pub fn key(&self) -> String {
        format!("{}:{}", self.shared.name, self.envelope.id())
    }

    /// The message is settled. Recorded with up to [`limits::CONSUMER_ACKS_MAX`] others or within
    /// [`limits::CONSUMER_ACK_DELAY_MAX`]: a crash before that hands the message out once more. What must not happen
    /// twice in this store belongs in [`Delivery::ack_with`].
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if the delivery is over, [`ErrorKind::Fenced`] if the consumer was taken over, a kind of
    /// the disk if it was time to record and that failed: then it is tried again.
    pub async fn ack(self) -> Result<(), Error> {
        self.end(Verdict::Ack).await
    }

    /// Commits an effect and, in the same batch, that the message is settled: both stand or neither. So the effect
    /// happens exactly once in this store, whatever crashes; what the effect is of outside this store happens at least
    /// once, and [`Delivery::key`] is what tells the outside so.
    ///
    /// Gives the receipts of the effect. If it is refused the delivery is still in hand and may be ended otherwise.
    ///
    /// # Errors
    /// As [`Ledger::append`](crate::Ledger::append), and as [`Delivery::ack`]; [`ErrorKind::Misuse`] for a batch with an
    /// idempotency key: the position is one already, and a batch that holds another position is another batch.
    pub async fn ack_with(&mut self, effect: Append) -> Result<Vec<Receipt>, Error> {
        if effect.idempotency.is_some() {
            let why = "an effect that is committed with its message needs no idempotency key: leave it out";
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        self.shared.check()?;
        let pos = self.envelope.pos;
        self.shared.desk().begin_effect(pos, self.attempt)?;
        let outcome = self.shared.record(Occasion::Effect(pos), Some(effect)).await;
        self.ended |= outcome.is_ok();
        outcome
    }

    /// The delivery failed, for this reason: the message is tried again by the consumer's schedule, or parked if this
    /// was the last delivery it gets. Recorded when this returns.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    pub async fn fail(self, because: impl fmt::Display) -> Result<(), Error> {
        let because = reason(because);
        self.end(Verdict::Retry { after: None, because }).await
    }

    /// As [`Delivery::fail`], after a wait of its own.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    pub async fn retry_after(self, wait: Duration) -> Result<(), Error> {
        let because = format!("it asked to be tried again after {wait:?}");
        let after = Some(wait);
        self.end(Verdict::Retry { after, because }).await
    }

    /// As [`Delivery::fail`], after a wait that the failure itself asks for.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    pub async fn fail_after(self, wait: Duration, because: impl fmt::Display) -> Result<(), Error> {
        let because = reason(because);
        let after = Some(wait);
        self.end(Verdict::Retry { after, because }).await
    }

    /// No further delivery would help, for this reason: the message is parked until somebody redrives it. Recorded when
    /// this returns.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    pub async fn poison(self, because: impl fmt::Display) -> Result<(), Error> {
        let because = reason(because);
        self.end(Verdict::Park { because }).await
    }

    /// Nothing is to be said of the message: whoever works on it stops, or may not work now. It is handed out again after
    /// this long, to whoever has the consumer open by then, and this delivery does not count. A process that dies before
    /// that is recorded, within moments, has had its delivery counted.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn show(delivery: neuron::consumer::Delivery) {
    /// delivery.hand_back(Duration::ZERO, "the process stops");
    /// # }
    /// ```
    pub fn hand_back(mut self, after: Duration, because: impl fmt::Display) {
        self.ended = true;
        let (now, because) = (self.shared.now(), reason(because));
        let pos = self.envelope.pos;
        self.shared.desk().hand_back(pos, self.attempt, after, because, now);
        self.shared.changed.notify_one();
        self.shared.work.notify_one();
    }

    /// Work goes on: the ack wait begins anew.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    pub fn extend(&mut self) -> Result<(), Error> {
        self.shared.check()?;
        let now = self.shared.now();
        self.shared.desk().extend(self.envelope.pos, self.attempt, now.since)?;
        self.shared.work.notify_one();
        Ok(())
    }

    async fn end(mut self, verdict: Verdict) -> Result<(), Error> {
        self.shared.check()?;
        let is_ack = matches!(verdict, Verdict::Ack);
        let now = self.shared.now();
        let (is_first, plan) = {
            let mut desk = self.shared.desk();
            let is_first = desk.ack_since.is_none();
            desk.end(self.envelope.pos, self.attempt, verdict, now)?;
            let is_due = !is_ack || desk.ended.len() >= limits::CONSUMER_ACKS_MAX;
            (is_first, is_due.then(|| desk.plan(Occasion::Flush)))
        };
        self.ended = true;
        self.shared.changed.notify_one();
        if let Some(plan) = plan {
            return self.shared.write(plan, None).await.map(drop);
        }
        if is_first {
            self.shared.work.notify_one();
        }
        Ok(())
    }
}

/// A reason as it is recorded.
fn reason(because: impl fmt::Display) -> String {
    let mut text = because.to_string();
    if text.len() > limits::CONSUMER_REASON_BYTES_MAX {
        let cut = text.floor_char_boundary(limits::CONSUMER_REASON_BYTES_MAX);
        text.truncate(cut);
        text.push('…');
    }
    text
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.ended {
            let now = self.shared.now();
            self.shared.desk().give_up(self.envelope.pos, self.attempt, now);
            self.shared.changed.notify_one();
            self.shared.work.notify_one();
        }
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("consumer", &self.shared.name)
            .field("pos", &self.envelope.pos)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
