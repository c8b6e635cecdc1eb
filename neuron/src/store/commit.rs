//! Group commit, leader and followers: whoever finds the writer free commits all that waits and looks again after
//! letting go; the others wait. A lone append costs no thread hop, a thousand share one sync.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak},
};

use tokio::sync::{Semaphore, oneshot, watch};

use super::{
    Batch, Row,
    fault::{Fault, Point},
    seal::{self, Transaction},
};
use crate::{Clock, Deferred, Error, ErrorKind, Receipt, Result, limits};

/// What a store must do so that batches can be committed to it in groups.
pub(crate) trait Backend: Transaction + Send {
    /// Opens the write transaction. Without `wait`, gives `false` if another process holds the store.
    fn begin(&mut self, wait: bool) -> Result<bool, Error>;
    /// Makes the transaction durable.
    fn commit(&mut self) -> Result<(), Error>;
    /// Undoes the transaction and forgets what was cached in it.
    fn rollback(&mut self);
}

/// Sees every committed row, in commit order, before the appender gets its receipt.
pub(crate) type Observer = Box<dyn Fn(&[Arc<Row>]) + Send + Sync>;

struct Waiting {
    batch: Batch,
    reply: Reply,
}

enum Reply {
    Now(oneshot::Sender<Result<Vec<Receipt>, Error>>),
    Deferred(Vec<Deferred>),
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// An owner whose deferred append was refused hears of it with its next append.
    refused: HashMap<Option<String>, Error>,
    /// The flusher has something to look after.
    unflushed: bool,
    closed: bool,
}

/// The one way into a store.
pub(crate) struct Committer<B> {
    backend: Mutex<B>,
    queue: Mutex<Queue>,
    flush: Condvar,
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
            backend: Mutex::new(backend),
            queue: Mutex::default(),
            flush: Condvar::new(),
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
        self.enqueue(Waiting {
            batch,
            reply: Reply::Now(reply),
        })?;
        self.lead(false);
        let receipts = receipts.await.unwrap_or_else(|_| Err(closed()));
        drop(permit);
        receipts
    }

    /// Appends from a thread that may block.
    pub(crate) fn append_blocking(self: &Arc<Self>, batch: Batch) -> Result<Vec<Receipt>, Error> {
        let (reply, receipts) = oneshot::channel();
        self.enqueue(Waiting {
            batch,
            reply: Reply::Now(reply),
        })?;
        self.lead(true);
        receipts.blocking_recv().unwrap_or_else(|_| Err(closed()))
    }

    /// Queues a batch that need not be durable yet.
    pub(crate) fn defer(self: &Arc<Self>, batch: Batch) -> Result<Vec<Deferred>, Error> {
        let handles: Vec<Deferred> = batch.drafts.iter().map(|_| Deferred::default()).collect();
        self.enqueue(Waiting {
            batch,
            reply: Reply::Deferred(handles.clone()),
        })?;
        let mut queue = held(&self.queue);
        if !std::mem::replace(&mut queue.unflushed, true) {
            drop(queue);
            self.flush.notify_one();
        }
        Ok(handles)
    }

    /// Starts the thread that commits deferred appends nobody else took along. It ends with the store.
    pub(crate) fn start_flusher(self: &Arc<Self>) -> Result<(), Error> {
        let weak = Arc::downgrade(self);
        std::thread::Builder::new()
            .name("neuron-flush".into())
            .spawn(move || flusher(&weak))?;
        Ok(())
    }

    /// Commits all that waits, now.
    pub(crate) fn flush(self: &Arc<Self>) {
        self.lead(true);
    }

    /// Runs `work` in a write transaction of its own, between two groups.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&mut B) -> Result<T, Error>) -> Result<T, Error> {
        let mut backend = held(&self.backend);
        backend.begin(true)?;
        match work(&mut backend).and_then(|value| backend.commit().map(|()| value)) {
            Ok(value) => Ok(value),
            Err(error) => {
                backend.rollback();
                Err(error)
            }
        }
    }

    fn enqueue(&self, waiting: Waiting) -> Result<(), Error> {
        let mut queue = held(&self.queue);
        if queue.closed {
            return Err(closed());
        }
        queue.waiting.push_back(waiting);
        Ok(())
    }

    /// Takes the lead if nobody has it.
    fn lead(self: &Arc<Self>, wait: bool) {
        loop {
            let mut backend = match self.backend.try_lock() {
                Ok(backend) => backend,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if wait => held(&self.backend),
                Err(TryLockError::WouldBlock) => return,
            };
            if held(&self.queue).waiting.is_empty() {
                return;
            }
            match backend.begin(wait) {
                Ok(true) => self.commit_group(&mut backend),
                // Another process holds the store: a thread that may block waits for it, no task does.
                Ok(false) => {
                    drop(backend);
                    let this = self.clone();
                    let spawned = std::thread::Builder::new()
                        .name("neuron-commit".into())
                        .spawn(move || this.lead(true));
                    if let Err(error) = spawned {
                        self.fail_all(&error.into());
                    }
                    return;
                }
                Err(error) => self.fail_all(&error),
            }
            drop(backend);
            if held(&self.queue).waiting.is_empty() {
                return;
            }
        }
    }

    fn take_group(&self) -> Vec<Waiting> {
        let mut queue = held(&self.queue);
        let mut envelopes = 0;
        let mut group = Vec::new();
        while let Some(next) = queue.waiting.front() {
            envelopes += next.batch.drafts.len();
            if envelopes > limits::GROUP_MAX && !group.is_empty() {
                break;
            }
            group.extend(queue.waiting.pop_front());
        }
        queue.unflushed &= !queue.waiting.is_empty();
        group
    }

    fn commit_group(&self, backend: &mut B) {
        let span = tracing::debug_span!(
            "commit",
            batches = tracing::field::Empty,
            envelopes = tracing::field::Empty
        );
        let _entered = span.enter();
        let group = self.take_group();
        span.record("batches", group.len());
        let mut rows: Vec<Arc<Row>> = Vec::new();
        let mut outcomes: Vec<(Waiting, Result<Vec<Receipt>, Error>)> = Vec::with_capacity(group.len());
        for waiting in group {
            let sealed = self
                .refusal(&waiting)
                .map_or_else(|| seal::batch(backend, &waiting.batch, self.clock.now()), Err);
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
        self.at(Point::BeforeCommit)
            .and_then(|()| backend.commit())
            .inspect_err(|_| backend.rollback())?;
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

    /// The error an owner has still to hear.
    fn refusal(&self, waiting: &Waiting) -> Option<Error> {
        let mut queue = held(&self.queue);
        if queue.refused.is_empty() {
            return None;
        }
        queue.refused.remove(&waiting.owner())
    }

    fn settle(&self, mut waiting: Waiting, outcome: Result<Vec<Receipt>, Error>) {
        if let Some(then) = waiting.batch.then.0.take() {
            then(&outcome);
        }
        if let (Reply::Deferred(_), Err(error)) = (&waiting.reply, &outcome) {
            held(&self.queue).refused.insert(waiting.owner(), error.clone());
        }
        if let Reply::Now(reply) = waiting.reply {
            // An appender that no longer listens has its batch committed all the same.
            let _ = reply.send(outcome);
        }
    }

    fn fail_all(&self, error: &Error) {
        let group = self.take_group();
        for waiting in group {
            let outcome = Err(error.clone());
            waiting.place(&outcome);
            self.settle(waiting, outcome);
        }
    }
}

impl Waiting {
    fn owner(&self) -> Option<String> {
        self.batch.owner.as_ref().map(|(name, _)| name.clone())
    }

    fn place(&self, outcome: &Result<Vec<Receipt>, Error>) {
        let Reply::Deferred(handles) = &self.reply else { return };
        for (index, handle) in handles.iter().enumerate() {
            handle.settle(
                outcome
                    .as_ref()
                    .map(|receipts| receipts[index].clone())
                    .map_err(Clone::clone),
            );
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
            this.lead(true);
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Io, "the store is closed")
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
