//! A store as it stood at a place of its log.

use std::{
    path::Path,
    sync::{Arc, Weak},
};

use futures::future::BoxFuture;
use tokio::sync::watch;

use super::{
    Archive, Batch, Copied, Manifest, Observer, Page, Progress, Range, Row, Select, Snapshot, Store, TopicSummary,
    epoch_of, verify::Head,
};
use crate::{Deferred, Digest, Error, ErrorKind, Millis, Receipt, Result, Schema, SchemaRef, Topic, topic::catalog};

/// A store as it stood when `pos` was its last envelope: every question is answered as it was then, nothing can be
/// appended, nothing ever comes. The store behind it may go on.
///
/// Schemas and artifacts have no place on the log: those that were stored later are there too.
#[derive(Debug)]
pub struct AsOf {
    store: Arc<dyn Store>,
    pos: u64,
    at: Millis,
    tail: watch::Sender<u64>,
}

impl AsOf {
    /// The store as it stood at `pos`; at 0 it held nothing.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the log does not go that far; a kind of the disk.
    pub fn new(store: Arc<dyn Store>, pos: u64) -> Result<Self, Error> {
        let (last, _) = store.last()?;
        if pos > last {
            let why = format!("the log ends at pos {last}, so there is no pos {pos} to go back to");
            return Err(Error::new(ErrorKind::NotFound, why));
        }
        let row = store.page(&Select::All, Range::at(pos))?.rows.pop();
        Ok(Self {
            store,
            pos,
            at: row.map_or(Millis(0), |row| row.at),
            tail: watch::Sender::new(pos),
        })
    }

    fn refusal(&self) -> Error {
        let why = format!(
            "this is the store as it stood at pos {}: nothing can be appended to the past",
            self.pos
        );
        Error::new(ErrorKind::ReadOnly, why)
    }

    /// The head of what stood then.
    fn chain(&self) -> Result<Head, Error> {
        let (mut head, mut from) = (Head::default(), 1);
        loop {
            let ids = self.ids(from, self.pos)?;
            let Some((last, _)) = ids.last() else { return Ok(head) };
            from = last + 1;
            head = ids.iter().fold(head, |head, (_, id)| head.then(*id));
        }
    }

    /// The last row that was selected then.
    fn latest(&self, select: &Select) -> Result<Option<Row>, Error> {
        let range = Range {
            to: self.pos,
            reverse: true,
            limit: 1,
            ..Range::ALL
        };
        Ok(self.store.page(select, range)?.rows.pop())
    }
}

impl Store for AsOf {
    fn append(&self, _batch: Batch) -> BoxFuture<'_, Result<Vec<Receipt>, Error>> {
        Box::pin(std::future::ready(Err(self.refusal())))
    }

    fn append_blocking(&self, _batch: Batch) -> Result<Vec<Receipt>, Error> {
        Err(self.refusal())
    }

    fn defer(&self, _batch: Batch) -> Result<Vec<Deferred>, Error> {
        Err(self.refusal())
    }

    fn flush(&self) {}

    fn observe(&self, _observer: Weak<dyn Observer>) {}

    fn tail(&self) -> watch::Receiver<u64> {
        self.tail.subscribe()
    }

    fn last(&self) -> Result<(u64, Millis), Error> {
        Ok((self.pos, self.at))
    }

    fn page(&self, select: &Select, range: Range) -> Result<Page, Error> {
        let to = range.to.min(self.pos);
        if range.from > to {
            return Ok(Page::default());
        }
        self.store.page(select, Range { to, ..range })
    }

    fn row(&self, topic: &Topic, seq: u64) -> Result<Option<Row>, Error> {
        let row = self.store.row(topic, seq)?;
        Ok(row.filter(|row| row.pos <= self.pos))
    }

    fn with_id(&self, prefix: &str) -> Result<Vec<u64>, Error> {
        let mut found = self.store.with_id(prefix)?;
        found.retain(|pos| *pos <= self.pos);
        Ok(found)
    }

    fn head(&self, topic: &Topic) -> Result<u64, Error> {
        let latest = self.latest(&Select::Topic(topic.clone()))?;
        Ok(latest.map_or(0, |row| row.seq))
    }

    fn keyed(&self, topic: &Topic, key: &str) -> Result<Option<u64>, Error> {
        let latest = self.latest(&Select::Key(topic.clone(), key.into()))?;
        Ok(latest.map(|row| row.seq))
    }

    fn epoch(&self, name: &str) -> Result<u64, Error> {
        let latest = self.latest(&Select::Key(catalog::leases(), name.into()))?;
        Ok(latest.and_then(|row| epoch_of(&row)).map_or(0, |(_, epoch)| epoch))
    }

    fn topics(&self) -> Result<Vec<TopicSummary>, Error> {
        let mut topics = Vec::new();
        for summary in self.store.topics()? {
            if summary.last_pos <= self.pos {
                topics.push(summary);
            } else if let Some(row) = self.latest(&Select::Topic(summary.topic))? {
                topics.push(TopicSummary {
                    topic: row.topic,
                    head: row.seq,
                    last_pos: row.pos,
                });
            }
        }
        Ok(topics)
    }

    fn bytes(&self, topic: &Topic, upto: u64) -> Result<u64, Error> {
        self.store.bytes(topic, upto.min(self.head(topic)?))
    }

    fn schema(&self, reference: &SchemaRef) -> Result<Option<Arc<Schema>>, Error> {
        self.store.schema(reference)
    }

    fn schemas(&self) -> Result<Vec<Arc<Schema>>, Error> {
        self.store.schemas()
    }

    fn put_chunks(&self, _chunks: Vec<(Digest, Arc<[u8]>)>) -> Result<(), Error> {
        Err(self.refusal())
    }

    fn put_manifest(&self, _manifest: &Manifest) -> Result<(), Error> {
        Err(self.refusal())
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

    /// One that was put aside by then; none is put aside here, where it would stand in the way of a later one.
    fn snapshot(&self, key: &str) -> Result<Option<Snapshot>, Error> {
        let snapshot = self.store.snapshot(key)?;
        Ok(snapshot.filter(|snapshot| snapshot.pos <= self.pos))
    }

    fn ids(&self, from: u64, to: u64) -> Result<Vec<(u64, Digest)>, Error> {
        self.store.ids(from, to.min(self.pos))
    }

    /// What an archive says, of as much of it as stood then.
    fn archive(&self) -> Result<Option<Archive>, Error> {
        let Some(mut archive) = self.store.archive()? else {
            return Ok(None);
        };
        if self.pos < self.store.last()?.0 {
            archive.part.to = self.pos;
            archive.seal = self.chain()?;
            if archive.part.topics.is_none() && archive.part.from == 1 {
                archive.head = archive.seal;
            }
        }
        Ok(Some(archive))
    }

    fn sound(&self) -> Result<(), Error> {
        self.store.sound()
    }

    fn guarded(&self) -> Result<(), Error> {
        self.store.guarded()
    }

    fn backup(&self, _to: &Path, _progress: &mut dyn FnMut(Progress)) -> Result<Copied, Error> {
        let why = "a backup is of the store as it stands: export what stood then";
        Err(Error::new(ErrorKind::Misuse, why))
    }

    /// None: no process works on the past, so nothing beside a file speaks of it.
    fn path(&self) -> Option<&Path> {
        None
    }
}
