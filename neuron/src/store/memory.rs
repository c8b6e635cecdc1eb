//! The store that tests, `neuron::test()` and the conformance suite's comparison use: nothing outlives the process.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak},
};

use futures::future::BoxFuture;
use tokio::sync::watch;

use super::{
    Batch, Manifest, Page, Range, Row, Select, Snapshot, Store, TopicSummary, backend::Backend, commit::Committer,
    epoch_of, fault::Fault, observer::Observer, prefix::Prefix, seal::Transaction,
};
use crate::{
    Clock, Deferred, Digest, Envelope, Error, Millis, Receipt, Result, Schema, SchemaRef, SystemClock, Topic,
    envelope::Kind, limits,
};

#[derive(Debug, Default)]
struct Tables {
    rows: Vec<Arc<Row>>,
    topics: HashMap<Topic, Vec<u64>>,
    keys: HashMap<(Topic, Arc<str>), u64>,
    batches: HashMap<Arc<str>, u64>,
    epochs: HashMap<String, u64>,
    schemas: Vec<Arc<Schema>>,
    manifests: BTreeMap<Digest, Manifest>,
    chunks: HashMap<Digest, Arc<[u8]>>,
    snapshots: HashMap<String, Snapshot>,
}

/// A store in memory: the same semantics as the SQLite one, gone with the process.
#[derive(Clone, Debug)]
pub struct Memory {
    tables: Arc<RwLock<Tables>>,
    committer: Arc<Committer<Writer>>,
}

impl Memory {
    /// An empty store on the machine's clock.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if no thread can be started.
    pub fn new() -> Result<Self, Error> {
        Self::with(Arc::new(SystemClock), None)
    }

    /// An empty store on another clock, with a place to break it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if no thread can be started.
    pub fn with(clock: Arc<dyn Clock>, fault: Option<Arc<dyn Fault>>) -> Result<Self, Error> {
        let tables = Arc::<RwLock<Tables>>::default();
        write(&tables).schemas.push(Arc::new(Schema::plane0()));
        let writer = Writer {
            tables: tables.clone(),
            staged: Vec::new(),
            schemas: Vec::new(),
        };
        let committer = Committer::new(writer, clock, fault, 0);
        committer.start_standby()?;
        Ok(Self { tables, committer })
    }

    /// What a crash after the first `count` envelopes would have left, as a store of its own on the same clock and with
    /// the same fault.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if no thread can be started.
    pub fn cut(&self, count: usize) -> Result<Self, Error> {
        let (clock, fault) = self.committer.surroundings();
        self.cut_apart(count, clock, fault)
    }

    /// As [`Memory::cut`], on a clock and with a fault of its own: for a process that comes after the one that crashed.
    ///
    /// # Errors
    /// As [`Memory::cut`].
    pub fn cut_apart(&self, count: usize, clock: Arc<dyn Clock>, fault: Option<Arc<dyn Fault>>) -> Result<Self, Error> {
        let other = Self::with(clock, fault)?;
        let (from, mut to) = (read(&self.tables), write(&other.tables));
        to.schemas.clone_from(&from.schemas);
        to.manifests.clone_from(&from.manifests);
        to.chunks.clone_from(&from.chunks);
        from.rows.iter().take(count).for_each(|row| to.insert(row.clone()));
        let last = to.rows.len() as u64;
        drop(to);
        other.committer.tail().send_replace(last);
        Ok(other)
    }
}

impl Tables {
    fn insert(&mut self, row: Arc<Row>) {
        self.topics.entry(row.topic.clone()).or_default().push(row.pos);
        if let Some(key) = &row.key {
            self.keys.insert((row.topic.clone(), key.clone()), row.seq);
        }
        if let Some(key) = &row.idempotency {
            self.batches.insert(key.clone(), row.pos);
        }
        if let Some((name, epoch)) = epoch_of(&row) {
            self.epochs.insert(name, epoch);
        }
        self.rows.push(row);
    }

    fn at(&self, pos: u64) -> Option<&Arc<Row>> {
        self.rows.get(usize::try_from(pos.checked_sub(1)?).ok()?)
    }
}

fn read(tables: &RwLock<Tables>) -> RwLockReadGuard<'_, Tables> {
    tables.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(tables: &RwLock<Tables>) -> RwLockWriteGuard<'_, Tables> {
    tables.write().unwrap_or_else(PoisonError::into_inner)
}

/// The one writer: rows are staged until the commit, so that a failed one leaves nothing.
#[derive(Debug)]
struct Writer {
    tables: Arc<RwLock<Tables>>,
    staged: Vec<Arc<Row>>,
    schemas: Vec<Arc<Schema>>,
}

impl Writer {
    fn staged(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.staged.iter().rev()
    }
}

impl Transaction for Writer {
    fn last(&mut self) -> Result<(u64, Millis), Error> {
        let tables = read(&self.tables);
        let last = self.staged.last().or_else(|| tables.rows.last());
        Ok(last.map_or((0, Millis(0)), |row| (row.pos, row.at)))
    }

    fn head(&mut self, topic: &Topic) -> Result<u64, Error> {
        let staged = self.staged().find(|row| row.topic == *topic).map(|row| row.seq);
        let stored = || read(&self.tables).topics.get(topic).map_or(0, |rows| rows.len() as u64);
        Ok(staged.unwrap_or_else(stored))
    }

    fn keyed(&mut self, topic: &Topic, key: &str) -> Result<Option<u64>, Error> {
        let staged = self
            .staged()
            .find(|row| row.topic == *topic && row.key.as_deref() == Some(key));
        let stored = || read(&self.tables).keys.get(&(topic.clone(), key.into())).copied();
        Ok(staged.map(|row| row.seq).or_else(stored))
    }

    fn epoch(&mut self, name: &str) -> Result<u64, Error> {
        let staged = self
            .staged()
            .filter_map(|row| epoch_of(row))
            .find(|(owned, _)| owned == name);
        let stored = || read(&self.tables).epochs.get(name).copied().unwrap_or(0);
        Ok(staged.map_or_else(stored, |(_, epoch)| epoch))
    }

    fn find(&mut self, topic: &Topic, seq: u64) -> Result<Option<(u64, Digest, Kind)>, Error> {
        let show = |row: &Arc<Row>| (row.pos, row.id, row.kind.clone());
        if let Some(row) = self.staged().find(|row| row.topic == *topic && row.seq == seq) {
            return Ok(Some(show(row)));
        }
        let tables = read(&self.tables);
        let index = usize::try_from(seq).ok().and_then(|seq| seq.checked_sub(1));
        let pos = tables
            .topics
            .get(topic)
            .zip(index)
            .and_then(|(rows, index)| rows.get(index));
        Ok(pos.and_then(|pos| tables.at(*pos)).map(show))
    }

    fn batch(&mut self, key: &str) -> Result<Option<Vec<Envelope>>, Error> {
        let tables = read(&self.tables);
        let stored = tables.batches.get(key).map(|pos| pos - 1);
        let staged = || self.staged.iter().find(|row| row.idempotency.as_deref() == Some(key));
        let Some(before) = stored.or_else(|| staged().map(|row| row.pos - 1)) else {
            return Ok(None);
        };
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        let stored = tables.rows.get(before..).unwrap_or_default();
        let staged = self.staged.iter().skip(before.saturating_sub(tables.rows.len()));
        super::same_batch(stored.iter().chain(staged).map(|row| row.envelope()), key).map(Some)
    }

    fn register(&mut self, schema: &Schema) -> Result<(), Error> {
        let known = |schemas: &[Arc<Schema>]| schemas.iter().any(|known| known.reference() == schema.reference());
        if !known(&self.schemas) && !known(&read(&self.tables).schemas) {
            self.schemas.push(Arc::new(schema.clone()));
        }
        Ok(())
    }

    fn insert(&mut self, row: &Row) -> Result<(), Error> {
        self.staged.push(Arc::new(row.clone()));
        Ok(())
    }
}

impl Backend for Writer {
    fn begin(&mut self, _wait: bool) -> Result<bool, Error> {
        self.rollback();
        Ok(true)
    }

    fn commit(&mut self) -> Result<(), Error> {
        let mut tables = write(&self.tables);
        self.staged.drain(..).for_each(|row| tables.insert(row));
        tables.schemas.append(&mut self.schemas);
        Ok(())
    }

    fn rollback(&mut self) {
        self.staged.clear();
        self.schemas.clear();
    }
}

impl Store for Memory {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Vec<Receipt>, Error>> {
        Box::pin(self.committer.append(batch))
    }

    fn append_blocking(&self, batch: Batch) -> Result<Vec<Receipt>, Error> {
        self.committer.append_blocking(batch)
    }

    fn defer(&self, batch: Batch) -> Result<Vec<Deferred>, Error> {
        self.committer.defer(batch)
    }

    fn flush(&self) {
        self.committer.flush();
    }

    fn observe(&self, observer: Weak<dyn Observer>) {
        self.committer.observers().add(observer);
    }

    fn tail(&self) -> watch::Receiver<u64> {
        self.committer.tail().subscribe()
    }

    fn last(&self) -> Result<(u64, Millis), Error> {
        Ok(read(&self.tables)
            .rows
            .last()
            .map_or((0, Millis(0)), |row| (row.pos, row.at)))
    }

    fn page(&self, select: &Select, range: Range) -> Result<Page, Error> {
        let tables = read(&self.tables);
        let (limit, last) = (range.limit.min(limits::PAGE_MAX), tables.rows.len() as u64);
        let (from, to) = (range.from.max(1), range.to.min(last));
        let mut page = Page::default();
        let mut places: Box<dyn Iterator<Item = u64>> = if range.reverse {
            Box::new((from..=to).rev())
        } else {
            Box::new(from..=to)
        };
        for pos in places.by_ref() {
            let Some(row) = tables.at(pos).filter(|row| select.takes(row)) else {
                continue;
            };
            if page.rows.len() == limit {
                page.next = Some(pos);
                break;
            }
            page.rows.push((**row).clone());
        }
        Ok(page)
    }

    fn row(&self, topic: &Topic, seq: u64) -> Result<Option<Row>, Error> {
        let tables = read(&self.tables);
        let index = usize::try_from(seq).ok().and_then(|seq| seq.checked_sub(1));
        let pos = tables
            .topics
            .get(topic)
            .zip(index)
            .and_then(|(rows, index)| rows.get(index));
        Ok(pos.and_then(|pos| tables.at(*pos)).map(|row| (**row).clone()))
    }

    fn with_id(&self, prefix: &str) -> Result<Vec<u64>, Error> {
        let prefix = Prefix::parse(prefix)?;
        let tables = read(&self.tables);
        let found = tables.rows.iter().filter(|row| prefix.holds(row.id.as_bytes()));
        Ok(found.map(|row| row.pos).take(limits::ID_MATCHES_MAX).collect())
    }

    fn head(&self, topic: &Topic) -> Result<u64, Error> {
        Ok(read(&self.tables).topics.get(topic).map_or(0, |rows| rows.len() as u64))
    }

    fn keyed(&self, topic: &Topic, key: &str) -> Result<Option<u64>, Error> {
        Ok(read(&self.tables).keys.get(&(topic.clone(), key.into())).copied())
    }

    fn topics(&self) -> Result<Vec<TopicSummary>, Error> {
        let tables = read(&self.tables);
        let mut topics: Vec<TopicSummary> = tables
            .topics
            .iter()
            .map(|(topic, rows)| TopicSummary {
                topic: topic.clone(),
                head: rows.len() as u64,
                last_pos: rows.last().copied().unwrap_or(0),
            })
            .collect();
        topics.sort_by(|a, b| a.topic.cmp(&b.topic));
        Ok(topics)
    }

    fn schema(&self, reference: &SchemaRef) -> Result<Option<Arc<Schema>>, Error> {
        Ok(read(&self.tables)
            .schemas
            .iter()
            .find(|schema| schema.reference() == *reference)
            .cloned())
    }

    fn schemas(&self) -> Result<Vec<Arc<Schema>>, Error> {
        Ok(read(&self.tables).schemas.clone())
    }

    fn put_chunks(&self, chunks: Vec<(Digest, Arc<[u8]>)>) -> Result<(), Error> {
        write(&self.tables).chunks.extend(chunks);
        Ok(())
    }

    fn put_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        let mut tables = write(&self.tables);
        if let Some(chunk) = manifest.chunks.iter().find(|chunk| !tables.chunks.contains_key(chunk)) {
            return Err(super::missing_chunk(&manifest.hash, chunk));
        }
        tables
            .manifests
            .entry(manifest.hash)
            .or_insert_with(|| manifest.clone());
        Ok(())
    }

    fn manifest(&self, hash: &Digest) -> Result<Option<Manifest>, Error> {
        Ok(read(&self.tables).manifests.get(hash).cloned())
    }

    fn manifests(&self) -> Result<Vec<(Digest, u64)>, Error> {
        Ok(read(&self.tables)
            .manifests
            .values()
            .map(|manifest| (manifest.hash, manifest.bytes))
            .collect())
    }

    fn chunk(&self, hash: &Digest) -> Result<Option<Arc<[u8]>>, Error> {
        Ok(read(&self.tables).chunks.get(hash).cloned())
    }

    fn epoch(&self, name: &str) -> Result<u64, Error> {
        Ok(read(&self.tables).epochs.get(name).copied().unwrap_or(0))
    }

    fn snapshot(&self, key: &str) -> Result<Option<Snapshot>, Error> {
        Ok(read(&self.tables).snapshots.get(key).cloned())
    }

    fn put_snapshot(&self, key: &str, snapshot: &Snapshot) -> Result<(), Error> {
        let snapshots = &mut write(&self.tables).snapshots;
        if !snapshots.contains_key(key) && snapshots.len() >= limits::SNAPSHOTS_MAX {
            let oldest = snapshots.iter().min_by_key(|(_, snapshot)| snapshot.pos);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| snapshots.remove(&key));
        }
        snapshots.insert(key.into(), snapshot.clone());
        Ok(())
    }

    fn path(&self) -> Option<&std::path::Path> {
        None
    }
}
