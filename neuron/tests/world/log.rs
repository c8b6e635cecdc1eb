//! Bodies driven on a ledger, with topics that others write to, cut where a crash would cut it.

use std::sync::Arc;

use neuron::{
    Append, Author, Callable, Clock, Contract, Draft, Envelope, EnvelopeRef, Error, Ledger, Millis, Pattern, TokenId,
    Topic,
    agent::{LedgerJournal, Place, history},
    ledger::From,
    pipeline::Pipeline,
    schema::Upcasters,
    scope::{Runtime, Stop},
    store::{Fault, Memory, Select, Store},
    topic::catalog,
};
use serde::Serialize;
use tokio::time::Instant;

use super::{Bare, Output, World};

/// A clock of the wall that goes with tokio's.
#[derive(Debug)]
pub(crate) struct Ticking(Instant);

impl Default for Ticking {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Ticking {
    fn now(&self) -> Millis {
        Millis(1_790_000_000_000).plus(self.0.elapsed())
    }
}

/// A ledger in memory on which one agent runs.
pub(crate) struct Log {
    store: Memory,
    clock: Arc<dyn Clock>,
    pub(crate) ledger: Ledger,
    /// The epoch under which it writes.
    pub(crate) epoch: u64,
}

impl Log {
    /// An empty one, on which these topics are declared.
    pub(crate) async fn with(topics: &[&str]) -> Self {
        Self::with_fault(topics, None).await
    }

    /// One whose commits meet a fault.
    pub(crate) async fn with_fault(topics: &[&str], fault: Option<Arc<dyn Fault>>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Ticking::default());
        let log = Self::over(Memory::with(clock.clone(), fault).unwrap(), clock);
        for topic in topics {
            log.declare(topic, Contract::Durable).await;
        }
        log
    }

    fn over(store: Memory, clock: Arc<dyn Clock>) -> Self {
        let ledger = Ledger::over(Arc::new(store.clone()), clock.clone(), Pipeline::default()).unwrap();
        Self {
            store,
            clock,
            ledger,
            epoch: 0,
        }
    }

    pub(crate) async fn declare(&self, topic: &str, contract: Contract) {
        let topic = Pattern::new(topic).unwrap();
        self.ledger.declare(&topic, contract, &Author::cli()).await.unwrap();
    }

    /// What a crash after the first `count` envelopes leaves.
    pub(crate) fn cut(&self, count: u64) -> Self {
        let store = self.store.cut(usize::try_from(count).unwrap()).unwrap();
        Self::over(store, self.clock.clone())
    }

    pub(crate) fn crash(&self) -> Self {
        self.cut(self.len())
    }

    pub(crate) fn len(&self) -> u64 {
        self.store.last().unwrap().0
    }

    pub(crate) fn steps() -> Topic {
        catalog::steps(&TokenId::new("body-1").unwrap())
    }

    pub(crate) fn runtime_on(ledger: &Ledger, epoch: u64) -> Runtime {
        let token = TokenId::new("body-1").unwrap();
        let place = Place {
            topic: Self::steps(),
            author: Author::from(&token),
            owner: ("run:r".into(), epoch),
            control: vec![catalog::control(&token)],
            given: catalog::control(&token),
            cause: None,
            progress: None,
        };
        let past = history(ledger, [Self::steps()]).unwrap();
        let journal = LedgerJournal::new(ledger.clone(), place, Arc::new(Upcasters::default()));
        Runtime::new(Arc::new(journal)).history(past)
    }

    pub(crate) fn runtime(&self) -> Runtime {
        Self::runtime_on(&self.ledger, self.epoch)
    }

    /// Runs an agent to its end.
    pub(crate) async fn run<M, F: Callable<M>>(&self, agent: F, args: Bare<F, M>) -> Result<Output<F, M>, Error> {
        let runtime = Arc::new(self.runtime());
        self.run_in(&runtime, agent, args).await.map_err(Stop::into_error)?
    }

    pub(crate) async fn run_in<M, F: Callable<M>>(
        &self,
        runtime: &Arc<Runtime>,
        agent: F,
        args: Bare<F, M>,
    ) -> Result<Result<Output<F, M>, Error>, Stop> {
        World::new().run_in(runtime, agent, args).await
    }

    /// Somebody else says something.
    pub(crate) async fn say(&self, topic: &str, kind: &str, payload: &(impl Serialize + Sync)) -> EnvelopeRef {
        say(&self.ledger, topic, kind, payload).await
    }

    pub(crate) fn on(&self, topic: &Topic) -> Vec<Envelope> {
        let read = self.ledger.read(Select::Topic(topic.clone())).envelopes();
        read.map(Result::unwrap).collect()
    }

    /// The types on the agent's own topic.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let own = self.on(&Self::steps()).into_iter();
        own.map(|envelope| envelope.body.kind.to_string()).collect()
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.kinds().iter().filter(|known| *known == kind).count()
    }

    /// The calls that began and did not end, by their last record.
    pub(crate) fn open(&self) -> Vec<String> {
        let mut last = std::collections::BTreeMap::new();
        for envelope in self.on(&Self::steps()) {
            let payload = envelope.body.payload.unwrap().to_value();
            last.insert(payload["key"].to_string(), envelope.body.kind.to_string());
        }
        let starts = ["step.started", "wait.started", "question.asked", "question.refused"];
        last.retain(|_, kind| starts.contains(&kind.as_str()));
        last.into_iter().map(|(key, kind)| format!("{kind} {key}")).collect()
    }

    /// Waits until so many of a type stand on the agent's own topic.
    pub(crate) async fn reached(&self, kind: &str, count: usize) {
        let own = Pattern::exactly(&Self::steps());
        let mut own = self.ledger.subscribe(own, From::Start).unwrap();
        let mut seen = 0;
        while seen < count {
            seen += usize::from(own.next().await.unwrap().body.kind == kind);
        }
    }
}

pub(crate) async fn say(ledger: &Ledger, topic: &str, kind: &str, payload: &(impl Serialize + Sync)) -> EnvelopeRef {
    let payload = neuron::Json::of(payload).unwrap();
    let draft = Draft::new(Topic::new(topic).unwrap(), Author::human("ada").unwrap(), kind).unwrap();
    let append = Append::of([draft.json(payload, None)]);
    let receipt = ledger.append(append).await.unwrap().remove(0);
    EnvelopeRef {
        topic: receipt.topic,
        seq: receipt.seq,
        id: receipt.id,
    }
}
