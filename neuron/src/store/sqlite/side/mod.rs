//! What is derived from the store, in a file beside it that may be deleted at any moment, also while it is in use: the
//! index of ids, and the snapshots of folds. It is only ever a faster way to what the store says.
//!
//! Nothing in it is trusted. Each part carries a checksum and the id of the envelope up to which it goes; what does not
//! fit is thrown away and made again. So it needs no durability: it has no journal and is never synced.

mod ids;
mod snapshots;

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, config::DbConfig};

use super::read::Reader;
use crate::{
    Error, ErrorKind, Result, limits,
    store::{Snapshot, beside, prefix::Prefix},
};

/// Marks the side file (`nsid` in ASCII).
const APPLICATION: i64 = 0x6e73_6964;
const FORMAT: i64 = 2;

const TABLES: &str = "
CREATE TABLE ids (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, id BLOB NOT NULL, entries BLOB NOT NULL, \
    checksum BLOB NOT NULL) STRICT;
CREATE TABLE snapshot (key TEXT PRIMARY KEY, pos INTEGER NOT NULL, id BLOB NOT NULL, state BLOB NOT NULL, \
    checksum BLOB NOT NULL) STRICT;
";

/// The side file of one store. It is opened for each use, so that it may come and go.
#[derive(Debug)]
pub(super) struct Side {
    path: PathBuf,
    /// Whether it may be written: a store that is open for reading leaves no trace.
    writes: bool,
}

/// Why the side file was of no use.
#[derive(Debug)]
enum Fault {
    /// It is damaged, of another format, or no side file at all: it is made anew.
    Useless(String),
    /// It may be good, and cannot be used now.
    Away(Error),
}

impl Side {
    pub(super) fn new(store: &Path, writes: bool) -> Self {
        Self {
            path: beside(store, "side"),
            writes,
        }
    }

    /// Where the envelopes stand whose id begins so, in order. Fills the index first where that is allowed, and looks
    /// through the store itself for what the index does not cover.
    pub(super) fn find(&self, store: &Reader, prefix: &Prefix) -> Result<Vec<u64>, Error> {
        let indexed = self.with(|side| ids::find(side, store, prefix, self.writes));
        let indexed = indexed.unwrap_or_else(|error| {
            tracing::debug!(file = %self.path.display(), %error, "the index of ids is of no use; looking through the store");
            ids::Found::default()
        });
        ids::complete(indexed, store, prefix)
    }

    /// The snapshot under a key.
    pub(super) fn snapshot(&self, key: &str) -> Result<Option<Snapshot>, Error> {
        if !self.writes && !self.path.exists() {
            return Ok(None);
        }
        self.with(|side| snapshots::get(side, key))
    }

    /// Puts a snapshot aside. `last` is the last `pos` of the store.
    pub(super) fn put_snapshot(&self, key: &str, snapshot: &Snapshot, last: u64) -> Result<(), Error> {
        if !self.writes {
            return Ok(());
        }
        self.with(|side| snapshots::put(side, key, snapshot, last))
    }

    /// Works with the file. One that is of no use is made anew, once.
    fn with<T>(&self, work: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let attempt = || {
            let side = self.open()?;
            work(&side).map_err(|error| self.fault(&error))
        };
        let outcome = attempt().or_else(|fault| match fault {
            Fault::Useless(why) if self.writes => {
                tracing::debug!(file = %self.path.display(), why, "the side file is made anew");
                self.remove();
                attempt()
            }
            fault => Err(fault),
        });
        outcome.map_err(|fault| match fault {
            Fault::Useless(why) => Error::new(ErrorKind::Corrupt, format!("{}: {why}", self.path.display())),
            Fault::Away(error) => error,
        })
    }

    fn open(&self) -> Result<Connection, Fault> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) if !metadata.is_file() => return Err(Fault::Useless("it is no regular file".into())),
            _ => {}
        }
        let access = if self.writes {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        } else {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        };
        let side = Connection::open_with_flags(&self.path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let side = side.map_err(|error| self.fault(&error))?;
        let known = self.prepare(&side).map_err(|error| self.fault(&error))?;
        if known == (APPLICATION, FORMAT) {
            return Ok(side);
        }
        Err(Fault::Useless(format!("it is no side file of format {FORMAT}")))
    }

    /// Makes the tables if there are none. Gives whose file of which format it is.
    fn prepare(&self, side: &Connection) -> rusqlite::Result<(i64, i64)> {
        side.busy_timeout(limits::SIDE_WAIT_MAX)?;
        side.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        side.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;")?;
        let is_empty = || {
            side.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
                row.get::<_, bool>(0)
            })
        };
        if self.writes {
            side.execute_batch("PRAGMA synchronous = OFF;")?;
            side.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))?;
            if is_empty()? {
                let making = Transaction::new_unchecked(side, TransactionBehavior::Immediate)?;
                // Another process may have been faster.
                if is_empty()? {
                    let mark = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT};");
                    making.execute_batch(&format!("{mark} {TABLES}"))?;
                }
                making.commit()?;
            }
        }
        let pragma = |name| side.query_row(name, [], |row| row.get::<_, i64>(0));
        Ok((pragma("PRAGMA application_id")?, pragma("PRAGMA user_version")?))
    }

    /// Removes a file that is of no use: nothing in it is worth keeping.
    fn remove(&self) {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let mut name = self.path.clone().into_os_string();
            name.push(suffix);
            // What cannot be removed is done without.
            let _ = fs::remove_file(name);
        }
    }

    fn fault(&self, error: &rusqlite::Error) -> Fault {
        let passing = [
            ErrorCode::DatabaseBusy,
            ErrorCode::DatabaseLocked,
            ErrorCode::FileLockingProtocolFailed,
            ErrorCode::DiskFull,
            ErrorCode::ReadOnly,
            ErrorCode::CannotOpen,
            ErrorCode::PermissionDenied,
            ErrorCode::SystemIoFailure,
            ErrorCode::OutOfMemory,
        ];
        match error.sqlite_error_code() {
            Some(code) if passing.contains(&code) => Fault::Away(super::fault::failed(&self.path, error)),
            // Tables that are missing or have another form, values of another type, pages that are none.
            _ => Fault::Useless(error.to_string()),
        }
    }
}
