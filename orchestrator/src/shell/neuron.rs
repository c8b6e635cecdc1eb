use std::{
    collections::HashMap,
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use neuron::{
    Author, Callable, Error, ErrorKind, Json, Ledger, Orchestrator, Result, RunId,
    def::{Args, Def, Encoded, Entry, Registry, encode},
    ownership::{Claimed, Ownership},
    schema::Upcasters,
    scope,
};
use tokio::sync::watch;

use super::{
    Board, Builder, Run, Target, order,
    standing::End,
    supervise::{Errand, supervise},
    switchboard::Switchboard,
};
use crate::protocol::Order;

/// A store, and the runs of this process on it. Cheap to clone.
#[derive(Clone)]
pub struct Neuron(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) ledger: Ledger,
    pub(crate) ownership: Ownership,
    pub(crate) registry: Arc<Registry>,
    pub(crate) upcasters: Arc<Upcasters>,
    pub(crate) state: scope::State,
    pub(crate) strict: bool,
    pub(crate) build: String,
    pub(crate) switchboard: Arc<Switchboard>,
    runs: Mutex<HashMap<RunId, Live>>,
}

/// A run that this process drives, or waits for.
struct Live {
    name: &'static str,
    args: Json,
    end: watch::Receiver<Option<End>>,
}

impl Neuron {
    /// Opens the store at `path`, and makes it if it is missing. Opening claims nothing: unfinished runs go on when
    /// they are run again, or by [`Neuron::recover`] and [`Neuron::serve`].
    ///
    /// # Errors
    /// As [`Sqlite::open`](neuron::store::Sqlite::open); [`ErrorKind::Misuse`] if two linked definitions have one name.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().open(path).await
    }

    /// A store that is opened in another way than the default.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// The log: the four verbs, folds, subscriptions, artifacts.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// A run of an orchestrator. Without an id it is a new one; with one ([`Run::id`]) it is attached to, gives its
    /// recorded result, resumes, or begins, whichever is the case.
    ///
    /// A body starts no run of its own: it assigns the orchestrator instead, or calls it.
    pub fn run<M, F>(
        &self,
        _orchestrator: F,
        args: <<F::Def as Def>::Args as Args>::Bare,
    ) -> Run<<F::Def as Def>::Output>
    where
        F: Callable<M>,
        F::Def: Orchestrator + Def<Context = Board>,
    {
        let args = <F::Def as Def>::Args::from_bare(args);
        Run::new(self.clone(), const { &Entry::of::<F::Def>() }, encode::<F::Def>(&args))
    }

    /// Lets the running steps of a run or of one token end, and starts no more of them.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn pause(&self, target: &Target) -> Result<(), Error> {
        self.order(target, Order::Pause, None).await
    }

    /// Lets a paused run or token go on.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn resume(&self, target: &Target) -> Result<(), Error> {
        self.order(target, Order::Resume, None).await
    }

    /// Stops a run or the work of one token for good.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn cancel(&self, target: &Target, because: impl Into<String>) -> Result<(), Error> {
        self.order(target, Order::Cancel { because: None }, Some(because.into()))
            .await
    }

    async fn order(&self, target: &Target, what: Order, because: Option<String>) -> Result<(), Error> {
        order(&self.0.ledger, target, what, because, Author::engine())
            .await
            .map(drop)
    }

    /// Drives a run in this process, or attaches to it if this process drives it already.
    pub(crate) fn start(
        &self,
        id: &RunId,
        entry: &'static Entry,
        args: Encoded,
        claimed: Option<Claimed>,
    ) -> Result<watch::Receiver<Option<End>>, Error> {
        let mut runs = self.0.runs();
        let name = entry.meta().name;
        if let Some(live) = runs.get(id).filter(|live| live.end.has_changed().is_ok()) {
            if live.name != name || live.args != args.recorded {
                return Err(conflict(id, live.name));
            }
            return Ok(live.end.clone());
        }
        let (told, end) = watch::channel(None);
        let live = Live {
            name,
            args: args.recorded.clone(),
            end: end.clone(),
        };
        runs.insert(id.clone(), live);
        drop(runs);
        let (inner, id) = (self.0.clone(), id.clone());
        let span = tracing::info_span!("run", run = %id, orchestrator = name);
        let errand = Errand {
            id: id.clone(),
            entry,
            args,
            claimed,
        };
        tokio::spawn(async move {
            let outcome = tracing::Instrument::instrument(supervise(&inner, errand), span).await;
            // Gone before the end is told, so that whoever runs it again reads the log.
            inner.runs().remove(&id);
            told.send_replace(Some(outcome));
        });
        Ok(end)
    }

    /// The runs that this process drives or waits for.
    pub(crate) fn is_live(&self, id: &RunId) -> bool {
        self.0.runs().contains_key(id)
    }

    pub(crate) fn live(&self) -> usize {
        self.0.runs().len()
    }
}

impl Inner {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Live>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new(
        ledger: Ledger,
        ownership: Ownership,
        registry: Registry,
        state: scope::State,
        options: (bool, String),
    ) -> Result<Self, Error> {
        Ok(Self {
            switchboard: Switchboard::listen(&ledger)?,
            ledger,
            ownership,
            registry: Arc::new(registry),
            upcasters: Arc::default(),
            state,
            strict: options.0,
            build: options.1,
            runs: Mutex::default(),
        })
    }
}

pub(crate) fn conflict(id: &RunId, name: &str) -> Error {
    let why = format!("run `{id}` is one of `{name}` with other arguments: give this one another id");
    Error::new(ErrorKind::RunIdConflict, why)
}

impl fmt::Debug for Neuron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neuron")
            .field("ledger", &self.0.ledger)
            .finish_non_exhaustive()
    }
}
