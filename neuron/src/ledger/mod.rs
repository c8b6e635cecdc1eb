//! The ledger: append, commit, then publish. The one part that holds both the store and the bus, and so the one address
//! of durability: what it has published, no crash takes back.

mod artifacts;
mod awaited;
mod folding;
mod headers;
mod injected;
mod live;
mod reading;
mod registry;
mod subscription;
mod used;
mod view;
mod waiting;
mod walk;

use std::{fmt, path::Path, sync::Arc};

use crate::{
    Append, Author, Bus, Cause, Clock, Contract, Deferred, Draft, Envelope, EnvelopeRef, Error, ErrorKind, Expectation,
    Pattern, Receipt, Result, Topic,
    bus::{self, Contracts, TopicDeclared},
    pipeline::Pipeline,
    store::{Batch, INJECTED, Observer, Options, Select, Sqlite, Store},
    topic::catalog,
    transport::Transport,
};

pub use artifacts::{ArtifactReader, ArtifactSettled, ArtifactSuperseded, Lineage};
use awaited::Awaited;
pub use awaited::{Found, Wanted};
pub use injected::HeaderInjected;
use live::Live;
pub use reading::Reading;
use registry::Registry;
pub use subscription::{From, Subscription};
pub use used::Used;
pub use view::View;
pub use walk::{Direction, Step};

/// A store opened for a process: appends, reads, subscribes. Cheap to clone.
///
/// Nothing on it takes the past as input: a correction is another envelope.
///
/// ```compile_fail,E0599
/// # fn forget(ledger: &neuron::Ledger, mistake: neuron::EnvelopeRef) -> Result<(), neuron::Error> {
/// ledger.delete(&mistake)?; // there is no such method
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Ledger(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    live: Arc<Live>,
    contracts: Arc<Contracts>,
    registry: Registry,
    awaited: Awaited,
    pipeline: Pipeline,
    clock: Arc<dyn Clock>,
}

impl Ledger {
    /// The ledger of one SQLite file, without stages. Its ephemeral topics reach the other processes that have the file
    /// open, unless [`Options::bridge`] says otherwise.
    ///
    /// ```
    /// # use neuron::{Ledger, store::Options};
    /// # let folder = tempfile::tempdir()?;
    /// let ledger = Ledger::open(folder.path().join("notes.db"), Options::default())?;
    /// # Ok::<(), neuron::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sqlite::open`].
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let (clock, bridge) = (options.clock.clone(), options.bridge);
        let store = Sqlite::open(path, options)?;
        let transport = store.path().filter(|_| bridge && store.writes()).map(bridged);
        Self::carried(Arc::new(store), clock, Pipeline::default(), transport)
    }

    /// A ledger over a store, with the stages that drafts pass. Its ephemeral topics stay in it.
    ///
    /// # Errors
    /// A kind of the disk, if the declarations cannot be read.
    pub fn over(store: Arc<dyn Store>, clock: Arc<dyn Clock>, pipeline: Pipeline) -> Result<Self, Error> {
        Self::carried(store, clock, pipeline, None)
    }

    /// As [`Ledger::over`], with what carries its ephemeral topics to other ledgers of the same store.
    ///
    /// # Errors
    /// As [`Ledger::over`].
    pub fn with_transport(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        pipeline: Pipeline,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, Error> {
        Self::carried(store, clock, pipeline, Some(transport))
    }

    fn carried(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        pipeline: Pipeline,
        transport: Option<Arc<dyn Transport>>,
    ) -> Result<Self, Error> {
        let contracts = Arc::new(Contracts::default());
        let bus = Bus::new(contracts.clone(), clock.clone(), transport);
        let live = Arc::new(Live::new(bus, contracts.clone()));
        let observer: Arc<dyn Observer> = live.clone();
        store.observe(Arc::downgrade(&observer));
        live.begin(store.last()?.0);
        let ledger = Self(Arc::new(Inner {
            store,
            live,
            contracts,
            registry: Registry::default(),
            awaited: Awaited::default(),
            pipeline,
            clock,
        }));
        let weak = Arc::downgrade(&ledger.0);
        ledger.0.contracts.refresh_by(move || {
            let ledger = weak.upgrade().map(Self);
            ledger.map_or(Ok(()), |ledger| ledger.learn_declarations())
        });
        match ledger.learn_declarations() {
            // Whoever needs that declaration is told so then. Everything else stays readable, for `verify` first of all.
            Err(error) if error.kind() == ErrorKind::Corrupt => tracing::warn!(%error, "a declaration is damaged"),
            learnt => learnt?,
        }
        Ok(ledger)
    }

    /// The live wire of this process.
    pub fn bus(&self) -> &Bus {
        &self.0.live.bus
    }

    /// The store of record.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// The clock that stamps envelopes.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// Declares a topic, or a pattern for a family of topics. Declaring the same again does nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Contract`] if it is declared otherwise or belongs to the engine.
    pub async fn declare(&self, pattern: &Pattern, contract: Contract, author: &Author) -> Result<(), Error> {
        let declared = TopicDeclared {
            pattern: pattern.clone(),
            contract,
        };
        // Each turn but the last is the success of somebody else, so this ends.
        while bus::declarable(&self.0.contracts, &declared)? {
            // Another process may have declared a family that this one falls into: every earlier word counts.
            let head = self.0.store.head(&catalog::topics())?;
            self.learn_declarations()?;
            if !bus::declarable(&self.0.contracts, &declared)? {
                break;
            }
            let draft = Draft::message(catalog::topics(), author.clone(), &declared)?.key(pattern.as_str())?;
            let unchanged = Expectation::Head(catalog::topics(), head);
            match self.append(Append::of([draft]).expect(unchanged)).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                outcome => return outcome.map(|_| ()),
            }
        }
        Ok(())
    }

    /// The contract of a topic.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTopic`] if it was never declared.
    pub fn contract(&self, topic: &Topic) -> Result<Contract, Error> {
        self.0.contracts.find(topic)
    }

    /// Appends a batch: durable when this returns, visible to subscribers after that, never before.
    ///
    /// # Errors
    /// As [`Store::append`]; also [`ErrorKind::UnknownTopic`] and [`ErrorKind::Contract`] for the topics of its drafts,
    /// and [`ErrorKind::Schema`] for a payload, header or body that breaks its schema, with the JSON path.
    pub async fn append(&self, append: Append) -> Result<Vec<Receipt>, Error> {
        let batch = self.prepare(append)?;
        self.0.store.append(batch).await
    }

    /// As [`Ledger::append`], from a thread that may block.
    ///
    /// # Errors
    /// As [`Ledger::append`].
    pub fn append_blocking(&self, append: Append) -> Result<Vec<Receipt>, Error> {
        let batch = self.prepare(append)?;
        self.0.store.append_blocking(batch)
    }

    /// Appends one draft.
    ///
    /// # Errors
    /// As [`Ledger::append`].
    pub async fn publish(&self, draft: Draft) -> Result<Receipt, Error> {
        let mut receipts = self.append(Append::of([draft])).await?;
        receipts
            .pop()
            .ok_or_else(|| Error::new(ErrorKind::Corrupt, "the store gave no receipt"))
    }

    /// Appends a batch with the process's next commit, or after 100 ms; later drafts may name its handles.
    ///
    /// # Errors
    /// As [`Ledger::append`] for what can be checked now. A refusal at the commit is told to the owner's next append,
    /// and by [`Deferred::refusal`].
    pub fn defer(&self, append: Append) -> Result<Vec<Deferred>, Error> {
        let batch = self.prepare(append)?;
        self.0.store.defer(batch)
    }

    fn prepare(&self, mut append: Append) -> Result<Batch, Error> {
        let passed = append.drafts.into_iter().map(|draft| self.0.pipeline.run(draft));
        append.drafts = passed.collect::<Result<_, _>>()?;
        let mut schemas = Vec::new();
        for draft in append.known() {
            self.check_topic(draft)?;
            self.0.registry.check(&*self.0.store, draft, &mut schemas)?;
            if draft.kind == INJECTED {
                injected::check(&*self.0.store, draft)?;
            }
        }
        append.prepare(schemas, self.0.clock.now())
    }

    fn check_topic(&self, draft: &Draft) -> Result<(), Error> {
        let topic = &draft.topic;
        if topic.is_reserved() && !draft.trusted {
            let why = format!("topic {topic} belongs to the engine, and only the engine appends to it");
            return Err(Error::new(ErrorKind::Contract, why));
        }
        if !self.contract(topic)?.is_durable() {
            let why = format!("topic {topic} is ephemeral: publish to it on the bus (`ledger.bus().publish(…)`)");
            return Err(Error::new(ErrorKind::Contract, why));
        }
        Ok(())
    }

    fn learn_declarations(&self) -> Result<(), Error> {
        for envelope in self.read(Select::Topic(catalog::topics())).envelopes() {
            let envelope = envelope?;
            let damaged = |error| Error::new(ErrorKind::Corrupt, error);
            self.0
                .contracts
                .learn(envelope.pos, envelope.decode().map_err(damaged)?);
        }
        Ok(())
    }

    /// The envelope that a reference names, checked against its id.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if it is not in this store; [`ErrorKind::Corrupt`] if another one stands in its place.
    pub fn resolve(&self, reference: &EnvelopeRef) -> Result<Envelope, Error> {
        let EnvelopeRef { topic, seq, id } = reference;
        let row = self.0.store.row(topic, *seq)?;
        let row =
            row.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{topic} seq {seq} is not in this store")))?;
        if row.id != *id {
            let why = format!("{topic} seq {seq} has id {}, the reference says {id}", row.id);
            return Err(Error::new(ErrorKind::Corrupt, why));
        }
        row.envelope()
    }

    /// The cause that a draft gives to name this envelope.
    pub fn cause(envelope: &Envelope) -> Cause {
        Cause::Envelope(envelope.reference())
    }
}

/// What carries the ephemeral topics of the store at `path` to other processes.
#[cfg(unix)]
fn bridged(path: &Path) -> Arc<dyn Transport> {
    Arc::new(crate::transport::Bridge::beside(path))
}

/// As on Unix, where the sockets of the bridge are; elsewhere each process is alone.
#[cfg(not(unix))]
fn bridged(_path: &Path) -> Arc<dyn Transport> {
    Arc::new(crate::transport::Local::default())
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("store", &self.0.store)
            .finish_non_exhaustive()
    }
}
