use std::{fmt, sync::Arc, time::Duration};

use tokio::task::JoinHandle;

use super::{delivery::Delivery, pick::Pick, plan::Occasion, shared::Shared};
use crate::{
    ConsumerId, Envelope, Error, ErrorKind, Result, ledger::Subscription, limits,
    vocabulary::consumer::ConsumerConfigured,
};

/// A durable consumer that this process has open. Dropped, it hands out nothing more, and gives its name back once
/// every delivery in hand has ended or lapsed; [`Consumer::close`] waits for that.
pub struct Consumer {
    shared: Arc<Shared>,
    feed: Subscription,
    config: ConsumerConfigured,
    keeper: Option<JoinHandle<Result<(), Error>>>,
    /// The message read last, so that it need not be read again to be handed out.
    recent: Option<Envelope>,
}

impl Consumer {
    pub(super) fn new(
        shared: Arc<Shared>,
        feed: Subscription,
        config: ConsumerConfigured,
        keeper: JoinHandle<Result<(), Error>>,
    ) -> Self {
        Self {
            shared,
            feed,
            config,
            keeper: Some(keeper),
            recent: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &ConsumerId {
        &self.shared.name
    }

    /// The next message: one that is to be tried again and whose time has come, else the next of the log. Deliveries are
    /// independent of each other and may be given to tasks. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] if another process has taken the consumer over (open it again to stand by);
    /// [`ErrorKind::TooLarge`] if [`limits::CONSUMER_PARKED_MAX`] messages are parked; a kind of the disk.
    pub async fn next(&mut self) -> Result<Delivery, Error> {
        loop {
            self.shared.check()?;
            if self.shared.desk().ended.len() >= limits::CONSUMER_ACKS_MAX {
                self.shared.flush().await?;
            }
            let now = self.shared.now();
            let pick = self.shared.desk().pick(now.since);
            match pick {
                Pick::Hand { pos, attempt } => return self.hand(pos, attempt),
                Pick::Prepare(pos) => drop(self.shared.record(Occasion::Hand(pos), None).await?),
                Pick::Read(until) => self.read(until).await?,
                Pick::Wait(until) => self.wait(until).await,
                Pick::Stuck => {
                    let (name, max) = (self.name(), limits::CONSUMER_PARKED_MAX);
                    let why = format!(
                        "consumer `{name}` has {max} parked messages and hands out nothing more: mend what fails, then redrive them"
                    );
                    return Err(Error::new(ErrorKind::TooLarge, why));
                }
            }
        }
    }

    /// Hands out nothing more, waits until every delivery in hand has ended or lapsed, records that, and gives the name
    /// back.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] if the consumer was taken over; a kind of the disk: then what is not recorded is handed out
    /// again.
    pub async fn close(mut self) -> Result<(), Error> {
        self.end();
        match self.keeper.take() {
            Some(keeper) => keeper.await.map_err(|error| Error::new(ErrorKind::Io, error))?,
            None => Ok(()),
        }
    }

    fn end(&self) {
        self.shared.desk().read_to(self.feed.position());
        self.shared.close();
    }

    fn hand(&mut self, pos: u64, attempt: u32) -> Result<Delivery, Error> {
        let recent = self.recent.take().filter(|envelope| envelope.pos == pos);
        let envelope = recent.map_or_else(|| self.shared.message(pos), Ok);
        let envelope = envelope.inspect_err(|_| self.shared.desk().take_back(pos))?;
        // The keeper sleeps until the first delivery lapses.
        self.shared.work.notify_one();
        Ok(Delivery::new(self.shared.clone(), envelope, attempt))
    }

    async fn read(&mut self, until: Option<Duration>) -> Result<(), Error> {
        for _ in 0..limits::PAGE_MAX {
            let Some(envelope) = self.feed.try_next()? else {
                self.shared.desk().read_to(self.feed.position());
                return self.await_next(until).await;
            };
            if self.take_in(envelope) {
                return Ok(());
            }
        }
        // Much that is not for this consumer: others get a turn.
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn await_next(&mut self, until: Option<Duration>) -> Result<(), Error> {
        if self.shared.desk().has_passed_over() {
            self.shared.work.notify_one();
        }
        let until = until.map(|until| self.shared.at(until));
        let shared = self.shared.clone();
        tokio::select! {
            biased;
            () = shared.changed.notified() => Ok(()),
            () = moment(until) => Ok(()),
            envelope = self.feed.next() => {
                let envelope = envelope?;
                self.take_in(envelope);
                Ok(())
            }
        }
    }

    async fn wait(&self, until: Option<Duration>) {
        let until = until.map(|until| self.shared.at(until));
        tokio::select! {
            () = self.shared.changed.notified() => {}
            () = moment(until) => {}
        }
    }

    /// Lays a message on the desk, if it is for this consumer.
    fn take_in(&mut self, envelope: Envelope) -> bool {
        let mut desk = self.shared.desk();
        if !self.config.selects(&envelope) {
            desk.read_to(envelope.pos);
            return false;
        }
        desk.offer(envelope.pos, envelope.reference());
        drop(desk);
        self.recent = Some(envelope);
        true
    }
}

async fn moment(until: Option<tokio::time::Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("name", &self.shared.name)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
