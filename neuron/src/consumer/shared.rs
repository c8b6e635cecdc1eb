//! What the parts of one open consumer share: the desk behind a lock, and the one way in which it is recorded.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::{
    desk::{Desk, Now},
    plan::{Occasion, Plan},
};
use crate::{
    Append, ConsumerId, Envelope, Error, ErrorKind, Expectation, Ledger, Receipt, Result, Topic, store::Select,
    topic::catalog,
};

pub(super) struct Shared {
    pub(super) ledger: Ledger,
    pub(super) name: ConsumerId,
    pub(super) topic: Topic,
    /// The owned name and epoch under which everything is written.
    lease: (String, u64),
    since: Instant,
    desk: Mutex<Desk>,
    lost: Mutex<Option<Error>>,
    closing: AtomicBool,
    /// For whoever asks for the next message.
    pub(super) changed: Notify,
    /// For the keeper.
    pub(super) work: Notify,
}

/// The message at a place of the log.
pub(super) fn message(ledger: &Ledger, pos: u64) -> Result<Envelope, Error> {
    let mut reading = ledger.read(Select::All).from(pos).to(pos).envelopes();
    let absent = || Error::new(ErrorKind::Corrupt, format!("pos {pos} of the store holds no envelope"));
    reading.next().transpose()?.ok_or_else(absent)
}

/// The owned name of a consumer.
pub(super) fn lease(name: &ConsumerId) -> String {
    format!("consumer:{name}")
}

impl Shared {
    pub(super) fn new(ledger: Ledger, name: ConsumerId, epoch: u64, desk: Desk) -> Self {
        Self {
            ledger,
            topic: catalog::consumer(&name),
            lease: (lease(&name), epoch),
            name,
            since: Instant::now(),
            desk: Mutex::new(desk),
            lost: Mutex::default(),
            closing: AtomicBool::new(false),
            changed: Notify::new(),
            work: Notify::new(),
        }
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Now {
        Now {
            since: self.since.elapsed(),
            wall: self.ledger.clock().now(),
        }
    }

    /// The moment of the runtime's clock that a moment of the desk stands for.
    pub(super) fn at(&self, since: Duration) -> Instant {
        self.since.checked_add(since).unwrap_or_else(|| self.since + FAR)
    }

    /// Why nothing can be written any more, if so.
    pub(super) fn check(&self) -> Result<(), Error> {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.clone().map_or(Ok(()), Err)
    }

    pub(super) fn lose(&self, error: Error) {
        self.lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        self.changed.notify_one();
        self.work.notify_one();
    }

    /// Lets the keeper end once nothing is in hand any more.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.work.notify_one();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// The message at a place of the log.
    pub(super) fn message(&self, pos: u64) -> Result<Envelope, Error> {
        message(&self.ledger, pos)
    }

    /// Records what has ended.
    pub(super) async fn flush(self: &Arc<Self>) -> Result<(), Error> {
        self.record(Occasion::Flush, None).await.map(drop)
    }

    /// Records what there is to record on this occasion, with the effect of a message if there is one. Dropping the
    /// future takes nothing back.
    pub(super) async fn record(
        self: &Arc<Self>,
        occasion: Occasion,
        effect: Option<Append>,
    ) -> Result<Vec<Receipt>, Error> {
        let plan = self.desk().plan(occasion);
        self.write(plan, effect).await
    }

    /// Records a plan that was made.
    pub(super) async fn write(self: &Arc<Self>, plan: Plan, effect: Option<Append>) -> Result<Vec<Receipt>, Error> {
        let ticket = Ticket {
            shared: self.clone(),
            plan: Some(plan),
        };
        self.check()?;
        let drafts = ticket.plan.as_ref().map(|plan| plan.drafts(&self.topic));
        let drafts = drafts.transpose()?.unwrap_or_default();
        let mut append = effect.unwrap_or_default();
        let own = append.drafts.len();
        append.drafts.extend(drafts);
        if append.drafts.is_empty() {
            ticket.settle(true);
            return Ok(Vec::new());
        }
        let (name, epoch) = self.lease.clone();
        append = match append.owner {
            None => append.owner(name, epoch),
            Some(_) => append.expect(Expectation::Epoch(name, epoch)),
        };
        let after = append.then.0.take();
        append = append.then(move |outcome| {
            ticket.settle(outcome.is_ok());
            if let Some(after) = after {
                after(&outcome.clone().map(|receipts| receipts.into_iter().take(own).collect()));
            }
        });
        match self.ledger.append(append).await {
            Ok(mut receipts) => {
                receipts.truncate(own);
                Ok(receipts)
            }
            Err(error) => Err(self.judge(error)),
        }
    }

    /// Tells a refusal of the effect from one that means that this consumer has another holder now.
    fn judge(&self, error: Error) -> Error {
        let (name, epoch) = &self.lease;
        let may_be = matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Conflict);
        let newest = may_be.then(|| self.ledger.store().epoch(name).ok()).flatten();
        if newest.is_none_or(|newest| newest == *epoch) {
            return error;
        }
        let lost = self.taken_over();
        self.lose(lost.clone());
        lost
    }

    pub(super) fn epoch(&self) -> u64 {
        self.lease.1
    }

    pub(super) fn taken_over(&self) -> Error {
        let (name, epoch) = (&self.name, self.epoch());
        let why = format!("consumer `{name}` was taken over; epoch {epoch} of it may no longer write: open it again");
        Error::new(ErrorKind::Fenced, why)
    }
}

const FAR: Duration = Duration::from_hours(24 * 365);

/// A plan under way. What becomes of its batch settles it, also when nobody waits for that any more.
struct Ticket {
    shared: Arc<Shared>,
    plan: Option<Plan>,
}

impl Ticket {
    fn settle(mut self, stands: bool) {
        self.end(stands);
    }

    fn end(&mut self, stands: bool) {
        let Some(plan) = self.plan.take() else { return };
        for parked in plan.parked().filter(|_| stands) {
            let (name, pos) = (&self.shared.name, parked.pos);
            let (attempts, because) = (parked.attempts, &parked.because);
            tracing::warn!(consumer = %name, pos, attempts, because, "a message was parked: it waits until it is redriven");
        }
        let mut desk = self.shared.desk();
        if stands {
            desk.committed(plan);
        } else {
            desk.failed(plan);
        }
        drop(desk);
        self.shared.changed.notify_one();
        self.shared.work.notify_one();
    }
}

impl Drop for Ticket {
    /// Its batch never reached the store.
    fn drop(&mut self) {
        self.end(false);
    }
}
