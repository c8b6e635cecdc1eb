//! What a store tells of its write-ahead log.

use std::time::Duration;

/// The write-ahead log of a store, as this process sees it.
///
/// ```
/// use neuron::store::{Options, Sqlite, Store as _};
/// # let folder = tempfile::tempdir()?;
/// let store = Sqlite::open(folder.path().join("notes.db"), Options::default())?;
/// let wal = store.wal().unwrap_or_default();
/// assert_eq!((wal.held_bytes, wal.held_for), (0, None));
/// # Ok::<(), neuron::BoxError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wal {
    /// Bytes of its file.
    pub bytes: u64,
    /// Bytes that could not be moved into the store at the last try, because somebody still reads an older state. Known
    /// only where the store is open for writing.
    pub held_bytes: u64,
    /// For how long such a reader has been seen.
    pub held_for: Option<Duration>,
}
