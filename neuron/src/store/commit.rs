//! Group commit, leader and followers: whoever finds the writer free commits all that waits and looks again after
//! letting go; the others wait. A lone append costs no thread hop, a thousand share one sync.

use std::{
    fmt,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use futures::executor::block_on;
use tokio::sync::{Semaphore, TryAcquireError, oneshot, watch};

use super::{
    Batch, Row,
    backend::Backend,
    company::Company,
    fault::{Fault, Point},
    leader::{Lead, Leader},
    observer::Observers,
    queue::{Outcome, Put, Queue, Reply, Waiting, closed},
    seal,
};
use crate::{Clock, Deferred, Error, ErrorKind, Receipt, Result, limits};

/// The one way into a store.
pub(crate) struct Committer<B> {
    /// None once the store is closed. Fair now and then, so that whoever writes beside the groups gets its turn, however
    /// many wait for a commit.
    backend: parking_lot::Mutex<Option<B>>,
    leader: Leader,
    pub(super) queue: Mutex<Queue>,
    pub(super) wake: Condvar,
    pub(super) standby: Mutex<Option<JoinHandle<()>>>,
    room: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    fault: Option<Arc<dyn Fault>>,
    observers: Arc<Observers>,
    tail: watch::Sender<u64>,
    company: Company,
    /// Which store of the process this is, for the handles of what it defers.
    number: u64,
}

/// The number of the store opened last.
static OPENED: AtomicU64 = AtomicU64::new(0);

pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock was held left a transaction that the next `begin` rolls back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Backend + 'static> Committer<B> {
    pub(crate) fn new(backend: B, clock: Arc<dyn Clock>, fault: Option<Arc<dyn Fault>>, last: u64) -> Arc<Self> {
        Arc::new(Self {
            backend: parking_lot::Mutex::new(Some(backend)),
            leader: Leader::default(),
            queue: Mutex::default(),
            wake: Condvar::new(),
            standby: Mutex::default(),
            room: Arc::new(Semaphore::new(limits::QUEUE_MAX)),
            clock,
            fault,
            observers: Arc::default(),
            tail: watch::Sender::new(last),
            company: Company::default(),
            number: 1 + OPENED.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// The last `pos` that may be read, foreign commits included once they were noticed.
    pub(crate) fn tail(&self) -> &watch::Sender<u64> {
        &self.tail
    }

    /// The clock that it goes by, and what breaks its commits.
    pub(crate) fn surroundings(&self) -> (Arc<dyn Clock>, Option<Arc<dyn Fault>>) {
        (self.clock.clone(), self.fault.clone())
    }

    /// Who is told of commits.
    pub(crate) fn observers(&self) -> &Arc<Observers> {
        &self.observers
    }

    /// Appends and waits for the commit. Dropping the future does not take the batch back.
    pub(crate) async fn append(&self, batch: Batch) -> Result<Vec<Receipt>, Error> {
        self.refuse_inside()?;
        batch.deferred_in(self.number)?;
        let room = self.room.clone().acquire_owned().await.map_err(|_| closed())?;
        let (reply, mut receipts) = oneshot::channel();
        held(&self.queue).push(Waiting {
            batch,
            reply: Reply::Now(reply),
            room: Some(room),
        })?;
        if self.company.sought(limits::QUEUE_MAX - self.room.available_permits()) {
            // A future that is dropped here has its batch committed all the same.
            let mut unled = Unled(Some(self));
            // Those who are about to append do so first: one commit for all of them.
            tokio::task::yield_now().await;
            unled.0 = None;
            if let Ok(outcome) = receipts.try_recv() {
                // What waits by now is a group that only begins to gather.
                return outcome;
            }
        }
        self.lead(Lead::Task);
        receipts.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Appends from a thread that may block.
    pub(crate) fn append_blocking(&self, batch: Batch) -> Result<Vec<Receipt>, Error> {
        self.refuse_inside()?;
        batch.deferred_in(self.number)?;
        let room = match self.room.clone().try_acquire_owned() {
            Err(TryAcquireError::NoPermits) => block_on(self.room.clone().acquire_owned()).map_err(|_| closed())?,
            room => room.map_err(|_| closed())?,
        };
        let (reply, receipts) = oneshot::channel();
        held(&self.queue).push(Waiting {
            batch,
            reply: Reply::Now(reply),
            room: Some(room),
        })?;
        self.lead(Lead::Thread);
        receipts.blocking_recv().unwrap_or_else(|_| Err(closed()))
    }

    /// Queues a batch that need not be durable yet.
    pub(crate) fn defer(&self, batch: Batch) -> Result<Vec<Deferred>, Error> {
        batch.deferred_in(self.number)?;
        let handles: Vec<Deferred> = batch.drafts.iter().map(|_| Deferred::of(self.number)).collect();
        let waiting = Waiting {
            batch,
            reply: Reply::Deferred(handles.clone()),
            room: None,
        };
        let put = held(&self.queue).defer(waiting)?;
        // The thread that stands by looks often enough, so it is not woken: a step would pay for that each time.
        if put == Put::Full {
            self.lead(Lead::Task);
        }
        Ok(handles)
    }

    /// Commits all that waits and lets the store go. What comes later is refused.
    pub(crate) fn close(&self) {
        self.flush();
        held(&self.queue).closed = true;
        self.wake.notify_all();
        let standby = held(&self.standby).take();
        // A callback that drops the last handle runs on that thread itself, which cannot wait for its own end.
        if let Some(standby) = standby.filter(|standby| standby.thread().id() != thread::current().id()) {
            let _ = standby.join();
        }
        let backend = self.backend.lock().take();
        drop(backend);
        self.fail_all(&closed());
    }

    /// Commits all that waits, now.
    pub(crate) fn flush(&self) {
        // Whoever leads looks at the queue again anyway.
        if !self.is_inside() {
            self.lead(Lead::Flush);
        }
    }

    /// Whether a call of this thread comes from its own commit.
    pub(crate) fn is_inside(&self) -> bool {
        self.leader.is_this_thread()
    }

    fn refuse_inside(&self) -> Result<(), Error> {
        if !self.is_inside() {
            return Ok(());
        }
        let why = "a callback of a commit cannot wait for the next one: defer the append, or do it elsewhere";
        Err(Error::new(ErrorKind::Misuse, why))
    }

    /// Runs `work` in a write transaction of its own, between two groups.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&mut B) -> Result<T, Error>) -> Result<T, Error> {
        self.refuse_inside()?;
        let mut guard = self.backend.lock();
        let backend = guard.as_mut().ok_or_else(closed)?;
        let outcome = backend
            .begin(true)
            .and_then(|_| work(backend))
            .and_then(|value| self.make_durable(backend).map(|()| value));
        match &outcome {
            Ok(_) => backend.rest(),
            Err(_) => backend.rollback(),
        }
        drop(guard);
        // Whoever appended meanwhile found the writer held and counts on its holder to look at the queue.
        self.lead(Lead::Thread);
        outcome
    }

    /// Takes the lead if nobody has it.
    pub(super) fn lead(&self, lead: Lead) {
        for round in 0.. {
            if round == limits::LED_GROUPS_MAX && lead != Lead::Flush {
                return self.hand_over();
            }
            let mut guard = match self.backend.try_lock() {
                Some(guard) => guard,
                None if lead == Lead::Flush => self.backend.lock(),
                // Whoever leads looks at the queue again after letting go.
                None => return,
            };
            let (idle, takes_long) = {
                let queue = held(&self.queue);
                (queue.is_empty(), queue.takes_long())
            };
            if takes_long && lead == Lead::Task {
                drop(guard);
                return self.hand_over();
            }
            if !idle {
                let Some(backend) = guard.as_mut() else {
                    drop(guard);
                    return self.fail_all(&closed());
                };
                match backend.begin(lead != Lead::Task) {
                    Ok(true) => {
                        let leading = self.leader.begin();
                        self.commit_group(backend);
                        drop(leading);
                        backend.rest();
                    }
                    // Another process holds the store: a thread that may block waits for it, no task does.
                    Ok(false) => {
                        drop(guard);
                        return self.hand_over();
                    }
                    Err(error) => self.fail_group(&error),
                }
            }
            drop(guard);
            // Only now: who appended before this found the writer held, who appends after it finds it free. Another may
            // have taken the last group meanwhile; a flush waits for it, by finding the writer free and nothing queued.
            if held(&self.queue).is_empty() && (idle || lead != Lead::Flush) {
                return;
            }
        }
    }

    /// Lets the thread that stands by take the lead.
    fn hand_over(&self) {
        held(&self.queue).handed_over = true;
        self.wake.notify_all();
    }

    fn commit_group(&self, backend: &mut B) {
        let span = tracing::debug_span!(
            "commit",
            batches = tracing::field::Empty,
            envelopes = tracing::field::Empty
        );
        let _entered = span.enter();
        let group = held(&self.queue).take_group();
        span.record("batches", group.len());
        // What is deferred rides along with whoever appends, and is no company.
        self.company
            .met(group.iter().filter(|waiting| waiting.is_awaited()).count());
        let mut rows: Vec<Arc<Row>> = Vec::new();
        let mut outcomes: Vec<(Waiting, Outcome)> = Vec::with_capacity(group.len());
        for mut waiting in group {
            let unheard = held(&self.queue).refusal(&waiting);
            let sealed = unheard.map_or_else(|| seal::batch(backend, &mut waiting.batch, self.clock.now()), Err);
            let outcome = sealed.map(|sealed| {
                rows.extend(sealed.rows);
                sealed.receipts
            });
            // A later batch of this very group may name it; a failed commit takes the place back.
            waiting.place(&outcome);
            if let Err(error) = &outcome {
                held(&self.queue).refuse(&waiting, error);
            }
            outcomes.push((waiting, outcome));
        }
        span.record("envelopes", rows.len());
        if let Err(error) = self.finish(backend, &rows) {
            for (waiting, outcome) in &mut outcomes {
                *outcome = Err(error.clone());
                waiting.place(outcome);
                held(&self.queue).refuse(waiting, &error);
            }
            rows.clear();
        }
        for (waiting, _) in &outcomes {
            waiting.confirm();
        }
        self.publish(&rows);
        for (waiting, outcome) in outcomes {
            Self::settle(waiting, outcome);
        }
    }

    fn finish(&self, backend: &mut B, rows: &[Arc<Row>]) -> Result<(), Error> {
        if rows.is_empty() {
            backend.rollback();
            return Ok(());
        }
        self.make_durable(backend).inspect_err(|_| backend.rollback())
    }

    fn make_durable(&self, backend: &mut B) -> Result<(), Error> {
        self.at(Point::BeforeCommit).and_then(|()| backend.commit())?;
        // The commit stands: a fault reported after it may stop the process but cannot undo it.
        let _ = self.at(Point::AfterCommit);
        Ok(())
    }

    fn at(&self, point: Point) -> Result<(), Error> {
        self.fault.as_ref().map_or(Ok(()), |fault| fault.at(point))
    }

    fn publish(&self, rows: &[Arc<Row>]) {
        let Some(last) = rows.last() else { return };
        self.observers.committed(rows);
        self.tail.send_if_modified(|tail| {
            let newer = last.pos > *tail;
            *tail = last.pos.max(*tail);
            newer
        });
    }

    fn settle(mut waiting: Waiting, outcome: Outcome) {
        if let Some(then) = waiting.batch.then.0.take() {
            then(&outcome);
        }
        drop(waiting.room);
        if let Reply::Now(reply) = waiting.reply {
            // An appender that no longer listens has its batch committed all the same.
            let _ = reply.send(outcome);
        }
    }

    fn fail_all(&self, error: &Error) {
        while !held(&self.queue).is_empty() {
            self.fail_group(error);
        }
    }

    fn fail_group(&self, error: &Error) {
        let group = held(&self.queue).take_group();
        for waiting in group {
            let outcome = Err(error.clone());
            waiting.place(&outcome);
            held(&self.queue).refuse(&waiting, error);
            Self::settle(waiting, outcome);
        }
    }
}

/// Hands the lead over if it is dropped before somebody took it.
struct Unled<'a, B: Backend + 'static>(Option<&'a Committer<B>>);

impl<B: Backend + 'static> Drop for Unled<'_, B> {
    fn drop(&mut self) {
        if let Some(committer) = self.0 {
            committer.hand_over();
        }
    }
}

impl<B> Drop for Committer<B> {
    fn drop(&mut self) {
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        queue.closed = true;
    }
}

impl<B> fmt::Debug for Committer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committer")
            .field("tail", &*self.tail.borrow())
            .field("observers", &self.observers)
            .finish_non_exhaustive()
    }
}
