use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{future::BoxFuture, task::AtomicWaker};
use tokio::sync::watch;

use super::{
    History, Journal, boundary::Boundary, incarnation::Incarnation, known::Past, once::Unsettled, rehearsal::Rehearsal,
    state::State, updates::Queues,
};
use crate::{
    Error, ErrorKind, Json, Result, SchemaRef,
    token::{ThreadOrder, ThreadOrders},
    vocabulary::orchestration::Claims,
};

/// What all scopes of one package, or of one orchestrator's body, share: their log, their past, the orders given to
/// them, the program's code and state.
pub struct Runtime {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) code: Option<Arc<dyn Code>>,
    pub(crate) strict: bool,
    rehearsal: Option<Arc<Rehearsal>>,
    admission: Option<Arc<dyn Admission>>,
    state: State,
    /// The `pos` of what created the run.
    born: u64,
    /// The run that this is a fork as: its calls have the keys of the run that it parts from.
    fork: Option<Arc<str>>,
    /// What a test has put between the engine and the bodies of steps.
    boundary: Option<Arc<dyn Boundary>>,
    history: Mutex<History>,
    /// Every start is committed before its body runs, because the owner before this one died.
    careful: AtomicBool,
    /// Its body has begun again, so that what was used before is not known any more.
    again: AtomicBool,
    orders: Mutex<Orders>,
    /// The `once` steps that began and have no answer.
    pub(crate) unsettled: Unsettled,
    /// Up to where requests were taken.
    pub(crate) updates: Queues,
    /// Whether a cancel stands, for the steps that want to know.
    pub(super) cancelled: watch::Sender<bool>,
    /// Changes with each order for a thread.
    threads: watch::Sender<()>,
}

/// What a program knows of the steps whose names are on the log.
pub trait Code: Send + Sync + fmt::Debug + 'static {
    /// What a step that is on the log under this name is called today; `None` for one that is not known.
    fn present_name(&self, step: &str) -> Option<&'static str>;

    /// The schema that the arguments of a step have today; `None` for a step that is not known.
    fn args_schema(&self, step: &str) -> Option<SchemaRef>;

    /// What recorded arguments of a step are by today's types, as far as they are part of identity.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if they do not decode.
    fn identity(&self, step: &str, args: &Json) -> Result<Json, Error>;
}

/// Decides whether a step that has never run may run. It is asked once per call, before the first start.
pub trait Admission: Send + Sync + fmt::Debug + 'static {
    /// Waits for leave; `Some` is a refusal, which becomes the step's answer.
    ///
    /// # Errors
    /// What the log says when the question cannot be put on it.
    fn admit(&self, call: Fresh) -> BoxFuture<'static, Result<Option<Error>, Error>>;
}

/// A call that is about to run for the first time.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// The scope whose body made it.
    pub scope: Arc<str>,
    /// Its key.
    pub key: Arc<str>,
    /// The step.
    pub name: &'static str,
    /// What the step asks for while it runs.
    pub claims: Claims,
}

/// Why a body is driven no further, without an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The log could not be written: another owner is in charge, the disk is full.
    Refused(Error),
    /// The code no longer fits the log; a person has to look.
    Held(Error),
    /// A cancel was committed.
    Cancelled,
    /// The body begins again with other arguments.
    Continued,
}

impl Stop {
    /// The reason as an error.
    pub fn into_error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Held(error) => error,
            Self::Cancelled => Error::new(ErrorKind::Cancelled, "the work was cancelled"),
            Self::Continued => Error::new(ErrorKind::Misuse, "nobody drives this body who could begin it again"),
        }
    }
}

#[derive(Default)]
struct Orders {
    paused: bool,
    stop: Option<Stop>,
    /// By the key of a thread, what holds for it and all below it.
    threads: HashMap<Arc<str>, ThreadOrders>,
    /// Who drives the scopes that are open, by tag.
    drivers: HashMap<u64, Arc<AtomicWaker>>,
}

impl Orders {
    fn paused_within(&self, threads: &[Arc<str>]) -> bool {
        let is_paused = |thread: &Arc<str>| self.threads.get(thread).is_some_and(|orders| orders.paused);
        self.paused || threads.iter().any(is_paused)
    }
}

/// What an idle body may do.
pub(super) enum Leave {
    Go,
    Wait,
    Stop(Stop),
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runtime = f.debug_struct("Runtime");
        runtime.field("journal", &self.journal).field("strict", &self.strict);
        runtime.finish_non_exhaustive()
    }
}

impl Runtime {
    /// A runtime without a past.
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self {
            journal,
            code: None,
            strict: false,
            rehearsal: None,
            admission: None,
            state: State::default(),
            born: 0,
            fork: None,
            boundary: None,
            history: Mutex::default(),
            careful: AtomicBool::new(false),
            again: AtomicBool::new(false),
            orders: Mutex::default(),
            unsettled: Unsettled::default(),
            updates: Queues::default(),
            cancelled: watch::Sender::new(false),
            threads: watch::Sender::new(()),
        }
    }

    /// A runtime on a log that is only rehearsed: nothing is appended and nothing begins.
    pub fn rehearsed(rehearsal: Arc<Rehearsal>) -> Self {
        let mut runtime = Self::new(rehearsal.clone());
        runtime.rehearsal = Some(rehearsal);
        runtime
    }

    /// The rehearsal that this is, if it is one.
    pub fn rehearsal(&self) -> Option<&Arc<Rehearsal>> {
        self.rehearsal.as_ref()
    }

    /// What the log holds already.
    #[must_use]
    pub fn history(mut self, mut history: History) -> Self {
        self.unsettled = Unsettled::of(history.unsettled_once());
        self.updates = Queues::of(history.take_updates());
        history.begun().for_each(|(key, seq)| self.journal.begun(key, seq));
        self.history = Mutex::new(history);
        self
    }

    /// The code that names on the log lead to.
    #[must_use]
    pub fn code(mut self, code: Arc<dyn Code>) -> Self {
        self.code = Some(code);
        self
    }

    /// The program's shared state. A boundary for tests is part of it.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.boundary = state.find::<Arc<dyn Boundary>>().cloned();
        self.state = state;
        self
    }

    /// The `pos` of what created the run: what came before it answers no wait that does not ask for it.
    #[must_use]
    pub fn born(mut self, pos: u64) -> Self {
        self.born = pos;
        self
    }

    /// It is a fork under this id: the outside knows its calls by other names than those of the run that it parts from.
    #[must_use]
    pub fn fork(mut self, run: &str) -> Self {
        self.fork = Some(run.into());
        self
    }

    /// Who decides about steps that were not cleared in advance.
    #[must_use]
    pub fn admission(mut self, admission: Arc<dyn Admission>) -> Self {
        self.admission = Some(admission);
        self
    }

    /// Holds the run where code and log part, instead of recording it and going on.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Commits every start before its body runs, until one new answer stands: the owner before this one died, and one
    /// of its steps may be what killed it.
    #[must_use]
    pub fn taken_over(self, taken_over: bool) -> Self {
        self.careful.store(taken_over, Ordering::Relaxed);
        self
    }

    /// The log.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// The program's shared state.
    pub fn shared(&self) -> &State {
        &self.state
    }

    /// The run, if it is a fork.
    pub(super) fn forked(&self) -> Option<&str> {
        self.fork.as_deref()
    }

    /// The `pos` after which a wait begins.
    pub(crate) fn birthplace(&self) -> u64 {
        self.born
    }

    /// Lets running steps end and starts nothing, until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.orders().paused = true;
    }

    /// Goes on after a [`pause`](Self::pause).
    pub fn resume(&self) {
        self.order(|orders| orders.paused = false);
    }

    /// Obeys an order for one thread, and all below it. A thread that is cancelled fails as
    /// [`Cancelled`](ErrorKind::Cancelled), which whoever waits for it is told.
    pub fn order_thread(&self, thread: &str, order: &ThreadOrder) {
        self.order(|orders| orders.threads.entry(thread.into()).or_default().obey(order));
        self.threads.send_replace(());
    }

    /// Waits until a thread is cancelled: the reason.
    pub(crate) async fn thread_cancelled(&self, thread: &str) -> Option<String> {
        let mut changes = self.threads.subscribe();
        loop {
            changes.borrow_and_update();
            let cancelled = self
                .orders()
                .threads
                .get(thread)
                .and_then(|orders| orders.cancelled.clone());
            if let Some(because) = cancelled {
                return because;
            }
            // The sender lives as long as this runtime.
            let _ = changes.changed().await;
        }
    }

    /// Drives no body of this runtime any further. The first reason stands.
    pub fn stop(&self, stop: Stop) {
        self.order(|orders| {
            orders.stop.get_or_insert(stop);
        });
        if self.stopped() == Some(Stop::Cancelled) {
            self.cancelled.send_replace(true);
        }
    }

    /// Changes the orders and lets every driver look at them.
    fn order(&self, change: impl FnOnce(&mut Orders)) {
        let mut orders = self.orders();
        change(&mut orders);
        let drivers: Vec<_> = orders.drivers.values().cloned().collect();
        drop(orders);
        for driver in drivers {
            driver.wake();
        }
    }

    /// Why nothing is driven any further, if so.
    pub fn stopped(&self) -> Option<Stop> {
        self.orders().stop.clone()
    }

    /// What a body that is idle may do, within these threads. Its driver is woken when that changes.
    pub(super) fn leave(&self, pauses: bool, threads: &[Arc<str>]) -> Leave {
        let orders = self.orders();
        match &orders.stop {
            Some(stop) => Leave::Stop(stop.clone()),
            None if pauses && orders.paused_within(threads) => Leave::Wait,
            None => Leave::Go,
        }
    }

    /// A scope is open, and this drives it.
    pub(super) fn opened(&self, tag: u64, driver: Arc<AtomicWaker>) {
        self.orders().drivers.insert(tag, driver);
    }

    /// A scope is no more.
    pub(super) fn closed(&self, tag: u64) {
        self.orders().drivers.remove(&tag);
    }

    pub(crate) fn boundary(&self) -> Option<&dyn Boundary> {
        self.boundary.as_deref()
    }

    pub(crate) fn take_past(&self, scope: &str) -> Past {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).take(scope)
    }

    /// Where the body has begun again last, according to the log.
    pub(crate) fn take_continued(&self) -> Option<Incarnation> {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.take_continued()
    }

    pub(crate) fn is_careful(&self) -> bool {
        self.careful.load(Ordering::Relaxed)
    }

    /// The body begins again.
    pub(super) fn begins_again(&self) {
        self.again.store(true, Ordering::Relaxed);
    }

    /// Whether the body has begun again.
    pub(crate) fn has_begun_again(&self) -> bool {
        self.again.load(Ordering::Relaxed)
    }

    /// A new answer stands.
    pub(crate) fn gained(&self) {
        self.careful.store(false, Ordering::Relaxed);
    }

    pub(crate) fn admission_for(
        &self,
        call: impl FnOnce() -> Fresh,
    ) -> Option<BoxFuture<'static, Result<Option<Error>, Error>>> {
        self.admission.as_ref().map(|admission| admission.admit(call()))
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
