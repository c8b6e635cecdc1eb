//! What goes on while nobody asks: deliveries lapse, acknowledgements are recorded in time, words of others are heard.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use super::{
    event::Event,
    plan::Occasion,
    shared::{Shared, lease},
};
use crate::{
    ConsumerId, Envelope, Error, ErrorKind, Result,
    ledger::Subscription,
    limits,
    ownership::Ownership,
    vocabulary::{Message as _, consumer::ConsumerRedriven},
};

/// The consumers that this process has open, by incarnation: one lease of it is one consumer.
static SEATS: LazyLock<Mutex<HashSet<(String, ConsumerId)>>> = LazyLock::new(Mutex::default);

/// The right of one consumer to use the lease that its process holds.
pub(super) struct Seat((String, ConsumerId));

impl Seat {
    pub(super) fn take(ownership: &Ownership, name: &ConsumerId) -> Option<Self> {
        let seat = (ownership.incarnation().to_owned(), name.clone());
        let mut seats = SEATS.lock().unwrap_or_else(PoisonError::into_inner);
        seats.insert(seat.clone()).then(|| Self(seat))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        SEATS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// One open consumer, until nothing is in hand any more after it was closed.
pub(super) struct Keeper {
    pub(super) shared: Arc<Shared>,
    pub(super) ownership: Ownership,
    /// The consumer's own topic, on which others redrive.
    pub(super) words: Subscription,
    /// Goes last, with the lease.
    pub(super) _seat: Seat,
}

/// What the keeper does next.
enum Next {
    Flush,
    Close,
    Sleep(Option<Duration>),
}

impl Keeper {
    pub(super) async fn keep(mut self) -> Result<(), Error> {
        let mut not_before = Duration::ZERO;
        loop {
            self.shared.check()?;
            match self.next(not_before) {
                Next::Close => {
                    self.shared.record(Occasion::Close, None).await?;
                    return self.ownership.release(&lease(&self.shared.name)).await;
                }
                Next::Flush => {
                    if let Err(error) = self.shared.flush().await {
                        self.shared.check()?;
                        if self.shared.is_closing() {
                            return Err(error);
                        }
                        tracing::warn!(%error, consumer = %self.shared.name, "acknowledgements could not be recorded yet");
                        not_before = self.shared.now().since + limits::CONSUMER_ACK_DELAY_MAX;
                    }
                }
                Next::Sleep(until) => self.wait(until).await?,
            }
        }
    }

    fn next(&self, not_before: Duration) -> Next {
        let now = self.shared.now();
        let mut desk = self.shared.desk();
        desk.lapse(now);
        let is_clear = self.shared.is_closing() && desk.clear(now);
        let due = desk.ack_since.map(|since| since + limits::CONSUMER_ACK_DELAY_MAX);
        let flushes = desk.is_urgent() || due.is_some_and(|due| due <= now.since) || desk.has_passed_over();
        if is_clear && !desk.is_urgent() {
            return Next::Close;
        }
        if flushes && not_before <= now.since {
            return Next::Flush;
        }
        let retry = if flushes { Some(not_before) } else { due };
        let moments = [desk.next_lapse(), retry];
        Next::Sleep(moments.into_iter().flatten().min())
    }

    async fn wait(&mut self, until: Option<Duration>) -> Result<(), Error> {
        let until = until.map(|until| self.shared.at(until));
        let moment = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.shared.work.notified() => Ok(()),
            () = moment => Ok(()),
            word = self.words.next() => self.hear(&word.inspect_err(|error| self.shared.lose(error.clone()))?),
        }
    }

    /// Takes in a word on the consumer's topic. Its own are known already; one of a later holder ends it.
    fn hear(&self, word: &Envelope) -> Result<(), Error> {
        if word
            .headers
            .decode::<u64>("epoch")
            .is_some_and(|epoch| epoch > self.shared.epoch())
        {
            self.shared.lose(self.shared.taken_over());
            return self.shared.check();
        }
        if word.body.kind != ConsumerRedriven::TYPE {
            return Ok(());
        }
        let heard = ConsumerRedriven::read(word).and_then(|redriven| {
            let Some(redriven) = redriven else { return Ok(()) };
            let (pos, now) = (redriven.pos, self.shared.now());
            let message = self.shared.message(pos)?.reference();
            self.shared
                .desk()
                .redriven(&Event::Redriven(redriven), pos, message, now);
            self.shared.changed.notify_one();
            Ok(())
        });
        heard.inspect_err(|error| self.shared.lose(error.clone()))
    }
}

impl Drop for Keeper {
    /// Also if the runtime ends before it: nothing lapses and nothing is recorded any more, so nothing is handed out.
    fn drop(&mut self) {
        let why = format!("consumer `{}` is closed", self.shared.name);
        self.shared.lose(Error::new(ErrorKind::Cancelled, why));
    }
}
