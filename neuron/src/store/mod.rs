//! The store of record: topic logs, artifact blobs, the schema registry. Three things, nothing overwritten.
//!
//! [`Append`] is the only way in: a batch across topics, all or nothing, with expectations that are checked in the write
//! transaction. Everything else here reads.

mod append;
mod archive;
mod as_of;
mod backend;
mod beside;
mod commit;
mod company;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod export;
mod fault;
pub(crate) mod gapless;
mod leader;
mod memory;
mod observer;
mod prefix;
mod queue;
mod row;
mod seal;
mod snapshot;
pub(crate) mod sqlite;
mod standby;
pub(crate) mod tables;
pub mod verify;
mod wal;

use std::{
    fmt,
    path::Path,
    sync::{Arc, Weak},
};

use futures::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::watch;

pub use append::{Append, Batch, Expectation};
pub(crate) use archive::register;
pub use archive::{Archive, Part};
pub use as_of::AsOf;
pub(crate) use beside::beside;
pub use fault::{Crash, Fault, Point};
pub use memory::Memory;
pub use observer::Observer;
pub use row::{Page, Range, Row, Select};
pub(crate) use seal::INJECTED;
pub use snapshot::Snapshot;
pub use sqlite::{Access, Durability, Options, Sqlite};
pub use tables::Transaction;
pub use wal::Wal;

use crate::{
    Deferred, Digest, Envelope, Error, ErrorKind, Millis, Receipt, Result, Schema, SchemaRef, Topic, topic::catalog,
};

/// A topic and how far it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSummary {
    /// Its name.
    pub topic: Topic,
    /// Its last `seq`.
    pub head: u64,
    /// The `pos` of its last envelope.
    pub last_pos: u64,
}

/// Which chunks make up an artifact, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Plain BLAKE3 of the whole content.
    pub hash: Digest,
    /// Length of the content in bytes.
    pub bytes: u64,
    /// Plain BLAKE3 of each chunk.
    pub chunks: Vec<Digest>,
}

/// How far a long work on a store has come, in pages of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pages that are done.
    pub done: u64,
    /// All pages.
    pub total: u64,
}

/// A copy of a store, as it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Copied {
    /// The head of the copy, which is one that the store had.
    pub head: verify::Head,
    /// Bytes of the file.
    pub bytes: u64,
}

/// A store of record.
///
/// Obligations: what an append gave a receipt for survives what its durability promises; rows are visible to readers
/// and observers only after that; `pos` and each topic's `seq` count from 1 without gaps; nothing written ever changes.
/// Methods without `async` may block for the length of one page or one commit.
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Appends a batch and waits until it is durable.
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict), [`Fenced`](crate::ErrorKind::Fenced),
    /// [`IdempotencyConflict`](crate::ErrorKind::IdempotencyConflict), [`Malformed`](crate::ErrorKind::Malformed) or
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for a refused batch, which wrote nothing; a kind of the disk if the
    /// commit failed.
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Vec<Receipt>, Error>>;
    /// As [`Store::append`], from a thread that may block.
    ///
    /// # Errors
    /// As [`Store::append`].
    fn append_blocking(&self, batch: Batch) -> Result<Vec<Receipt>, Error>;
    /// Appends a batch with the next commit, or after 100 ms; one handle per draft.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) if the store is closed. A refusal is told to the owner's next append, and by
    /// [`Deferred::refusal`].
    fn defer(&self, batch: Batch) -> Result<Vec<Deferred>, Error>;
    /// Commits what is deferred, now. Blocks.
    fn flush(&self);
    /// Adds an observer of commits, for as long as it lives.
    fn observe(&self, observer: Weak<dyn Observer>);
    /// The last `pos` that may be read; changes when this process commits, and within 50 ms when another does.
    fn tail(&self) -> watch::Receiver<u64>;
    /// The last `pos` and its `at`.
    ///
    /// # Errors
    /// A kind of the disk.
    fn last(&self) -> Result<(u64, Millis), Error>;
    /// One page of a range.
    ///
    /// # Errors
    /// A kind of the disk, or [`Corrupt`](crate::ErrorKind::Corrupt).
    fn page(&self, select: &Select, range: Range) -> Result<Page, Error>;
    /// The envelope at a place of a topic.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn row(&self, topic: &Topic, seq: u64) -> Result<Option<Row>, Error>;
    /// The `pos` of the envelopes whose id begins with these hex digits, in order; at most 16.
    ///
    /// # Errors
    /// [`Malformed`](crate::ErrorKind::Malformed) unless these are 1 to 64 lower-case hex digits; as [`Store::page`].
    fn with_id(&self, prefix: &str) -> Result<Vec<u64>, Error>;
    /// The last `seq` of a topic; 0 if it holds nothing.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn head(&self, topic: &Topic) -> Result<u64, Error>;
    /// The `seq` of the last envelope of a topic with a key.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn keyed(&self, topic: &Topic, key: &str) -> Result<Option<u64>, Error>;
    /// The newest epoch of an owned name; 0 if it was never owned.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn epoch(&self, name: &str) -> Result<u64, Error>;
    /// All topics, by name.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn topics(&self) -> Result<Vec<TopicSummary>, Error>;
    /// Bytes of the records of a topic up to and with a `seq`. Reads all of them, a page at a time.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn bytes(&self, topic: &Topic, upto: u64) -> Result<u64, Error> {
        let (mut bytes, mut range) = (0, Range::ALL);
        loop {
            let page = self.page(&Select::Topic(topic.clone()), range)?;
            let counted = page.rows.iter().take_while(|row| row.seq <= upto);
            bytes += counted.map(|row| row.record.len() as u64).sum::<u64>();
            match page.next.filter(|_| page.rows.last().is_none_or(|row| row.seq < upto)) {
                Some(next) => range.from = next,
                None => return Ok(bytes),
            }
        }
    }
    /// A registered schema.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn schema(&self, reference: &SchemaRef) -> Result<Option<Arc<Schema>>, Error>;
    /// All registered schemas, in the order of registration; the first is plane 0.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn schemas(&self) -> Result<Vec<Arc<Schema>>, Error>;
    /// Stores chunks; one that is there already stays. Blocks.
    ///
    /// # Errors
    /// A kind of the disk.
    fn put_chunks(&self, chunks: Vec<(Digest, Arc<[u8]>)>) -> Result<(), Error>;
    /// Stores a manifest whose chunks are stored; one that is there already stays. Blocks.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if a chunk is not stored, or a kind of the disk.
    fn put_manifest(&self, manifest: &Manifest) -> Result<(), Error>;
    /// The manifest of an artifact.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn manifest(&self, hash: &Digest) -> Result<Option<Manifest>, Error>;
    /// Hash and length of every artifact.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn manifests(&self) -> Result<Vec<(Digest, u64)>, Error>;
    /// The bytes of a chunk.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn chunk(&self, hash: &Digest) -> Result<Option<Arc<[u8]>>, Error>;
    /// The snapshot that was put aside under this key, if it is still there and whole. It may be one of another log:
    /// whoever takes it up compares the id. A store that keeps none gives none.
    ///
    /// # Errors
    /// A kind of the disk. The log is then folded from its beginning.
    fn snapshot(&self, key: &str) -> Result<Option<Snapshot>, Error> {
        let _ = key;
        Ok(None)
    }
    /// Puts a snapshot aside, in place of the one under this key. It is written once everything up to its `pos` is on
    /// the disk; appends do not wait for it. It may be lost at any moment. A handle that only reads keeps none.
    ///
    /// # Errors
    /// A kind of the disk. Nothing but time is lost then.
    fn put_snapshot(&self, key: &str, snapshot: &Snapshot) -> Result<(), Error> {
        let _ = (key, snapshot);
        Ok(())
    }
    /// The first ids of a range of the log, with their `pos`, in order; at most
    /// [`ID_PAGE_MAX`](crate::limits::ID_PAGE_MAX), none at its end.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn ids(&self, from: u64, to: u64) -> Result<Vec<(u64, Digest)>, Error> {
        let range = Range { from, to, ..Range::ALL };
        let rows = self.page(&Select::All, range)?.rows;
        Ok(rows.into_iter().map(|row| (row.pos, row.id)).collect())
    }
    /// Which part of which store stands here, if this is a sealed archive.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn archive(&self) -> Result<Option<Archive>, Error> {
        Ok(None)
    }
    /// What the store's own machinery finds wrong with itself, page by page; [`verify`](verify::verify) tells what the
    /// rows say.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) with what was found.
    fn sound(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Whether everything that keeps the past from being changed is in its place, and all that was committed is read: of a
    /// file, that its write-ahead log does not break off before its end. Reads that log.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) with what is missing, lost, or not as it was made.
    fn guarded(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Copies everything that stands now, artifacts and schemas included, to a new file, while others write. The file
    /// takes its name once it is whole and durable; nothing is overwritten. Blocks.
    ///
    /// ```
    /// use neuron::store::{Options, Sqlite, Store as _, verify};
    /// # let folder = tempfile::tempdir()?;
    /// let store = Sqlite::open(folder.path().join("notes.db"), Options::default())?;
    /// let copied = store.backup(&folder.path().join("copy.db"), &mut |_| {})?;
    /// assert_eq!(copied.head, verify::head(&store)?);
    /// # Ok::<(), neuron::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`Conflict`](crate::ErrorKind::Conflict) if there is a file of that name,
    /// [`Busy`](crate::ErrorKind::Busy) if another process makes it, [`Misuse`](crate::ErrorKind::Misuse) of a store
    /// without a file, or a kind of the disk.
    fn backup(&self, to: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Copied, Error> {
        let _ = (to, progress);
        let why = "a store in memory has no file to copy: export it";
        Err(Error::new(ErrorKind::Misuse, why))
    }
    /// Its write-ahead log, if it has one.
    fn wal(&self) -> Option<Wal> {
        None
    }
    /// The file, if there is one.
    fn path(&self) -> Option<&Path>;
}

/// Why a manifest is not taken.
pub(crate) fn missing_chunk(artifact: &Digest, chunk: &Digest) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("chunk {chunk} of artifact {artifact} is not stored: store the chunks before the manifest"),
    )
}

/// The owned name and epoch that a row of `$leases` establishes.
pub(crate) fn epoch_of(row: &Row) -> Option<(String, u64)> {
    #[derive(Deserialize)]
    struct Lease {
        epoch: u64,
    }
    if row.topic != catalog::leases() {
        return None;
    }
    let lease: Lease = row.envelope().ok()?.decode().ok()?;
    row.key.as_ref().map(|name| (name.to_string(), lease.epoch))
}

/// The envelopes of one batch, from its first: contiguous, and all with the same idempotency key.
pub(crate) fn same_batch(
    envelopes: impl Iterator<Item = Result<Envelope, Error>>,
    key: &str,
) -> Result<Vec<Envelope>, Error> {
    let mut batch = Vec::new();
    for envelope in envelopes {
        let envelope = envelope?;
        if envelope.headers.decode::<String>("idempotency-key").as_deref() != Some(key) {
            break;
        }
        batch.push(envelope);
    }
    Ok(batch)
}
