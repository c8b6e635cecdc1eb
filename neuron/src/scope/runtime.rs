use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use futures::future::BoxFuture;

use super::{History, Journal, past::Past};
use crate::{
    Error, ErrorKind, Result,
    def::{Entry, Registry},
};

/// What all scopes of one package, or of one orchestrator's body, share: their log, their past, the orders given to
/// them, the program's code and state.
pub struct Runtime {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) strict: bool,
    admission: Option<Arc<dyn Admission>>,
    state: State,
    history: Mutex<History>,
    /// Every start is committed before its body runs, because the owner before this one died.
    careful: AtomicBool,
    orders: Mutex<Orders>,
}

/// Decides whether a step that was not cleared in advance may run.
pub trait Admission: Send + Sync + fmt::Debug + 'static {
    /// Waits for leave to run the call `key` of `step`; `Some` is a refusal, which becomes the step's answer.
    ///
    /// # Errors
    /// What the log says when the question cannot be put on it.
    fn admit(&self, step: &'static Entry, scope: &str, key: &str) -> BoxFuture<'static, Result<Option<Error>, Error>>;
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
}

impl Stop {
    /// The reason as an error.
    pub fn into_error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Held(error) => error,
            Self::Cancelled => Error::new(ErrorKind::Cancelled, "the work was cancelled"),
        }
    }
}

#[derive(Debug, Default)]
struct Orders {
    paused: bool,
    stop: Option<Stop>,
    drivers: Vec<Waker>,
}

/// What an idle body may do.
pub(super) enum Leave {
    Go,
    Wait,
    Stop(Stop),
}

/// The program's shared state, by type.
#[derive(Clone, Default)]
pub struct State(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({} values)", self.0.len())
    }
}

impl State {
    /// Adds a value; a later one of the same type takes the place of an earlier.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of a type.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if none was given.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<&T, Error> {
        let value = self.0.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref());
        value.ok_or_else(|| {
            let name = type_name::<T>();
            Error::new(
                ErrorKind::NotFound,
                format!("no state of type `{name}` was given to this program"),
            )
        })
    }
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
            registry: Arc::default(),
            strict: false,
            admission: None,
            state: State::default(),
            history: Mutex::default(),
            careful: AtomicBool::new(false),
            orders: Mutex::default(),
        }
    }

    /// What the log holds already.
    #[must_use]
    pub fn history(mut self, history: History) -> Self {
        self.history = Mutex::new(history);
        self
    }

    /// The code that names on the log lead to.
    #[must_use]
    pub fn registry(mut self, registry: Arc<Registry>) -> Self {
        self.registry = registry;
        self
    }

    /// The program's shared state.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.state = state;
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

    /// Lets running steps end and starts nothing, until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.orders().paused = true;
    }

    /// Goes on after a [`pause`](Self::pause).
    pub fn resume(&self) {
        let mut orders = self.orders();
        orders.paused = false;
        let drivers = std::mem::take(&mut orders.drivers);
        drop(orders);
        drivers.into_iter().for_each(Waker::wake);
    }

    /// Drives no body of this runtime any further. The first reason stands.
    pub fn stop(&self, stop: Stop) {
        let mut orders = self.orders();
        orders.stop.get_or_insert(stop);
        let drivers = std::mem::take(&mut orders.drivers);
        drop(orders);
        drivers.into_iter().for_each(Waker::wake);
    }

    /// Why nothing is driven any further, if so.
    pub fn stopped(&self) -> Option<Stop> {
        self.orders().stop.clone()
    }

    /// What a body that is idle may do; it is woken when that changes.
    pub(super) fn leave(&self, pauses: bool, driver: &Waker) -> Leave {
        let mut orders = self.orders();
        if let Some(stop) = &orders.stop {
            return Leave::Stop(stop.clone());
        }
        if !orders.drivers.iter().any(|known| known.will_wake(driver)) {
            orders.drivers.push(driver.clone());
        }
        if pauses && orders.paused {
            Leave::Wait
        } else {
            Leave::Go
        }
    }

    /// A driver that ended is woken no more.
    pub(super) fn leaves(&self, driver: &Waker) {
        self.orders().drivers.retain(|known| !known.will_wake(driver));
    }

    pub(crate) fn take_past(&self, scope: &str) -> Past {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).take(scope)
    }

    pub(crate) fn is_careful(&self) -> bool {
        self.careful.load(Ordering::Relaxed)
    }

    /// A new answer stands.
    pub(crate) fn gained(&self) {
        self.careful.store(false, Ordering::Relaxed);
    }

    pub(crate) fn admits(
        &self,
        step: &'static Entry,
        scope: &str,
        key: &str,
    ) -> Option<BoxFuture<'static, Result<Option<Error>, Error>>> {
        self.admission
            .as_ref()
            .map(|admission| admission.admit(step, scope, key))
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
