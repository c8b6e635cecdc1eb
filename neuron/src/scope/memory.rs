use std::{
    collections::HashMap,
    fmt,
    io::Read as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::{self, BoxFuture};
use tokio::{sync::Notify, time::Instant};

use super::{Committed, Content, Given, History, Journal, Record, Ruling, Then, Wanted};
use crate::{Clock, Digest, Error, ErrorKind, Json, Millis, Result, vocabulary::step::StepProgressed};

/// A log in memory, for plain tests of bodies: nothing outlives it, and a step in doubt fails.
#[derive(Debug)]
pub struct MemoryJournal {
    clock: Arc<dyn Clock>,
    inner: Arc<Mutex<Inner>>,
    /// Rung when something is given from outside.
    bell: Arc<Notify>,
}

/// A clock of the wall that goes with the monotonic one, from its making on.
#[derive(Debug)]
struct Running(Instant);

impl Clock for Running {
    fn now(&self) -> Millis {
        Millis(0).plus(self.0.elapsed() + Duration::from_millis(1))
    }
}

#[derive(Default)]
struct Inner {
    lines: Vec<(Committed, Record)>,
    deferred: Vec<Record>,
    rulings: Vec<(String, Ruling)>,
    given: Vec<(Wanted, Given)>,
    blobs: HashMap<Digest, Arc<[u8]>>,
    progress: Option<StepProgressed>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records, {} deferred", self.lines.len(), self.deferred.len())
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::with_clock(Arc::new(Running(Instant::now())))
    }
}

impl MemoryJournal {
    /// An empty log that goes by this clock of the wall.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            inner: Arc::default(),
            bell: Arc::default(),
        }
    }

    /// What a crash right after record `count` would have left.
    #[must_use]
    pub fn cut(&self, count: usize) -> Self {
        let lines = self.lines().into_iter().take(count).collect();
        let known = self.inner();
        let inner = Inner {
            lines,
            given: known.given.clone(),
            blobs: known.blobs.clone(),
            ..Inner::default()
        };
        Self {
            clock: self.clock.clone(),
            inner: Arc::new(Mutex::new(inner)),
            bell: Arc::default(),
        }
    }

    /// Everything that is durable, in order.
    pub fn lines(&self) -> Vec<(Committed, Record)> {
        self.inner().lines.clone()
    }

    /// What a resumed body is answered from.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if a payload is not what its type says.
    pub fn history(&self) -> Result<History, Error> {
        let mut history = History::new();
        for (place, record) in &self.inner().lines {
            let kept = record.artifacts.first().and_then(|kept| kept.hash);
            let beside = match (&record.large, kept) {
                (Some((_, value)), _) => Some(value.clone()),
                (None, kept) => kept.map(|hash| Json::of(&hash)).transpose()?,
            };
            history.add(*place, record.kind, &record.payload, beside)?;
        }
        Ok(history)
    }

    /// Gives a ruling on a call in advance.
    pub fn rule(&self, key: &str, ruling: Ruling) {
        self.inner().rulings.push((key.into(), ruling));
    }

    /// Gives something from outside: an answer to a question, or an update. It outlives a crash, as on a log.
    pub fn give(&self, wanted: Wanted, value: Json) {
        let at = self.now();
        let mut inner = self.inner();
        // It comes after all that stands, and after what was given before.
        let last = inner.given.last().map_or(0, |(_, given)| given.pos);
        let given = Given {
            pos: last.max(inner.lines.len() as u64) + 1,
            at,
            by: "test".into(),
            value,
            cause: None,
        };
        inner.given.push((wanted, given));
        drop(inner);
        self.bell.notify_waiters();
    }

    /// A blob that was stored.
    pub fn blob(&self, hash: &Digest) -> Option<Arc<[u8]>> {
        self.inner().blobs.get(hash).cloned()
    }

    /// How far the body that spoke last was.
    pub fn progressed(&self) -> Option<StepProgressed> {
        self.inner().progress.clone()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        locked(&self.inner)
    }
}

fn locked(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn next_given(&self, wanted: &Wanted, pos: u64) -> Option<Given> {
        let after = |(for_whom, given): &&(Wanted, Given)| for_whom == wanted && given.pos > pos;
        self.given.iter().find(after).map(|(_, given)| given.clone())
    }

    fn commit(&mut self, record: Record, at: Millis) -> Committed {
        let pos = self.lines.len() as u64 + 1;
        let at = self.lines.last().map_or(at, |(last, _)| last.at.max(at));
        let place = Committed { pos, at };
        self.lines.push((place, record));
        place
    }
}

impl Journal for MemoryJournal {
    fn append(&self, record: Record, then: Then) -> BoxFuture<'static, Result<Committed, Error>> {
        let now = self.now();
        let mut inner = self.inner();
        for deferred in std::mem::take(&mut inner.deferred) {
            inner.commit(deferred, now);
        }
        let place = inner.commit(record, now);
        // Under the lock, so that answers are handed over in commit order.
        then(place);
        Box::pin(future::ready(Ok(place)))
    }

    fn defer(&self, record: Record) {
        self.inner().deferred.push(record);
    }

    fn store(&self, mut content: Content) -> BoxFuture<'static, Result<Result<Digest, Error>, Error>> {
        let mut bytes = Vec::new();
        let read = content.read_to_end(&mut bytes).map_err(Error::from);
        let stored = content.judge(read).map(|read| {
            read.map(|_| {
                let hash = Digest::content(&bytes);
                self.inner().blobs.insert(hash, bytes.into());
                hash
            })
        });
        Box::pin(future::ready(stored))
    }

    fn progress(&self, progress: StepProgressed) {
        self.inner().progress = Some(progress);
    }

    fn now(&self) -> Millis {
        self.clock.now()
    }

    fn ruling(&self, key: &str, _: u64) -> BoxFuture<'static, Result<Ruling, Error>> {
        let mut inner = self.inner();
        let given = inner.rulings.iter().position(|(ruled, _)| ruled == key);
        let ruling = if let Some(at) = given {
            inner.rulings.remove(at).1
        } else {
            let message = "nobody rules on a step in doubt here; in a run it waits for `neuron resolve`";
            Ruling::Fail(Error::new(ErrorKind::InDoubt, message))
        };
        Box::pin(future::ready(Ok(ruling)))
    }

    fn given(&self, wanted: Wanted, pos: u64) -> BoxFuture<'static, Result<Given, Error>> {
        let (inner, bell) = (self.inner.clone(), self.bell.clone());
        Box::pin(async move {
            loop {
                let rung = bell.notified();
                let mut rung = std::pin::pin!(rung);
                rung.as_mut().enable();
                if let Some(given) = locked(&inner).next_given(&wanted, pos) {
                    return Ok(given);
                }
                rung.await;
            }
        })
    }
}
