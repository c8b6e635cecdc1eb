//! A process that serves looks at what has changed, not at every run that there ever was.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use neuron::{
    Append, Author, Deferred, Digest, Ledger, Millis, Receipt, RunId, Schema, SchemaRef, SystemClock, Topic,
    pipeline::Pipeline,
    store::{Batch, Manifest, Memory, Observer, Page, Range, Row, Select, Store, TopicSummary},
    topic::catalog,
    vocabulary::{Message as _, orchestration::OrchestrationCreated},
};
use orchestrator::{neuron, prelude::*, runs::Unfinished};
use tokio::sync::watch;

/// Counts how often the log is read, and how many envelopes it gives.
#[derive(Debug)]
struct Counted {
    store: Memory,
    reads: Arc<AtomicU64>,
}

impl Counted {
    fn read(&self) -> &Memory {
        self.reads.fetch_add(1, Ordering::SeqCst);
        &self.store
    }
}

impl Store for Counted {
    fn page(&self, select: &Select, range: Range) -> Result<Page, Error> {
        let page = self.read().page(select, range)?;
        self.reads.fetch_add(page.rows.len() as u64, Ordering::SeqCst);
        Ok(page)
    }
    fn row(&self, topic: &Topic, seq: u64) -> Result<Option<Row>, Error> {
        self.read().row(topic, seq)
    }
    fn head(&self, topic: &Topic) -> Result<u64, Error> {
        self.read().head(topic)
    }
    fn topics(&self) -> Result<Vec<TopicSummary>, Error> {
        self.read().topics()
    }
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Vec<Receipt>, Error>> {
        self.store.append(batch)
    }
    fn append_blocking(&self, batch: Batch) -> Result<Vec<Receipt>, Error> {
        self.store.append_blocking(batch)
    }
    fn defer(&self, batch: Batch) -> Result<Vec<Deferred>, Error> {
        self.store.defer(batch)
    }
    fn flush(&self) {
        self.store.flush();
    }
    fn observe(&self, observer: Weak<dyn Observer>) {
        self.store.observe(observer);
    }
    fn tail(&self) -> watch::Receiver<u64> {
        self.store.tail()
    }
    fn last(&self) -> Result<(u64, Millis), Error> {
        self.store.last()
    }
    fn with_id(&self, prefix: &str) -> Result<Vec<u64>, Error> {
        self.store.with_id(prefix)
    }
    fn keyed(&self, topic: &Topic, key: &str) -> Result<Option<u64>, Error> {
        self.store.keyed(topic, key)
    }
    fn epoch(&self, name: &str) -> Result<u64, Error> {
        self.store.epoch(name)
    }
    fn schema(&self, reference: &SchemaRef) -> Result<Option<Arc<Schema>>, Error> {
        self.store.schema(reference)
    }
    fn schemas(&self) -> Result<Vec<Arc<Schema>>, Error> {
        self.store.schemas()
    }
    fn put_chunks(&self, chunks: Vec<(Digest, Arc<[u8]>)>) -> Result<(), Error> {
        self.store.put_chunks(chunks)
    }
    fn put_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        self.store.put_manifest(manifest)
    }
    fn manifest(&self, hash: &Digest) -> Result<Option<Manifest>, Error> {
        self.store.manifest(hash)
    }
    fn manifests(&self) -> Result<Vec<(Digest, u64)>, Error> {
        self.store.manifests()
    }
    fn chunk(&self, hash: &Digest) -> Result<Option<Arc<[u8]>>, Error> {
        self.store.chunk(hash)
    }
    fn path(&self) -> Option<&Path> {
        None
    }
}

#[step]
async fn double(_cx: &Cx, number: u32) -> Result<u32> {
    Ok(number * 2)
}

#[orchestrator]
async fn doubled(board: &Board, number: u32) -> Result<u32> {
    #[plan]
    fn plan(plan: &Plan, number: Node<u32>) -> Node<u32> {
        plan.step(double, number)
    }
    Ok(board.assign(plan, number).await?)
}

/// The beginning of a run that another process left.
async fn left(neuron: &Neuron, id: &str, name: &str, args: &str) {
    let run = RunId::new(id).unwrap();
    let created = OrchestrationCreated {
        name: name.into(),
        args: Some(neuron::Json::parse(args).unwrap()),
        build: "test".into(),
        registry: "test".into(),
        fork: None,
    };
    let draft = created.draft(catalog::lifecycle(&run), Author::from(&run)).unwrap();
    neuron.ledger().append(Append::of([draft])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_process_that_serves_reads_nothing_while_nothing_happens() {
    let reads = Arc::<AtomicU64>::default();
    let store = Counted {
        store: Memory::new().unwrap(),
        reads: reads.clone(),
    };
    let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
    let neuron = Neuron::builder().over(ledger).await.unwrap();
    for number in 0..20 {
        assert_eq!(neuron.run(doubled, number).await.unwrap(), number * 2);
    }
    left(&neuron, "stranger", "nobody-knows", "{}").await;
    left(&neuron, "unreadable", "doubled", r#"{"number":"many"}"#).await;
    left(&neuron, "mine", "doubled", r#"{"number":7}"#).await;
    let serving = {
        let neuron = neuron.clone();
        tokio::spawn(async move { neuron.serve().await })
    };
    let unfinished = || neuron.ledger().fold(&Unfinished, None).unwrap().state.len();
    // What it has code and arguments for it brings to its end, also what comes later.
    while unfinished() > 2 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    left(&neuron, "later", "doubled", r#"{"number":8}"#).await;
    while unfinished() > 2 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(neuron.run(doubled, 8).id("later").await.unwrap(), 16);
    // Then it looks each second, and there is nothing to read.
    let idle = async || {
        let before = reads.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(100)).await;
        reads.load(Ordering::SeqCst) - before
    };
    idle().await;
    assert_eq!(idle().await, 0);
    assert!(!serving.is_finished());
    serving.abort();
}

/// Takes updates of a name, and never has enough.
#[agent]
async fn till(cx: &Cx, name: String) -> Result<()> {
    let (mut adds, mut sum) = (cx.updates::<u64, u64>(&name), 0);
    loop {
        let add = adds.next().await?;
        sum += add.request;
        add.answer(&sum).await?;
    }
}

#[orchestrator]
async fn shop(board: &Board, name: String) -> Result<()> {
    Ok(board.assign(till, name).await?)
}

#[tokio::test]
async fn whoever_asks_a_run_for_an_update_reads_nothing_of_the_other_runs_that_take_them() {
    let reads = Arc::<AtomicU64>::default();
    let store = Counted {
        store: Memory::new().unwrap(),
        reads: reads.clone(),
    };
    let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
    let neuron = Neuron::builder().over(ledger).await.unwrap();
    let open = async |id: String| {
        let running = neuron.run(shop, "add".into()).id(id).start().await.unwrap();
        running.update::<_, u64>("add", &1u64).await.unwrap();
        running
    };
    let asked = open("asked".into()).await;
    let cost = async || {
        let before = reads.load(Ordering::SeqCst);
        asked.update::<_, u64>("add", &1u64).await.unwrap();
        reads.load(Ordering::SeqCst) - before
    };
    let alone = cost().await;
    let mut others = Vec::new();
    for other in 0..200 {
        others.push(open(format!("other-{other}")).await);
    }
    let among_many = cost().await;
    // Some of its own, one more for each that was asked of it.
    assert!(
        among_many < alone + 100,
        "{alone} reads alone, {among_many} among 200 others"
    );

    // Neither does whoever waits until somebody takes them, however often somebody else begins to.
    let waiting = asked.update::<_, u64>("subtract", &1u64);
    let others = async {
        let before = reads.load(Ordering::SeqCst);
        for other in 200..210 {
            open(format!("other-{other}")).await;
        }
        reads.load(Ordering::SeqCst) - before
    };
    tokio::select! {
        told = waiting => panic!("nobody takes them: {told:?}"),
        read = others => assert!(read < 1_000, "{read} reads while ten others begin"),
    }
}
