//! A scope is one body that is driven: an agent's, a thread's, a step's, an orchestrator's.
//!
//! It owns what makes a replay the same as the first run: the counters that tell equal calls apart, the recorded
//! answers, and the gate that hands answers over one at a time, in the order of the log, only while the body is idle.

mod ask;
mod drive;
mod gate;
mod journal;
mod memory;
mod past;
mod runtime;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    CALL_CONTEXT, Digest, Error, Json, Millis, Result,
    def::{Encoded, Entry},
};

pub use ask::{Answer, Ask, Taken};
pub use drive::{contain, drive, inside, panicked};
pub use gate::Start;
pub use journal::{Burn, Committed, Journal, Record, Ruling, Then};
pub use memory::MemoryJournal;
pub use past::{History, Past};
pub use runtime::{Admission, Runtime, State, Stop};

pub(crate) use journal::by_size;
pub(crate) use past::{Answer as Recorded, Known};

use gate::Gate;

/// One body being driven, and what it has been told so far.
pub struct Scope {
    id: Arc<str>,
    tag: u64,
    attempt: u32,
    manner: Manner,
    /// Answers and starts at or before this `pos` belong to earlier attempts.
    floor: u64,
    runtime: Arc<Runtime>,
    draws: AtomicU64,
    gate: Mutex<Gate>,
    burn: Mutex<Burn>,
    /// What the calls of the body took, in milliseconds.
    children_ms: AtomicU64,
    on_idle: Mutex<Option<Hook>>,
}

/// What else happens when the body is idle and no recorded answer is left to deliver.
pub type Hook = Arc<dyn Fn(&Arc<Scope>) + Send + Sync>;

/// How a body is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// An agent, a thread, an orchestrator: it awaits calls only, so it can be replayed.
    Replayed,
    /// A step: it may await anything, so it is not.
    Free,
    /// A plain test: nobody drives it, each call opens the gate itself.
    Undriven,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut scope = f.debug_struct("Scope");
        scope
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .field("manner", &self.manner);
        scope.finish_non_exhaustive()
    }
}

impl Scope {
    /// The scope of a body that nobody called: its id is the run's or the package's. `birth` is what its clock says
    /// before the first answer.
    pub fn root(runtime: &Arc<Runtime>, id: &str, birth: Millis, manner: Manner) -> Arc<Self> {
        let past = runtime.take_past(id);
        Self::new(
            runtime,
            id.into(),
            past,
            Birth {
                at: birth,
                attempt: 1,
                floor: 0,
                manner,
            },
        )
    }

    /// The scope of one attempt of a call.
    pub(crate) fn new(runtime: &Arc<Runtime>, id: Arc<str>, past: Past, birth: Birth) -> Arc<Self> {
        static TAGS: AtomicU64 = AtomicU64::new(1);
        Arc::new(Self {
            gate: Mutex::new(Gate::new(&id, past, runtime, birth.at)),
            id,
            tag: TAGS.fetch_add(1, Ordering::Relaxed),
            attempt: birth.attempt,
            manner: birth.manner,
            floor: birth.floor,
            runtime: runtime.clone(),
            draws: AtomicU64::new(0),
            burn: Mutex::default(),
            children_ms: AtomicU64::new(0),
            on_idle: Mutex::default(),
        })
    }

    /// The key of the call that made it, or the id of the run.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// What it shares with the other scopes of its package.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// How its body is driven.
    pub(crate) fn manner(&self) -> Manner {
        self.manner
    }

    /// Which attempt it is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The `at` of the last answer that was delivered: it moves only when the body learns something.
    pub fn now(&self) -> Millis {
        self.gate().now
    }

    /// The next number of the scope's own sequence.
    pub fn random(&self) -> u64 {
        let draw = self.draws.fetch_add(1, Ordering::Relaxed) + 1;
        random(&self.id, draw)
    }

    /// Adds to what this attempt took.
    pub fn burn(&self, more: Burn) {
        *self.burn.lock().unwrap_or_else(PoisonError::into_inner) += more;
    }

    /// Counts the time of a call of this body, which is no part of its own.
    pub(crate) fn child_took(&self, ms: u64) {
        self.children_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// How long the calls of this body took, in milliseconds.
    pub(crate) fn children_ms(&self) -> u64 {
        self.children_ms.load(Ordering::Relaxed)
    }

    /// What this attempt took so far.
    pub fn burnt(&self) -> Burn {
        *self.burn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `hook` whenever the body is idle and no recorded answer is left to deliver, before new calls start.
    pub fn on_idle(&self, hook: Hook) {
        *self.on_idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(hook);
    }

    /// The key of a call that is made now: content first, then the occurrence among equal ones.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the name has no canonical form.
    pub fn claim(&self, name: &str, identity: &Json) -> Result<Arc<str>, Error> {
        let content = content(&self.id, name, identity)?;
        Ok(self.gate().claim(content))
    }

    /// A `once` call of this name that is on the log and that the body has not asked for.
    pub(crate) fn unclaimed_once(&self, name: &str) -> Option<Arc<str>> {
        self.gate().unclaimed_once(name, self.floor)
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a scope begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    pub(crate) at: Millis,
    pub(crate) attempt: u32,
    pub(crate) floor: u64,
    pub(crate) manner: Manner,
}

/// What a call is: the hash of scope, name and arguments.
pub(crate) fn content(scope: &str, name: &str, identity: &Json) -> Result<String, Error> {
    let text = format!("[{},{},{identity}]", Json::of(scope)?, Json::of(name)?);
    Ok(Digest::derive(CALL_CONTEXT, text.as_bytes()).to_string())
}

/// The `draw`-th number of a scope, from 1: the first 8 bytes, little end first, of the BLAKE3 hash of the canonical
/// JSON `[scope, draw]`.
fn random(scope: &str, draw: u64) -> u64 {
    let text = Json::of(&(scope, draw)).unwrap_or_else(|_| Json::null());
    let hash = Digest::content(text.as_str().as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Recorded calls whose arguments have another form today: what they are by today's types leads to the recorded key.
fn aliases(scope: &str, past: &Past, runtime: &Runtime) -> HashMap<String, Vec<Arc<str>>> {
    let mut changed = HashMap::new();
    for (key, call) in past.iter() {
        let Some(today) = by_present_types(call, runtime) else {
            continue;
        };
        if let Ok(content) = content(scope, &call.name, &today.identity) {
            changed
                .entry(content)
                .or_insert_with(Vec::new)
                .push((occurrence(key), call.born, key.clone()));
        }
    }
    for (key, call) in past.iter() {
        let unchanged = key.split('#').next().and_then(|content| changed.get_mut(content));
        if let Some(equal) = unchanged.filter(|equal| equal.iter().all(|(_, _, known)| known != key)) {
            equal.push((occurrence(key), call.born, key.clone()));
        }
    }
    let in_order = |mut keys: Vec<(u64, u64, Arc<str>)>| {
        keys.sort();
        keys.into_iter().map(|(_, _, key)| key).collect()
    };
    changed
        .into_iter()
        .map(|(content, keys)| (content, in_order(keys)))
        .collect()
}

/// The arguments of a recorded step by the present types; `None` if they have the present form already, or no form
/// that is known today.
fn by_present_types(call: &Known, runtime: &Runtime) -> Option<Encoded> {
    let (args, recorded) = (call.args.as_ref()?, call.args_schema?);
    let entry: &Entry = runtime.registry.get("step", &call.name)?;
    let present = entry.form().args_schema();
    if recorded == present {
        return None;
    }
    let args = runtime.journal.upcast(args.clone(), recorded, present).ok()?;
    entry.normalise(&args).ok()
}

fn occurrence(key: &str) -> u64 {
    key.rsplit('#')
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}
