use std::{
    collections::HashMap,
    fmt,
    io::Read as _,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures::future::{self, BoxFuture};
use tokio::{sync::Notify, time::Instant};

use super::{Committed, Content, Given, History, Journal, Record, Ruling, Said, Sought, Then, ThenSaid, is_refusal};
use crate::{
    Append, Author, Cause, Clock, Contract, Digest, Envelope, EnvelopeRef, Error, ErrorKind, Json, Ledger, Millis,
    Pattern, Result, Topic,
    ledger::{Found, Wanted},
    pipeline::Pipeline,
    store::Memory,
    vocabulary::{
        Message as _,
        step::{EmitCompleted, StepProgressed},
    },
};

/// A log in memory, for plain tests of bodies: nothing outlives it, and a step in doubt fails.
#[derive(Debug)]
pub struct MemoryJournal {
    clock: Arc<dyn Clock>,
    inner: Arc<Mutex<Inner>>,
    /// Made when a body first says something on a topic, or waits for it.
    topics: Arc<OnceLock<Topics>>,
    /// Rung when something is given from outside.
    bell: Arc<Notify>,
}

/// The topics beside the log.
#[derive(Debug)]
struct Topics {
    store: Memory,
    ledger: Ledger,
}

impl Topics {
    fn over(store: Memory, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let ledger = Ledger::over(Arc::new(store.clone()), clock, Pipeline::default())?;
        Ok(Self { store, ledger })
    }
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
    given: Vec<(Sought, Given)>,
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
            topics: Arc::default(),
            bell: Arc::default(),
        }
    }

    /// What a crash right after record `count` would have left. On the topics it leaves what stood there before the first
    /// that a body has said since.
    #[must_use]
    pub fn cut(&self, count: usize) -> Self {
        let mut lines = self.lines();
        let lost = lines.split_off(count.min(lines.len()));
        let topics = Arc::new(self.topics_without(&lost).map_or_else(OnceLock::new, OnceLock::from));
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
            topics,
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
            let beside = match (&record.large, kept, said(record)) {
                (Some((_, value)), ..) => Some(value.clone()),
                (None, Some(hash), _) => Some(Json::of(&hash)?),
                (None, None, said) => said.map(Json::of).transpose()?,
            };
            history.add(*place, place.pos, record.kind, &record.payload, beside)?;
        }
        Ok(history)
    }

    /// Gives a ruling on a call in advance.
    pub fn rule(&self, key: &str, ruling: Ruling) {
        self.inner().rulings.push((key.into(), ruling));
    }

    /// Gives something from outside: an answer to a question, or an update. It outlives a crash, as on a log.
    pub fn give(&self, wanted: Sought, value: Json) {
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

    /// The topics on which bodies say something and wait. One that nobody has declared is durable as soon as it is
    /// used: a plain test declares nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if no thread can be started.
    pub fn ledger(&self) -> Result<Ledger, Error> {
        if let Some(topics) = self.topics.get() {
            return Ok(topics.ledger.clone());
        }
        let made = Topics::over(Memory::with(self.clock.clone(), None)?, self.clock.clone())?;
        Ok(self.topics.get_or_init(|| made).ledger.clone())
    }

    /// The topics as they stood before the first word of these records.
    fn topics_without(&self, lost: &[(Committed, Record)]) -> Option<Topics> {
        let topics = self.topics.get()?;
        let first = lost.iter().find_map(|(_, record)| said(record));
        let place = first.and_then(|said| topics.ledger.resolve(said).ok());
        let kept = place.map_or(usize::MAX, |envelope| usize::try_from(envelope.pos - 1).unwrap_or(0));
        Topics::over(topics.store.cut(kept).ok()?, self.clock.clone()).ok()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        locked(&self.inner)
    }
}

/// What a body has said, if that is what this record tells it.
fn said(record: &Record) -> Option<&EnvelopeRef> {
    match &record.cause {
        Some(Cause::Envelope(said)) if record.kind == EmitCompleted::TYPE => Some(said),
        _ => None,
    }
}

/// Declares a topic that nobody has declared.
async fn declared(ledger: &Ledger, topic: Option<Topic>) -> Result<(), Error> {
    match topic.filter(|topic| ledger.contract(topic).is_err()) {
        Some(topic) => {
            let author = Author::engine();
            ledger
                .declare(&Pattern::exactly(&topic), Contract::Durable, &author)
                .await
        }
        None => Ok(()),
    }
}

fn locked(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Commits a record, and before it what was deferred.
    fn commit_all(&mut self, record: Record, at: Millis) -> Committed {
        for deferred in std::mem::take(&mut self.deferred) {
            self.commit(deferred, at);
        }
        self.commit(record, at)
    }

    fn next_given(&self, wanted: &Sought, pos: u64) -> Option<Given> {
        let after = |(for_whom, given): &&(Sought, Given)| for_whom == wanted && given.pos > pos;
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
        let place = inner.commit_all(record, now);
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

    fn emit(&self, said: Said, answer: Record, then: ThenSaid) -> BoxFuture<'static, Result<Result<(), Error>, Error>> {
        let (ledger, clock, inner) = (self.ledger(), self.clock.clone(), self.inner.clone());
        Box::pin(async move {
            let (ledger, Said { draft, expectations }) = (ledger?, said);
            declared(&ledger, Some(draft.topic.clone())).await?;
            let append = expectations.into_iter().fold(Append::of([draft]), Append::expect);
            let said = match ledger.append(append).await {
                Ok(receipts) => receipts.into_iter().next(),
                Err(error) if is_refusal(&error) => return Ok(Err(error)),
                Err(error) => return Err(error),
            };
            let said = said.ok_or_else(|| Error::new(ErrorKind::Corrupt, "the store gave no receipt"))?;
            let reference = EnvelopeRef {
                topic: said.topic,
                seq: said.seq,
                id: said.id,
            };
            let mut answer = answer;
            answer.cause = Some(Cause::Envelope(reference.clone()));
            let mut inner = locked(&inner);
            let place = inner.commit_all(answer, clock.now());
            // Under the lock, so that answers are handed over in commit order.
            then(place, reference);
            Ok(Ok(()))
        })
    }

    fn wait(
        &self,
        wanted: Wanted,
        timer: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, Result<Result<Option<Found>, Error>, Error>> {
        let ledger = self.ledger();
        Box::pin(async move {
            let ledger = ledger?;
            declared(&ledger, wanted.filter.pattern().literal()).await?;
            ledger.wait(&wanted, timer).await
        })
    }

    fn envelope(&self, reference: &EnvelopeRef) -> Result<Envelope, Error> {
        self.ledger()?.written(reference)
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

    fn stands(&self, wanted: Sought, pos: u64) -> BoxFuture<'static, Result<Option<Given>, Error>> {
        Box::pin(future::ready(Ok(self.inner().next_given(&wanted, pos))))
    }

    fn given(&self, wanted: Sought, pos: u64) -> BoxFuture<'static, Result<Given, Error>> {
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
