//! The default store: one SQLite file.
//!
//! One connection of a process writes, in groups, after it has taken the lock beside the file that the writers of all
//! processes queue on; a few others read. Beside `store.db` stand `store.db.lock`, the lock, and `store.db.side`,
//! with an index and snapshots, which may be deleted at any time.

mod backup;
mod chain;
mod closed;
mod connect;
mod content;
mod core;
mod ddl;
mod fault;
pub(crate) mod frames;
mod fresh;
mod health;
pub(crate) mod holder;
pub(crate) mod layout;
mod lock;
pub(crate) mod mend;
mod number;
mod open;
mod options;
mod page;
mod pool;
mod read;
mod registry;
pub(crate) mod salvage;
mod sealed;
mod sealing;
mod side;
mod tables;
mod transact;
mod wal;
mod watch;
mod write;

use std::{
    path::Path,
    sync::{Arc, Weak},
};

use futures::future::BoxFuture;
pub use options::{Access, Durability, Options};
pub(crate) use sealing::Sealing;
use tokio::sync::watch as channel;

use self::{core::Core, write::Writer};
use super::{
    Archive, Batch, Copied, Manifest, Observer, Page, Progress, Range, Row, Select, Snapshot, Store, TopicSummary, Wal,
    commit::Committer, missing_chunk, prefix::Prefix,
};
use crate::{Deferred, Digest, Error, ErrorKind, Millis, Receipt, Result, Schema, SchemaRef, Topic, limits};

/// A store in one SQLite file. Cheap to clone; the last handle that goes commits what is deferred and closes the file.
///
/// ```
/// use neuron::store::{Options, Sqlite, Store as _};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("notes.db");
/// let store = Sqlite::open(&path, Options::default())?;
/// assert_eq!(store.last()?.0, 0);
/// # Ok::<(), neuron::BoxError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sqlite {
    core: Arc<Core>,
    /// Why this handle does not write.
    refusal: Option<Error>,
}

impl Sqlite {
    /// Opens the store at `path`; the handles of one process share one store per file.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) without a file that may be made or a folder for it;
    /// [`NotAStore`](ErrorKind::NotAStore) for another kind of file, another application's, or a newer format;
    /// [`Corrupt`](ErrorKind::Corrupt) for a truncated one; [`ReadOnly`](ErrorKind::ReadOnly) for one that may not be
    /// written; [`Busy`](ErrorKind::Busy) if another process holds it longer than `options.wait`;
    /// [`Misuse`](ErrorKind::Misuse) if this process has it open in another way. None of them changes the file.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = open::canonical(path.as_ref())?;
        let reads = options.access == Access::Read;
        let core = registry::shared(&path, &options.clone(), || Core::open(&path, options))?;
        Ok(Self::handle(core, reads))
    }

    /// Opens the store apart from the other handles of this process, as another process would.
    ///
    /// # Errors
    /// As [`Sqlite::open`].
    #[cfg(feature = "testing")]
    pub fn open_apart(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = open::canonical(path.as_ref())?;
        let reads = options.access == Access::Read;
        Core::open(&path, options).map(|core| Self::handle(Arc::new(core), reads))
    }

    /// Lets the file grow by so many pages from now on, as a disk that is nearly full does; `None` = freely.
    ///
    /// # Errors
    /// As an append.
    #[cfg(feature = "testing")]
    pub fn limit_growth(&self, pages: Option<u32>) -> Result<(), Error> {
        self.committer()?.write(|writer| writer.limit_growth(pages))
    }

    fn handle(core: Arc<Core>, reads: bool) -> Self {
        let only_reads = || {
            let file = core.path.display();
            let why = format!("{file} was opened for reading: open it for writing to append");
            Error::new(ErrorKind::ReadOnly, why)
        };
        Self {
            refusal: core.refusal.clone().or_else(|| reads.then(only_reads)),
            core,
        }
    }

    /// Whether this handle appends: it was opened for writing, and the file has this program's root.
    pub fn writes(&self) -> bool {
        self.refusal.is_none()
    }

    /// Why nobody may write to the file; none if that is only a matter of how it was opened.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.core.refusal.clone()
    }

    /// What a look through the file shows.
    pub(crate) fn condition(&self) -> Result<mend::Condition, Error> {
        self.core
            .pool
            .read(|reader| mend::condition(&reader.connection, &self.core.path))
    }

    /// How many envelopes stand before this `pos`.
    pub(crate) fn count_before(&self, pos: u64) -> Result<u64, Error> {
        self.core.pool.read(|reader| reader.count_before(pos))
    }

    fn committer(&self) -> Result<&Arc<Committer<Writer>>, Error> {
        match (&self.refusal, &self.core.committer) {
            (None, Some(committer)) => Ok(committer),
            (Some(refusal), _) => Err(refusal.clone()),
            (None, None) => Err(Error::new(ErrorKind::ReadOnly, "the store is open for reading")),
        }
    }
}

impl Store for Sqlite {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Vec<Receipt>, Error>> {
        match self.committer() {
            Ok(committer) => Box::pin(committer.append(batch)),
            Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
        }
    }

    fn append_blocking(&self, batch: Batch) -> Result<Vec<Receipt>, Error> {
        self.committer()?.append_blocking(batch)
    }

    fn defer(&self, batch: Batch) -> Result<Vec<Deferred>, Error> {
        self.committer()?.defer(batch)
    }

    fn flush(&self) {
        if let Ok(committer) = self.committer() {
            committer.flush();
        }
    }

    fn observe(&self, observer: Weak<dyn Observer>) {
        self.core.observers.add(observer);
    }

    fn tail(&self) -> channel::Receiver<u64> {
        self.core.tail.subscribe()
    }

    fn last(&self) -> Result<(u64, Millis), Error> {
        self.core.pool.read(|reader| reader.last())
    }

    fn page(&self, select: &Select, range: Range) -> Result<Page, Error> {
        self.core.pool.read(|reader| page::page(reader, select, range))
    }

    fn row(&self, topic: &Topic, seq: u64) -> Result<Option<Row>, Error> {
        self.core.pool.read(|reader| reader.row(topic, seq))
    }

    fn with_id(&self, prefix: &str) -> Result<Vec<u64>, Error> {
        let prefix = Prefix::parse(prefix)?;
        self.core.pool.read(|reader| self.core.side.find(reader, &prefix))
    }

    fn head(&self, topic: &Topic) -> Result<u64, Error> {
        self.core.pool.read(|reader| reader.head(topic))
    }

    fn keyed(&self, topic: &Topic, key: &str) -> Result<Option<u64>, Error> {
        self.core.pool.read(|reader| reader.keyed(topic, key))
    }

    fn epoch(&self, name: &str) -> Result<u64, Error> {
        self.core.pool.read(|reader| reader.epoch(name))
    }

    fn topics(&self) -> Result<Vec<TopicSummary>, Error> {
        self.core.pool.read(|reader| reader.topics())
    }

    fn bytes(&self, topic: &Topic, upto: u64) -> Result<u64, Error> {
        let (mut bytes, mut from) = (0, 1);
        // No read transaction outlives a page, here of lengths.
        while from <= upto {
            let to = upto.min(from.saturating_add(limits::PASSED_OVER_MAX as u64 - 1));
            let more = self.core.pool.read(|reader| reader.bytes(topic, from, to))?;
            let Some(more) = more else { break };
            bytes += more;
            from = to + 1;
        }
        Ok(bytes)
    }

    fn schema(&self, reference: &SchemaRef) -> Result<Option<Arc<Schema>>, Error> {
        self.core.pool.read(|reader| reader.schema(reference))
    }

    fn schemas(&self) -> Result<Vec<Arc<Schema>>, Error> {
        self.core.pool.read(|reader| reader.schemas())
    }

    fn put_chunks(&self, chunks: Vec<(Digest, Arc<[u8]>)>) -> Result<(), Error> {
        let committer = self.committer()?;
        let mut left = chunks.as_slice();
        while !left.is_empty() {
            // One transaction per slice, so that a large artifact does not hold up small appends.
            let mut bytes = 0;
            let fitting = left.iter().take_while(|(_, chunk)| {
                bytes += chunk.len();
                bytes <= limits::ARTIFACT_SLICE_BYTES_MAX
            });
            let (slice, rest) = left.split_at(fitting.count().max(1));
            committer.write(|writer| slice.iter().try_for_each(|(hash, bytes)| writer.chunk(hash, bytes)))?;
            left = rest;
        }
        Ok(())
    }

    fn put_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        let chunks: Vec<u8> = manifest.chunks.iter().flat_map(|chunk| *chunk.as_bytes()).collect();
        self.committer()?.write(|writer| {
            for chunk in &manifest.chunks {
                if !writer.has_chunk(chunk)? {
                    return Err(missing_chunk(&manifest.hash, chunk));
                }
            }
            writer.manifest(&manifest.hash, manifest.bytes, &chunks)
        })
    }

    fn manifest(&self, hash: &Digest) -> Result<Option<Manifest>, Error> {
        self.core.pool.read(|reader| reader.manifest(hash))
    }

    fn manifests(&self) -> Result<Vec<(Digest, u64)>, Error> {
        self.core.pool.read(|reader| reader.manifests())
    }

    fn chunk(&self, hash: &Digest) -> Result<Option<Arc<[u8]>>, Error> {
        self.core.pool.read(|reader| reader.chunk(hash))
    }

    fn snapshot(&self, key: &str) -> Result<Option<Snapshot>, Error> {
        self.core.side.snapshot(key)
    }

    fn put_snapshot(&self, key: &str, snapshot: &Snapshot) -> Result<(), Error> {
        if !self.writes() {
            return Ok(());
        }
        connect::sync_log(&self.core.path)?;
        let (last, _) = self.last()?;
        self.core.side.put_snapshot(key, snapshot, last)
    }

    fn ids(&self, from: u64, to: u64) -> Result<Vec<(u64, Digest)>, Error> {
        self.core.pool.read(|reader| reader.ids(from, to))
    }

    fn archive(&self) -> Result<Option<Archive>, Error> {
        self.core
            .pool
            .read(|reader| sealed::read(&self.core.path, &reader.connection))
    }

    fn sound(&self) -> Result<(), Error> {
        self.core.pool.read(|reader| reader.integrity())
    }

    fn guarded(&self) -> Result<(), Error> {
        self.core.pool.read(|reader| reader.guarded())
    }

    fn backup(&self, to: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Copied, Error> {
        backup::backup(&self.core.pool, &self.core.path, to, progress)
    }

    fn wal(&self) -> Option<Wal> {
        let look = || wal::of_file(&self.core.path);
        Some(self.core.log.as_ref().map_or_else(look, |log| log.look()))
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.core.path)
    }
}
