use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::{self, BoxFuture};

use super::journal::{Committed, Journal, Record, Ruling, Then};
use crate::{
    Envelope, EnvelopeRef, Error, Json, Ledger, Millis, Result, SchemaRef,
    schema::Upcasters,
    vocabulary::{
        Message as _,
        step::{ReplayReordered, ReplayUnrecorded, ThreadCompleted, ThreadFailed},
    },
};

/// A log that ends where it ends: bodies are driven over their recorded answers, nothing is appended, and no work begins.
///
/// It is the journal of such a [`Runtime`](super::Runtime), and notes what the bodies would do next.
pub struct Rehearsal {
    /// Where envelopes are looked up that answers name.
    ledger: Ledger,
    upcasters: Arc<Upcasters>,
    /// The time of the last envelope.
    at: Millis,
    /// What was given an answer here, so that each has a place after the log.
    answered: AtomicU64,
    notes: Mutex<Notes>,
}

/// Everything that was noted.
#[derive(Default)]
struct Notes {
    /// Calls that were made, by key.
    calls: HashMap<Arc<str>, Called>,
    /// How each scope stood when it was last idle, or when its body ended.
    scopes: BTreeMap<Arc<str>, Stood>,
    reordered: Vec<ReplayReordered>,
    unrecorded: Vec<Arc<str>>,
    /// Bodies of threads, to be driven like the one that made them.
    threads: Vec<BoxFuture<'static, ()>>,
}

/// A call that a body has made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Called {
    pub(crate) name: String,
    /// The names it had before, if it must not happen twice.
    pub(crate) once: Option<&'static [&'static str]>,
}

/// How a scope stands where its log ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stood {
    /// Whether its body has ended.
    pub(crate) ended: bool,
    /// The place of the last answer that it was told.
    pub(crate) told: u64,
    /// Calls that would run now and are not on the log.
    pub(crate) fresh: BTreeMap<Arc<str>, String>,
    /// Of these, the ones that are held, because of the recorded call that may be theirs.
    pub(crate) held: BTreeMap<Arc<str>, Arc<str>>,
    /// Calls that began before and would go on.
    pub(crate) going_on: BTreeMap<Arc<str>, String>,
    /// Recorded answers that were not asked for, and packages that stand on the board and were not assigned: key, name
    /// and place.
    pub(crate) unasked: Vec<(Arc<str>, String, u64)>,
}

/// What a body would do otherwise than the log says, or could not do at all.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// The code no longer asks for what is recorded.
    Unasked {
        /// The recorded call.
        key: String,
        /// Its name.
        name: String,
        /// Where its answer stands, or a package's assignment.
        pos: u64,
        /// The call of that name that would run in its place, if one would.
        instead: Option<String>,
    },
    /// A call would run before answers that are recorded already.
    First {
        /// The call.
        key: String,
        /// Its name.
        name: String,
        /// What it comes before.
        before: String,
        /// Where that stands.
        pos: u64,
    },
    /// A `once` step would be held: the recorded call may be the same one.
    Held {
        /// The call.
        key: String,
        /// Its name.
        name: String,
        /// The recorded call.
        recorded: String,
    },
    /// The body awaits something that is not on the log.
    Unrecorded,
    /// The body would be left: an answer does not decode.
    Stopped(Error),
}

impl Rehearsal {
    /// A rehearsal on a log whose last envelope is of this time.
    pub fn new(ledger: Ledger, upcasters: Arc<Upcasters>, at: Millis) -> Arc<Self> {
        Arc::new(Self {
            ledger,
            upcasters,
            at,
            answered: AtomicU64::new(AFTER),
            notes: Mutex::default(),
        })
    }

    /// A call was made that is not on the log and that somebody else begins: a package.
    pub fn would_begin(&self, scope: &Arc<str>, key: &Arc<str>, name: &str) {
        let mut notes = self.notes();
        let stood = notes.scopes.entry(scope.clone()).or_default();
        stood.fresh.insert(key.clone(), name.to_owned());
    }

    pub(crate) fn called(&self, key: &Arc<str>, name: &str) {
        name.clone_into(&mut self.notes().calls.entry(key.clone()).or_default().name);
    }

    pub(crate) fn is_once(&self, key: &Arc<str>, was: &'static [&'static str]) {
        self.notes().calls.entry(key.clone()).or_default().once = Some(was);
    }

    pub(crate) fn call(&self, key: &str) -> Called {
        self.notes().calls.get(key).cloned().unwrap_or_default()
    }

    pub(crate) fn thread(&self, body: BoxFuture<'static, ()>) {
        self.notes().threads.push(body);
    }

    pub(crate) fn threads(&self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut self.notes().threads)
    }

    pub(crate) fn stands(&self, scope: &Arc<str>, change: impl FnOnce(&mut Stood)) {
        change(self.notes().scopes.entry(scope.clone()).or_default());
    }

    /// What was found so far.
    pub fn findings(&self) -> Vec<Finding> {
        let notes = self.notes();
        let mut findings = Vec::new();
        for stood in notes.scopes.values() {
            stood.add(&mut findings);
        }
        findings.extend(notes.reordered.iter().map(|found| Finding::First {
            key: found.key.clone(),
            name: found.name.clone(),
            before: found.used_name.clone(),
            pos: found.pos,
        }));
        findings.extend(notes.unrecorded.iter().map(|_| Finding::Unrecorded));
        findings
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a thread is called.
pub(crate) const THREAD: &str = "$thread";

/// Places from here on are after every log.
const AFTER: u64 = 1 << 62;

impl Stood {
    fn add(&self, findings: &mut Vec<Finding>) {
        let held = self.held.iter().map(|(key, recorded)| Finding::Held {
            key: key.to_string(),
            name: self.fresh.get(key).cloned().unwrap_or_default(),
            recorded: recorded.to_string(),
        });
        findings.extend(held);
        // A held call is told once, and so is what holds it.
        let free = |key: &Arc<str>| !self.held.contains_key(key);
        let unasked: Vec<_> = self
            .unasked
            .iter()
            .filter(|(key, ..)| !self.held.values().any(|recorded| recorded == key))
            .collect();
        let mut fresh: Vec<_> = self.fresh.iter().filter(|(key, _)| free(key)).collect();
        let mut rest = Vec::new();
        for (key, name, pos) in unasked {
            // What is older than what it was told the code has gone past.
            let passed = self.ended || *pos < self.told;
            let twin = fresh.iter().position(|(_, fresh)| *fresh == name && !passed);
            let instead = twin.map(|at| fresh.remove(at).0.to_string());
            if instead.is_none() && !passed {
                rest.push((name, *pos));
                continue;
            }
            findings.push(Finding::Unasked {
                key: key.to_string(),
                name: name.clone(),
                pos: *pos,
                instead,
            });
        }
        // Whether the code would ask for the rest nobody can know before these have run.
        let Some((before, pos)) = rest.into_iter().min_by_key(|(_, pos)| *pos) else {
            return;
        };
        let waits = fresh.into_iter().chain(&self.going_on);
        findings.extend(waits.map(|(key, name)| Finding::First {
            key: key.to_string(),
            name: name.clone(),
            before: before.clone(),
            pos,
        }));
    }
}

impl Journal for Rehearsal {
    fn append(&self, record: Record, then: Then) -> BoxFuture<'static, Result<Committed, Error>> {
        // What a thread gives follows from the log alone, so its body may be told.
        if [ThreadCompleted::TYPE, ThreadFailed::TYPE].contains(&record.kind) {
            let pos = self.answered.fetch_add(1, Ordering::Relaxed);
            let place = Committed { pos, at: self.at };
            then(place);
            return Box::pin(future::ready(Ok(place)));
        }
        Box::pin(future::pending())
    }

    fn defer(&self, record: Record) {
        match record.kind {
            ReplayReordered::TYPE => {
                if let Ok(found) = record.payload.decode() {
                    self.notes().reordered.push(found);
                }
            }
            ReplayUnrecorded::TYPE => self.notes().unrecorded.push(record.scope),
            _ => {}
        }
    }

    fn now(&self) -> Millis {
        self.at
    }

    fn ruling(&self, _key: &str, _pos: u64) -> BoxFuture<'static, Result<Ruling, Error>> {
        Box::pin(future::pending())
    }

    fn envelope(&self, reference: &EnvelopeRef) -> Result<Envelope, Error> {
        self.ledger.written(reference)
    }

    fn upcast(&self, value: Json, from: SchemaRef, to: SchemaRef) -> Result<Json, Error> {
        Json::of(&self.upcasters.upcast(value.to_value(), from, to)?)
    }
}

impl fmt::Debug for Rehearsal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rehearsal")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
