use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::{future::BoxFuture, task::AtomicWaker};

use super::{
    gate::Gate,
    identity::{content, outside, random},
    incarnation::Onward,
    journal::Burn,
    known::Past,
    parting::Parting,
    runtime::{Runtime, Stop},
};
use crate::{Error, Json, Millis, Result, ledger::Used};

/// One body being driven, and what it has been told so far.
pub struct Scope {
    pub(super) id: Arc<str>,
    pub(super) tag: u64,
    attempt: u32,
    pub(super) manner: Manner,
    /// The keys of the threads that it is in, the outermost first.
    pub(super) threads: Arc<[Arc<str>]>,
    /// Answers and starts at or before this `pos` belong to earlier attempts.
    floor: u64,
    pub(super) runtime: Arc<Runtime>,
    /// Which envelopes have answered its waits.
    used: Used,
    draws: AtomicU64,
    gate: Mutex<Gate>,
    /// Who polls the body; woken by answers and orders.
    pub(super) driver: Arc<AtomicWaker>,
    /// The step that the driver of the body polls itself.
    lone: Mutex<Option<BoxFuture<'static, ()>>>,
    burn: Mutex<Burn>,
    /// What the calls of the body took, in milliseconds.
    children_ms: AtomicU64,
    pub(super) on_idle: Mutex<Option<Hook>>,
    /// The agent whose own body this is: it may begin again.
    agent: OnceLock<&'static str>,
    /// What the outside knows the call by, where that is not its key.
    outside: OnceLock<Option<String>>,
    onward: Mutex<Option<Onward>>,
    pub(super) parting: Parting,
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
        let birth = Birth {
            at: birth,
            attempt: 1,
            floor: 0,
            manner,
        };
        Self::new(runtime, id.into(), past, birth, Arc::default())
    }

    /// The scope of one attempt of a call that this body made.
    pub(crate) fn within(&self, id: Arc<str>, past: Past, birth: Birth) -> Arc<Self> {
        Self::new(&self.runtime, id, past, birth, self.threads.clone())
    }

    /// The scope of a thread of this body.
    pub(crate) fn thread(&self, id: Arc<str>, birth: Birth) -> Arc<Self> {
        let threads = self.threads.iter().cloned().chain([id.clone()]).collect();
        let past = self.runtime.take_past(&id);
        Self::new(&self.runtime, id, past, birth, threads)
    }

    fn new(runtime: &Arc<Runtime>, id: Arc<str>, past: Past, birth: Birth, threads: Arc<[Arc<str>]>) -> Arc<Self> {
        static TAGS: AtomicU64 = AtomicU64::new(1);
        let mut past = past;
        if birth.manner != Manner::Replayed {
            past.begin_attempt();
        }
        let used = past.iter().filter(|(_, call)| !call.given_back);
        let came = used.filter_map(|(_, call)| call.came.as_ref());
        let used = Used::of(came.map(|came| (came.topic.clone(), came.seq)));
        let scope = Arc::new(Self {
            used,
            driver: Arc::default(),
            gate: Mutex::new(Gate::new(&id, past, runtime, birth.at)),
            id,
            tag: TAGS.fetch_add(1, Ordering::Relaxed),
            attempt: birth.attempt,
            manner: birth.manner,
            threads,
            floor: birth.floor,
            runtime: runtime.clone(),
            draws: AtomicU64::new(0),
            lone: Mutex::default(),
            burn: Mutex::default(),
            children_ms: AtomicU64::new(0),
            on_idle: Mutex::default(),
            agent: OnceLock::new(),
            outside: OnceLock::new(),
            onward: Mutex::default(),
            parting: Parting::default(),
        });
        runtime.opened(scope.tag, scope.driver.clone());
        scope
    }

    /// The key of the call that made it, or the id of the run.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// What the outside may know the call by that made it: its key, but in a fork a name of its own.
    pub(crate) fn outside(&self) -> &str {
        let name = || self.runtime.forked().map(|run| outside(run, &self.id));
        let outside = self.outside.get_or_init(name);
        outside.as_deref().unwrap_or(&self.id)
    }

    /// The threads that it is in, by key.
    pub(crate) fn threads(&self) -> &Arc<[Arc<str>]> {
        &self.threads
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

    /// Which envelopes have answered its waits.
    pub(crate) fn used(&self) -> &Used {
        &self.used
    }

    /// Adds to what this attempt took.
    pub fn burn(&self, more: Burn) {
        *self.burn.lock().unwrap_or_else(PoisonError::into_inner) += more;
    }

    /// Whether what the body does now may have been done before, by the run that it replays.
    pub(crate) fn is_replaying(&self) -> bool {
        self.manner == Manner::Replayed && !self.gate().live
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

    /// It is the own body of the agent of this name.
    pub(super) fn is_body_of(&self, agent: &'static str) {
        self.agent.get_or_init(|| agent);
    }

    /// The agent whose own body it is.
    pub(crate) fn agent(&self) -> Option<&'static str> {
        self.agent.get().copied()
    }

    /// Drives the body no further: it begins again with these arguments.
    pub(crate) fn go_onward(&self, onward: Onward) {
        *self.onward() = Some(onward);
        self.driver.wake();
    }

    pub(super) fn take_onward(&self) -> Option<Onward> {
        self.onward().take()
    }

    pub(super) fn goes_onward(&self) -> bool {
        self.onward().is_some()
    }

    fn onward(&self) -> MutexGuard<'_, Option<Onward>> {
        self.onward.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body asks to be told: from now on it is not dropped at once.
    pub(crate) fn heed_parting(&self) {
        if self.manner == Manner::Free {
            self.parting.heeded.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the body is to be given time: it wants to know, and nobody else has taken its run over.
    pub(crate) fn is_parted_with_slowly(&self) -> bool {
        self.parting.heeded.load(Ordering::Relaxed) && matches!(self.runtime.stopped(), None | Some(Stop::Cancelled))
    }

    /// Tells the body that its caller has let go of it.
    pub(crate) fn part_with(&self) {
        self.parting.told.send_replace(true);
    }

    /// Whether its caller has let go of it, or its run was cancelled.
    pub(crate) fn is_parted_with(&self) -> bool {
        *self.parting.told.borrow() || self.runtime.stopped() == Some(Stop::Cancelled)
    }

    /// Whether it cleans up: it is told nothing more and starts nothing more.
    pub(crate) fn cleans_up(&self) -> bool {
        self.parting.heeded.load(Ordering::Relaxed) && self.is_parted_with() && self.is_parted_with_slowly()
    }

    /// Waits until the body is being cancelled.
    pub(crate) async fn parting(&self) {
        if self.manner != Manner::Free {
            return std::future::pending().await;
        }
        let mut told = self.parting.told.subscribe();
        let mut cancelled = self.runtime.cancelled.subscribe();
        tokio::select! {
            // Both senders live as long as the scope.
            _ = told.wait_for(|told| *told) => {}
            _ = cancelled.wait_for(|cancelled| *cancelled) => {}
        }
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
        self.claim_renamed(name, &[], identity)
    }

    /// As [`claim`](Self::claim), for what had other names before: a call that was recorded under one of them keeps its
    /// recorded key.
    ///
    /// # Errors
    /// As [`claim`](Self::claim).
    pub fn claim_renamed(&self, name: &str, was: &[&str], identity: &Json) -> Result<Arc<str>, Error> {
        let today = content(&self.id, name, identity)?;
        let former = was.iter().map(|name| content(&self.id, name, identity));
        let former = former.collect::<Result<Vec<_>, _>>()?;
        let key = self.gate().claim(&today, &former);
        if let Some(rehearsal) = self.runtime.rehearsal() {
            rehearsal.called(&key, name);
        }
        Ok(key)
    }

    /// Whether the log says anything of a call, or of a package with this key.
    pub fn is_on_log(&self, key: &str) -> bool {
        self.gate().past.get(key).is_some()
    }

    /// A `once` call that is on the log, that the body has not asked for, and that may be what this step was: it has one
    /// of its names, or a name that no step has today.
    pub(crate) fn unclaimed_once(&self, name: &str, was: &[&str]) -> Option<Arc<str>> {
        let code = self.runtime.code.as_ref();
        let is_gone = |name: &str| code.is_some_and(|code| code.present_name(name).is_none());
        let may_be = |known: &str| known == name || was.contains(&known) || is_gone(known);
        self.gate().unclaimed_once(may_be, self.floor)
    }

    pub(super) fn lone(&self) -> MutexGuard<'_, Option<BoxFuture<'static, ()>>> {
        self.lone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.runtime.closed(self.tag);
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
