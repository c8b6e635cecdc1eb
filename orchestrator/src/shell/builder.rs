use std::{fmt, path::Path, sync::Arc, time::Duration};

use neuron::{
    Callable, Clock, Error, Json, Ledger, Result,
    def::{Entry, Registry, schema_ref},
    limits,
    ownership::Ownership,
    pipeline::Pipeline,
    schema::Upcasters,
    scope,
    store::{Access, Durability, Fault, Memory, Options},
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

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
    /// Whether everything that is linked is known without being named.
    linked: bool,
    entries: Vec<&'static Entry>,
    strict: bool,
    ttl: Duration,
    build: Option<String>,
    upcasters: Upcasters,
    args: Vec<(&'static str, &'static str, Upcast)>,
    /// The first mistake in what was registered; told when the store is opened.
    mistake: Option<Error>,
}

/// From recorded arguments to those of today.
type Upcast = Box<dyn Fn(Value) -> Result<Value, Error> + Send + Sync>;

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
            linked: true,
            entries: Vec::new(),
            strict: false,
            ttl: limits::OWNER_TTL,
            build: None,
            upcasters: Upcasters::default(),
            args: Vec::new(),
            mistake: None,
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

    /// What the log calls this program: the build that its runs name, and that orders about builds are given for (`neuron
    /// builds`). The name of its file unless said otherwise, which tells no two versions apart; say the version, and what
    /// your pipeline knows beside it:
    ///
    /// ```
    /// # use orchestrator::prelude::*;
    /// let commit = option_env!("GIT_COMMIT").unwrap_or("unknown");
    /// let build = format!("{} {} ({commit})", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    /// let builder = Neuron::builder().build(build);
    /// # drop(builder);
    /// ```
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

    /// Knows only the definitions that are registered by hand. So one program can hold two versions of its code side by
    /// side, and a test can drive with the second what the first has recorded.
    ///
    /// ```standalone_crate
    /// # use orchestrator::prelude::*;
    /// mod v1 {
    ///     # use orchestrator::prelude::*;
    ///     #[orchestrator]
    ///     pub async fn press(_board: &Board) -> Result<u32> { Ok(1) }
    /// }
    /// mod v2 {
    ///     # use orchestrator::prelude::*;
    ///     #[orchestrator(was = "press")]
    ///     pub async fn printing(_board: &Board) -> Result<u32> { Ok(2) }
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let old = Neuron::builder().unlinked().register(v1::press).memory().await?;
    /// old.run(v1::press, ()).id("r").await?;
    /// let new = Neuron::builder().unlinked().register(v2::printing).over(old.ledger().clone()).await?;
    /// assert_eq!(new.run(v2::printing, ()).id("r").await?, 1, "the recorded result");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn unlinked(mut self) -> Self {
        self.linked = false;
        self
    }

    /// Says how an output that was recorded as an old type becomes the present one, where the present one does not read
    /// it. Several in a row are taken one after the other.
    ///
    /// ```
    /// # use orchestrator::prelude::*;
    /// # use schemars::JsonSchema;
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Seconds(u64);
    /// #[derive(Serialize, JsonSchema)]
    /// struct Length { ms: u64 }
    /// let builder = Neuron::builder().upcast(|Seconds(old)| Ok(Length { ms: old * 1000 }));
    /// # drop(builder);
    /// ```
    #[must_use]
    pub fn upcast<Old, New>(mut self, upcast: impl Fn(Old) -> Result<New, Error> + Send + Sync + 'static) -> Self
    where
        Old: DeserializeOwned + JsonSchema + 'static,
        New: Serialize + JsonSchema + 'static,
    {
        let (from, to) = (schema_ref::<Old>(), schema_ref::<New>());
        let registered = self.upcasters.register_between(from, to, move |value| {
            let old = Json::of(&value)?.decode()?;
            Ok(Json::of(&upcast(old)?)?.to_value())
        });
        if let Err(error) = registered {
            self.mistake.get_or_insert(error);
        }
        self
    }

    /// Says how recorded arguments of a definition become those that it takes today, where its present types do not
    /// read them: of a step, so that its call is the recorded one; of an orchestrator, so that its open runs go on. They
    /// come as an object with one field per parameter.
    ///
    /// ```standalone_crate
    /// # use orchestrator::prelude::*;
    /// /// Once it took whole euros.
    /// #[step]
    /// async fn charge(_cx: &Cx, cents: u64) -> Result<u64> { Ok(cents) }
    /// let builder = Neuron::builder().upcast_args(charge, |old| {
    ///     let euros = old["euros"].as_u64().unwrap_or_default();
    ///     Ok(serde_json::json!({ "cents": euros * 100 }))
    /// });
    /// # drop(builder);
    /// ```
    #[must_use]
    pub fn upcast_args<M, F: Callable<M>>(
        mut self,
        _definition: F,
        upcast: impl Fn(Value) -> Result<Value, Error> + Send + Sync + 'static,
    ) -> Self {
        let meta = const { &Entry::of::<F::Def>() }.meta();
        self.args.push((meta.kind, meta.name, Box::new(upcast)));
        self
    }

    /// The values that its steps and agents reach by type.
    pub(crate) fn shared(&self) -> scope::State {
        self.state.clone()
    }

    /// What the program knows by name, and how it reads what was recorded.
    pub(crate) fn code(&mut self) -> Result<(Registry, Upcasters), Error> {
        if let Some(mistake) = self.mistake.take() {
            return Err(mistake);
        }
        let mut registry = if self.linked {
            Registry::linked()?
        } else {
            Registry::new()
        };
        for entry in std::mem::take(&mut self.entries) {
            registry.register(entry)?;
        }
        for (kind, name, upcast) in std::mem::take(&mut self.args) {
            registry.upcast_args(kind, name, upcast)?;
        }
        Ok((registry, std::mem::take(&mut self.upcasters)))
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
    pub async fn over(mut self, ledger: Ledger) -> Result<Neuron, Error> {
        let code = self.code()?;
        let ownership = Ownership::join(ledger.clone(), self.ttl)?;
        let build = self.name_of_build();
        let engine = Engine::new(ledger, ownership, code, self.state, (self.strict, build))?;
        Ok(Neuron(Arc::new(engine)))
    }
}

impl Builder {
    /// What the log calls this program.
    pub(crate) fn name_of_build(&self) -> String {
        self.build.clone().unwrap_or_else(program_name)
    }
}

/// The name of this program's file.
pub(crate) fn program_name() -> String {
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
