use std::{
    fmt,
    future::{Future, IntoFuture},
    hash::{BuildHasher as _, RandomState},
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
};

use neuron::{
    Author, Digest, Error, ErrorKind, Json, Ledger, Payload, Result, RunId,
    def::{Encoded, Entry},
    scope::inside,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::watch;

use super::{
    engine::Engine,
    standing::End,
    update::{Taker, changed, changes},
};

/// A run that is about to begin or to be attached to: await it for its output.
#[must_use = "a run does nothing until it is awaited or started"]
pub struct Run<T> {
    engine: Arc<Engine>,
    id: Option<Result<RunId, Error>>,
    entry: &'static Entry,
    args: Result<Encoded, Error>,
    output: PhantomData<fn() -> T>,
}

impl<T: Payload> Run<T> {
    pub(crate) fn new(engine: Arc<Engine>, entry: &'static Entry, args: Result<Encoded, Error>) -> Self {
        Self {
            engine,
            id: None,
            entry,
            args,
            output: PhantomData,
        }
    }

    /// Names the run. The same id later is the same run: attached to while it goes on, resumed after a crash, answered
    /// from the log once it has ended; with other arguments it is [`ErrorKind::RunIdConflict`].
    ///
    /// An id that is not allowed is told when the run is awaited.
    pub fn id(mut self, id: impl AsRef<str>) -> Self {
        self.id = Some(RunId::new(id));
        self
    }

    /// Begins it and comes back at once. It goes on whether or not anybody waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] inside a body; [`ErrorKind::Malformed`] for an id or arguments that cannot go on the log;
    /// [`ErrorKind::RunIdConflict`] if this process runs another one under the id.
    #[allow(clippy::unused_async, reason = "it starts a task, so it belongs into a runtime")]
    pub async fn start(self) -> Result<Running<T>, Error> {
        if inside() {
            let why = "a body starts no run: an orchestrator assigns another one with `board.assign(…)`, or calls it";
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        let id = self.id.unwrap_or_else(|| fresh(self.entry.meta().name))?;
        let end = self.engine.start(&id, self.entry, self.args?, None)?;
        Ok(Running::new(self.engine.ledger.clone(), id, end))
    }
}

impl<T: Payload> IntoFuture for Run<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.start().await?.wait().await })
    }
}

impl<T> fmt::Debug for Run<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("orchestrator", &self.entry.meta().name)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A run that goes on, whether or not anybody waits for it.
pub struct Running<T> {
    ledger: Ledger,
    id: RunId,
    end: watch::Receiver<Option<End>>,
    output: PhantomData<fn() -> T>,
}

impl<T> Running<T> {
    pub(crate) fn new(ledger: Ledger, id: RunId, end: watch::Receiver<Option<End>>) -> Self {
        Self {
            ledger,
            id,
            end,
            output: PhantomData,
        }
    }
}

impl<T: Payload> Running<T> {
    /// Its id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Asks something of the one agent of the run that takes updates of this name ([`Cx::updates`](neuron::Cx::updates)),
    /// and waits for its response. If none takes them yet, it waits until one does. The request and the response are on the
    /// log: a crash of the agent's process delays the response, and no more.
    ///
    /// ```
    /// # use orchestrator::prelude::*;
    /// # async fn show(running: &Running<()>) -> Result<()> {
    /// let sum: u64 = running.update("add", &5u64).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the agent refuses with; [`ErrorKind::Schema`] for what is no such request, before it is made;
    /// [`ErrorKind::Conflict`] if the run or the agent has ended; [`ErrorKind::Misuse`] if several agents take updates of
    /// this name.
    pub async fn update<Q: Serialize + ?Sized, R: DeserializeOwned>(
        &self,
        name: &str,
        request: &Q,
    ) -> Result<R, Error> {
        let request = Json::of(request)?;
        // Before the look, so that nothing comes between.
        let mut changes = changes(&self.ledger, &self.id)?;
        let taker = loop {
            let (ledger, id, name) = (self.ledger.clone(), self.id.clone(), name.to_owned());
            let found = tokio::task::spawn_blocking(move || Taker::look(&ledger, &id, None, &name)).await;
            match found.map_err(|error| Error::new(ErrorKind::Io, error))? {
                Ok(Some(taker)) => break taker,
                Ok(None) => changed(&mut changes).await?,
                Err(error) if error.kind() == ErrorKind::NotFound => changed(&mut changes).await?,
                Err(error) => return Err(error),
            }
        };
        let asked = self
            .ledger
            .publish(taker.draft(&self.ledger, request, Author::engine())?)
            .await?;
        taker.response(&self.ledger, &asked).await?.decode()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Its failure; [`ErrorKind::Cancelled`]; [`ErrorKind::Denied`] if an order about a build leaves it to others; [`ErrorKind::RunIdConflict`]; [`ErrorKind::Fenced`] if another process
    /// has taken it over; a kind of the disk, in which case it goes on when it is run again.
    pub async fn wait(mut self) -> Result<T, Error> {
        let ended = self.end.wait_for(Option::is_some).await;
        let end = ended.map_err(|_| Error::new(ErrorKind::Panicked, "the driver of the run panicked"))?;
        let output = end.clone().unwrap_or_else(|| Ok(neuron::Json::null()))?;
        output
            .decode()
            .map_err(|error| error.context(format!("the output of run `{}`", self.id)))
    }
}

impl<T: Payload> IntoFuture for Running<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}

impl<T> fmt::Debug for Running<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An id that no other run has: the orchestrator's name, and 16 digits that the system's randomness gives.
pub(crate) fn fresh(name: &str) -> Result<RunId, Error> {
    let chance = [
        RandomState::new().hash_one(name),
        RandomState::new().hash_one(std::process::id()),
    ];
    let seed = format!("{chance:?}");
    let digits = Digest::derive("neuron-run-v1", seed.as_bytes()).to_string();
    let plain = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-');
    let name: String = plain.take(64).collect();
    RunId::new(format!("{name}-{}", &digits[..16]))
}
