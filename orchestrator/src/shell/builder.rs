use std::{fmt, path::Path, sync::Arc, time::Duration};

use neuron::{
    Callable, Clock, Error, Ledger, Result,
    def::{Entry, Registry},
    limits,
    ownership::Ownership,
    pipeline::Pipeline,
    scope,
    store::{Access, Durability, Fault, Memory, Options},
};

use super::{Neuron, engine::Engine};

/// How a store is opened and its runs are driven.
///
/// ```
/// # use orchestrator::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// struct Greeting(&'static str);
/// let neuron = Neuron::builder().state(Greeting("hello")).strict(true).memory().await?;
/// # Ok(())
/// # }
/// ```
pub struct Builder {
    options: Options,
    state: scope::State,
    entries: Vec<&'static Entry>,
    strict: bool,
    ttl: Duration,
    build: Option<String>,
}

impl Neuron {
    /// Opens the store at `path`, and makes it if it is missing. Opening claims nothing: unfinished runs go on when
    /// they are run again, or by [`Neuron::recover`] and [`Neuron::serve`].
    ///
    /// # Errors
    /// As [`Sqlite::open`](neuron::store::Sqlite::open); [`ErrorKind::Misuse`](neuron::ErrorKind::Misuse) if two linked definitions have one name.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().open(path).await
    }

    /// A store that is opened in another way than the default.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            options: Options::default(),
            state: scope::State::default(),
            entries: Vec::new(),
            strict: false,
            ttl: limits::OWNER_TTL,
            build: None,
        }
    }
}

impl Builder {
    /// What a committed append survives; power loss unless said otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// A value that steps and agents of this program reach by its type: `cx.state::<T>()`.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.insert(value);
        self
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.options.clock = clock;
        self
    }

    /// Where a test breaks commits.
    #[must_use]
    pub fn fault(mut self, fault: Arc<dyn Fault>) -> Self {
        self.options.fault = Some(fault);
        self
    }

    /// Holds a run where its code and its log part, instead of recording it and going on.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// After which time without a heartbeat a process counts as hung, and its runs are taken over.
    #[must_use]
    pub fn owner_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long a commit waits for another process that holds the store.
    #[must_use]
    pub fn store_wait(mut self, wait: Duration) -> Self {
        self.options.wait = wait;
        self
    }

    /// Whether ephemeral topics (progress, presence, tokens of replies) reach the other processes that have the store open;
    /// they do unless said otherwise.
    #[must_use]
    pub fn bridge(mut self, bridge: bool) -> Self {
        self.options.bridge = bridge;
        self
    }

    /// What the log calls this program; the name of its file unless said otherwise.
    #[must_use]
    pub fn build(mut self, build: impl Into<String>) -> Self {
        self.build = Some(build.into());
        self
    }

    /// Registers a definition by hand, for a program into which its crate would not be linked otherwise.
    #[must_use]
    pub fn register<M, F: Callable<M>>(mut self, _definition: F) -> Self {
        self.entries.push(const { &Entry::of::<F::Def>() });
        self
    }

    /// Opens the store at `path`, and makes it if it is missing.
    ///
    /// # Errors
    /// As [`Neuron::open`].
    pub async fn open(mut self, path: impl AsRef<Path>) -> Result<Neuron, Error> {
        self.options.access = Access::Create;
        let (path, options) = (path.as_ref().to_owned(), self.options.clone());
        let opened = tokio::task::spawn_blocking(move || Ledger::open(path, options)).await;
        let ledger = opened.map_err(|error| Error::new(neuron::ErrorKind::Io, error))??;
        self.over(ledger).await
    }

    /// A store in memory, which ends with this process.
    ///
    /// # Errors
    /// [`Misuse`](neuron::ErrorKind::Misuse) if two linked definitions have one name.
    pub async fn memory(self) -> Result<Neuron, Error> {
        let (clock, fault) = (self.options.clock.clone(), self.options.fault.clone());
        let store = Memory::with(clock.clone(), fault)?;
        let ledger = Ledger::over(Arc::new(store), clock, Pipeline::default())?;
        self.over(ledger).await
    }

    /// Runs on a ledger that is open already.
    ///
    /// # Errors
    /// [`Misuse`](neuron::ErrorKind::Misuse) if two linked definitions have one name; a kind of the disk.
    #[allow(clippy::unused_async, reason = "it starts a task, so it belongs into a runtime")]
    pub async fn over(self, ledger: Ledger) -> Result<Neuron, Error> {
        let mut registry = Registry::linked()?;
        for entry in self.entries {
            registry.register(entry)?;
        }
        let ownership = Ownership::join(ledger.clone(), self.ttl)?;
        let build = self.build.unwrap_or_else(program);
        let engine = Engine::new(ledger, ownership, registry, self.state, (self.strict, build))?;
        Ok(Neuron(Arc::new(engine)))
    }
}

/// The name of this program's file.
fn program() -> String {
    let path = std::env::current_exe().ok();
    let stem = path.as_deref().and_then(Path::file_stem);
    stem.map_or_else(|| "unknown".into(), |stem| stem.to_string_lossy().into_owned())
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("options", &self.options)
            .field("strict", &self.strict)
            .finish_non_exhaustive()
    }
}
