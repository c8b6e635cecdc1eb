use std::{
    collections::HashMap,
    fmt,
    io::Read as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::{self, BoxFuture};
use tokio::time::Instant;

use super::{Committed, Content, History, Journal, Record, Ruling, Then};
use crate::{Clock, Digest, Error, ErrorKind, Json, Millis, Result, vocabulary::step::StepProgressed};

/// A log in memory, for plain tests of bodies: nothing outlives it, and a step in doubt fails.
#[derive(Debug)]
pub struct MemoryJournal {
    clock: Arc<dyn Clock>,
    inner: Mutex<Inner>,
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
            inner: Mutex::default(),
        }
    }

    /// What a crash right after record `count` would have left.
    #[must_use]
    pub fn cut(&self, count: usize) -> Self {
        let lines = self.lines().into_iter().take(count).collect();
        let inner = Inner {
            lines,
            blobs: self.inner().blobs.clone(),
            ..Inner::default()
        };
        Self {
            clock: self.clock.clone(),
            inner: Mutex::new(inner),
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

    /// A blob that was stored.
    pub fn blob(&self, hash: &Digest) -> Option<Arc<[u8]>> {
        self.inner().blobs.get(hash).cloned()
    }

    /// How far the body that spoke last was.
    pub fn progressed(&self) -> Option<StepProgressed> {
        self.inner().progress.clone()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
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
}
