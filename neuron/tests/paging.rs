//! A page without rows is not the end: a store may pass over many envelopes of others before it finds one.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::sync::{Arc, Weak};

use futures::{TryStreamExt as _, future::BoxFuture};
use neuron::{
    Append, Author, Contract, Deferred, Digest, Draft, Error, Ledger, Millis, Pattern, Receipt, Schema, SchemaRef,
    SystemClock, Topic,
    fold::Latest,
    ledger::From,
    pipeline::Pipeline,
    store::{Batch, Manifest, Memory, Observer, Page, Range, Row, Select, Store, TopicSummary},
};
use tokio::sync::watch;

/// Looks at one envelope for each page, and so finds most pages empty.
#[derive(Debug)]
struct Sparse(Memory);

impl Store for Sparse {
    fn page(&self, select: &Select, range: Range) -> Result<Page, Error> {
        let (first, last) = (range.from.max(1), range.to.min(self.0.last()?.0));
        if first > last {
            return Ok(Page::default());
        }
        let (here, next) = if range.reverse {
            (last, last - 1)
        } else {
            (first, first + 1)
        };
        let one = Range {
            from: here,
            to: here,
            ..range
        };
        Ok(Page {
            rows: self.0.page(select, one)?.rows,
            next: (first..=last).contains(&next).then_some(next),
        })
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Vec<Receipt>, Error>> {
        self.0.append(batch)
    }
    fn append_blocking(&self, batch: Batch) -> Result<Vec<Receipt>, Error> {
        self.0.append_blocking(batch)
    }
    fn defer(&self, batch: Batch) -> Result<Vec<Deferred>, Error> {
        self.0.defer(batch)
    }
    fn flush(&self) {
        self.0.flush();
    }
    fn observe(&self, observer: Weak<dyn Observer>) {
        self.0.observe(observer);
    }
    fn tail(&self) -> watch::Receiver<u64> {
        self.0.tail()
    }
    fn last(&self) -> Result<(u64, Millis), Error> {
        self.0.last()
    }
    fn row(&self, topic: &Topic, seq: u64) -> Result<Option<Row>, Error> {
        self.0.row(topic, seq)
    }
    fn with_id(&self, prefix: &str) -> Result<Vec<u64>, Error> {
        self.0.with_id(prefix)
    }
    fn head(&self, topic: &Topic) -> Result<u64, Error> {
        self.0.head(topic)
    }
    fn keyed(&self, topic: &Topic, key: &str) -> Result<Option<u64>, Error> {
        self.0.keyed(topic, key)
    }
    fn epoch(&self, name: &str) -> Result<u64, Error> {
        self.0.epoch(name)
    }
    fn topics(&self) -> Result<Vec<TopicSummary>, Error> {
        self.0.topics()
    }
    fn schema(&self, reference: &SchemaRef) -> Result<Option<Arc<Schema>>, Error> {
        self.0.schema(reference)
    }
    fn schemas(&self) -> Result<Vec<Arc<Schema>>, Error> {
        self.0.schemas()
    }
    fn put_chunks(&self, chunks: Vec<(Digest, Arc<[u8]>)>) -> Result<(), Error> {
        self.0.put_chunks(chunks)
    }
    fn put_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        self.0.put_manifest(manifest)
    }
    fn manifest(&self, hash: &Digest) -> Result<Option<Manifest>, Error> {
        self.0.manifest(hash)
    }
    fn manifests(&self) -> Result<Vec<(Digest, u64)>, Error> {
        self.0.manifests()
    }
    fn chunk(&self, hash: &Digest) -> Result<Option<Arc<[u8]>>, Error> {
        self.0.chunk(hash)
    }
    fn path(&self) -> Option<&std::path::Path> {
        None
    }
}

const WANTED: usize = 5;

/// Five notes, each after seven envelopes of other topics; a second ledger has none of them in its memory.
async fn world() -> Ledger {
    let store = Memory::new().unwrap();
    let over = |store: Arc<dyn Store>| Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap();
    let ledger = over(Arc::new(store.clone()));
    for family in ["notes.*", "other.*"] {
        let pattern = Pattern::new(family).unwrap();
        ledger
            .declare(&pattern, Contract::Durable, &Author::cli())
            .await
            .unwrap();
    }
    for index in 0..WANTED * 8 {
        let topic = if index % 8 == 7 { "notes.a" } else { "other.b" };
        let draft = Draft::new(Topic::new(topic).unwrap(), Author::cli(), "said").unwrap();
        let draft = draft.payload(&index).unwrap().key(index.to_string()).unwrap();
        ledger.append(Append::of([draft])).await.unwrap();
    }
    over(Arc::new(Sparse(store)))
}

fn notes() -> Select {
    Select::Pattern(Pattern::new("notes.*").unwrap())
}

#[tokio::test]
async fn a_reading_goes_on_over_empty_pages_in_both_directions_and_as_a_stream() {
    let ledger = world().await;
    let seqs = |reading: neuron::ledger::Reading| {
        reading
            .envelopes()
            .map(|envelope| envelope.unwrap().seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(seqs(ledger.read(notes())), [1, 2, 3, 4, 5]);
    assert_eq!(seqs(ledger.read(notes()).newest_first()), [5, 4, 3, 2, 1]);
    assert_eq!(seqs(ledger.read(notes()).newest_first().limit(2)), [5, 4]);
    let streamed: Vec<_> = ledger.read(notes()).stream().try_collect().await.unwrap();
    assert_eq!(streamed.len(), WANTED);
}

#[tokio::test]
async fn a_fold_and_a_subscription_miss_nothing_behind_empty_pages() {
    let ledger = world().await;
    let folded = ledger.fold(&Latest, None).unwrap();
    assert_eq!(
        folded
            .state
            .keys()
            .filter(|(topic, _)| topic.as_str() == "notes.a")
            .count(),
        WANTED
    );
    let mut subscription = ledger.subscribe(Pattern::new("notes.*").unwrap(), From::Start).unwrap();
    for seq in 1..=WANTED as u64 {
        assert_eq!(subscription.try_next().unwrap().map(|envelope| envelope.seq), Some(seq));
    }
    assert!(subscription.try_next().unwrap().is_none());
}
