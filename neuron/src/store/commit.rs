//! Group commit, leader and followers: whoever finds the writer free commits all that waits and looks again after
//! letting go; the others wait. A lone append costs no thread hop, a thousand share one sync.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak},
    thread::JoinHandle,
};

use tokio::sync::{Semaphore, oneshot, watch};

use super::{
    Batch, Row,
    fault::{Fault, Point},
    queue::{Outcome, Put, Queue, Reply, Waiting, closed},
    seal::{self, Transaction},
};
use crate::{Clock, Deferred, Error, Receipt, Result, limits};

/// What a store must do so that batches can be committed to it in groups.
pub(crate) trait Backend: Transaction + Send {
    /// Opens the write transaction. Without `wait`, gives `false` if another process holds the store.
    fn begin(&mut self, wait: bool) -> Result<bool, Error>;
    /// Makes the transaction durable.
    fn commit(&mut self) -> Result<(), Error>;
    /// Undoes the transaction and forgets what was cached in it.
    fn rollback(&mut self);
    /// Does what can wait until the receipts have left. The transaction is over.
    fn rest(&mut self) {}
}

/// Sees every committed row, in commit order, before the appender gets its receipt.
pub(crate) type Observer = Box<dyn Fn(&[Arc<Row>]) + Send + Sync>;

/// Who takes the lead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// A task: it never waits for another process.
    Task,
    /// A thread that may.
    Thread,
    /// A thread that also waits for the present leader, so that all that waits is committed when it returns.
    Flush,
}

/// The one way into a store.
pub(crate) struct Committer<B> {
    /// None once the store is closed.
    backend: Mutex<Option<B>>,
    queue: Mutex<Queue>,
    flush: Condvar,
    flusher: Mutex<Option<JoinHandle<()>>>,
    room: Arc<Semaphore>,
    clock: Arc<dyn Clock>,
    fault: Option<Arc<dyn Fault>>,
    observers: Mutex<Vec<Observer>>,
    tail: watch::Sender<u64>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock was held left a transaction that the next `begin` rolls back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Backend + 'static> Committer<B> {
    pub(crate) fn new(backend: B, clock: Arc<dyn Clock>, fault: Option<Arc<dyn Fault>>, last: u64) -> Arc<Self> {
        Arc::new(Self {
            backend: Mutex::new(Some(backend)),
            queue: Mutex::default(),
            flush: Condvar::new(),
            flusher: Mutex::default(),
            room: Arc::new(Semaphore::new(limits::QUEUE_MAX)),
            clock,
            fault,
            observers: Mutex::default(),
            tail: watch::Sender::new(last),
        })
    }

    /// The last `pos` that may be read, foreign commits included once they were noticed.
    pub(crate) fn tail(&self) -> &watch::Sender<u64> {
        &self.tail
    }

    pub(crate) fn observe(&self, observer: Observer) {
        held(&self.observers).push(observer);
    }

    /// Appends and waits for the commit. Dropping the future does not take the batch back.
    pub(crate) async fn append(self: &Arc<Self>, batch: Batch) -> Result<Vec<Receipt>, Error> {
        let permit = self.room.acquire().await.map_err(|_| closed())?;
        let (reply, receipts) = oneshot::channel();
        held(&self.queue).push(Waiting {
            batch,
            reply: Reply::Now(reply),
        })?;
        if self.is_crowded() {
            // Those who are about to append do so first: one commit for all of them.
            tokio::task::yield_now().await;
        }
        self.lead(Lead::Task);
        let receipts = receipts.await.unwrap_or_else(|_| Err(closed()));
        drop(permit);
        receipts
    }

    /// Appends from a thread that may block.
    pub(crate) fn append_blocking(self: &Arc<Self>, batch: Batch) -> Result<Vec<Receipt>, Error> {
        let (reply, receipts) = oneshot::channel();
        held(&self.queue).push(Waiting {
            batch,
            reply: Reply::Now(reply),
        })?;
        self.lead(Lead::Thread);
        receipts.blocking_recv().unwrap_or_else(|_| Err(closed()))
    }

    /// Queues a batch that need not be durable yet.
    pub(crate) fn defer(self: &Arc<Self>, batch: Batch) -> Result<Vec<Deferred>, Error> {
        let handles: Vec<Deferred> = batch.drafts.iter().map(|_| Deferred::default()).collect();
        let waiting = Waiting {
            batch,
            reply: Reply::Deferred(handles.clone()),
        };
        let put = held(&self.queue).defer(waiting)?;
        match put {
            Put::First => self.flush.notify_one(),
            Put::More => {}
            Put::Full => self.lead(Lead::Task),
        }
        Ok(handles)
    }

    /// Starts the thread that commits deferred appends nobody else took along. It ends with the store.
    pub(crate) fn start_flusher(self: &Arc<Self>) -> Result<(), Error> {
        let weak = Arc::downgrade(self);
        let thread = std::thread::Builder::new()
            .name("neuron-flush".into())
            .spawn(move || flusher(&weak))?;
        *held(&self.flusher) = Some(thread);
        Ok(())
    }

    /// Commits all that waits and lets the store go. What comes later is refused.
    pub(crate) fn close(self: &Arc<Self>) {
        self.flush();
        held(&self.queue).closed = true;
        self.flush.notify_all();
        let flusher = held(&self.flusher).take();
        // A callback that drops the last handle runs on the flusher itself, which cannot wait for its own end.
        if let Some(flusher) = flusher.filter(|flusher| flusher.thread().id() != std::thread::current().id()) {
            let _ = flusher.join();
        }
        let backend = held(&self.backend).take();
        drop(backend);
        self.fail_all(&closed());
    }

    /// Commits all that waits, now.
    pub(crate) fn flush(self: &Arc<Self>) {
        self.lead(Lead::Flush);
    }

    /// Runs `work` in a write transaction of its own, between two groups.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&mut B) -> Result<T, Error>) -> Result<T, Error> {
        let mut guard = held(&self.backend);
        let backend = guard.as_mut().ok_or_else(closed)?;
        backend.begin(true)?;
        let outcome = work(backend).and_then(|value| self.make_durable(backend).map(|()| value));
        match &outcome {
            Ok(_) => backend.rest(),
            Err(_) => backend.rollback(),
        }
        outcome
    }

    /// Whether other tasks append at this time.
    fn is_crowded(&self) -> bool {
        limits::QUEUE_MAX - self.room.available_permits() > 1
    }

    /// Takes the lead if nobody has it.
    fn lead(self: &Arc<Self>, lead: Lead) {
        loop {
            let mut guard = match self.backend.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if lead == Lead::Flush => held(&self.backend),
                // Whoever leads looks at the queue again after letting go.
                Err(TryLockError::WouldBlock) => return,
            };
            if held(&self.queue).is_empty() {
                return;
            }
            let Some(backend) = guard.as_mut() else {
                drop(guard);
                return self.fail_all(&closed());
            };
            match backend.begin(lead != Lead::Task) {
                Ok(true) => {
                    self.commit_group(backend);
                    backend.rest();
                }
                // Another process holds the store: a thread that may block waits for it, no task does.
                Ok(false) => {
                    drop(guard);
                    return self.lead_apart();
                }
                Err(error) => self.fail_group(&error),
            }
            drop(guard);
            if held(&self.queue).is_empty() {
                return;
            }
        }
    }

    /// Lets a thread of its own take the lead.
    fn lead_apart(self: &Arc<Self>) {
        let this = self.clone();
        let spawned = std::thread::Builder::new()
            .name("neuron-commit".into())
            .spawn(move || this.lead(Lead::Flush));
        if let Err(error) = spawned {
            self.fail_all(&error.into());
        }
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
        let mut rows: Vec<Arc<Row>> = Vec::new();
        let mut outcomes: Vec<(Waiting, Outcome)> = Vec::with_capacity(group.len());
        for waiting in group {
            let unheard = held(&self.queue).refusal(&waiting);
            let sealed = unheard.map_or_else(|| seal::batch(backend, &waiting.batch, self.clock.now()), Err);
            let outcome = sealed.map(|sealed| {
                rows.extend(sealed.rows);
                sealed.receipts
            });
            // A later batch of this very group may name it; a failed commit takes the place back.
            waiting.place(&outcome);
            outcomes.push((waiting, outcome));
        }
        span.record("envelopes", rows.len());
        if let Err(error) = self.finish(backend, &rows) {
            for (waiting, outcome) in &mut outcomes {
                *outcome = Err(error.clone());
                waiting.place(outcome);
            }
            rows.clear();
        }
        self.publish(&rows);
        for (waiting, outcome) in outcomes {
            self.settle(waiting, outcome);
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
        for observer in held(&self.observers).iter() {
            observer(rows);
        }
        self.tail.send_if_modified(|tail| {
            let newer = last.pos > *tail;
            *tail = last.pos.max(*tail);
            newer
        });
    }

    fn settle(&self, mut waiting: Waiting, outcome: Outcome) {
        if let Some(then) = waiting.batch.then.0.take() {
            then(&outcome);
        }
        if let (Reply::Deferred(_), Err(error)) = (&waiting.reply, &outcome) {
            held(&self.queue).refuse(&waiting, error.clone());
        }
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
            self.settle(waiting, outcome);
        }
    }
}

fn flusher<B: Backend + 'static>(weak: &Weak<Committer<B>>) {
    loop {
        let Some(this) = weak.upgrade() else { return };
        let queue = held(&this.queue);
        if queue.closed {
            return;
        }
        if !queue.unflushed {
            // Wake now and then to see whether the store is gone.
            drop(this.flush.wait_timeout(queue, limits::DEFERRED_DELAY_MAX));
            continue;
        }
        drop(queue);
        drop(this);
        std::thread::sleep(limits::DEFERRED_DELAY_MAX);
        let Some(this) = weak.upgrade() else { return };
        if held(&this.queue).unflushed {
            this.lead(Lead::Flush);
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
            .finish_non_exhaustive()
    }
}
