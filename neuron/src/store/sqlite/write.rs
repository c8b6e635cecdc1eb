//! The one write connection of a process.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use rusqlite::{Connection, ErrorCode};

use super::{
    fault::{At as _, is_busy},
    lock::{Lock, Patience},
    wal::{Log, Mover},
};
use crate::{Error, ErrorKind, Millis, Result, Topic, envelope::Kind, store::backend::Backend};

/// Where a topic stands: its interned number, none before its first envelope, and its last `seq`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) number: Option<i64>,
    pub(super) head: u64,
}

/// What is known of the file without reading it; dropped whenever somebody else may have written.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) last: Option<(u64, Millis)>,
    pub(super) topics: HashMap<Topic, Place>,
    pub(super) kinds: HashMap<Kind, i64>,
    pub(super) epochs: HashMap<String, u64>,
}

/// Whether a transaction was opened, or who is in the way.
enum Begun {
    Yes,
    /// A process of this kind, which has signed the lock.
    HeldByProcess,
    /// Somebody who writes to the file without the lock.
    HeldByProgram,
}

/// The write connection, the lock beside the file, and what is cached of both.
#[derive(Debug)]
pub(super) struct Writer {
    /// Ends first: the connection of the writer is the last one to close the file.
    mover: Mover,
    pub(super) path: Arc<Path>,
    connection: Connection,
    lock: Lock,
    wait: Duration,
    pub(super) known: Known,
    /// `data_version` at the last look: another one means that somebody else has committed.
    version: Option<i64>,
    /// The transaction has written something.
    dirty: bool,
    /// The transaction holds work of the program on its own tables.
    shared: bool,
    /// SQLite refused a write: the transaction may be half done, or gone, and must not be committed.
    failed: Option<Error>,
    log: Arc<Log>,
}

impl Writer {
    pub(super) fn new(mut connection: Connection, lock: Lock, wait: Duration, log: Arc<Log>) -> Result<Self, Error> {
        let (counted, path) = (log.clone(), log.path().clone());
        let count = move |_: &mut rusqlite::hooks::Wal, count: i32| {
            counted.grew_to(u64::try_from(count).unwrap_or(0));
            Ok(())
        };
        connection.wal_hook(Some(count)).at(&path)?;
        Ok(Self {
            mover: Mover::new(log.clone()),
            path,
            connection,
            lock,
            wait,
            known: Known::default(),
            version: None,
            dirty: false,
            shared: false,
            failed: None,
            log,
        })
    }

    /// Opens the transaction, unless somebody else holds the file.
    fn try_begin(&mut self) -> Result<Begun, Error> {
        if !self.lock.try_take()? {
            return Ok(Begun::HeldByProcess);
        }
        match self.start() {
            Ok(version) => {
                if self.version.replace(version) != Some(version) {
                    self.known = Known::default();
                }
                Ok(Begun::Yes)
            }
            Err(error) => {
                self.undo();
                if is_busy(&error) {
                    return Ok(Begun::HeldByProgram);
                }
                Err(super::fault::failed(&self.path, &error))
            }
        }
    }

    fn start(&self) -> rusqlite::Result<i64> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))
    }

    /// Ends whatever transaction is open and lets the lock go.
    fn undo(&mut self) {
        if !self.connection.is_autocommit() {
            // SQLite may have rolled back by itself; then there is nothing left to undo.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        self.lock.release();
    }

    /// Runs a statement that writes; its failure fails the whole transaction.
    pub(super) fn written<T>(&mut self, write: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.dirty = true;
        let outcome = write(&self.connection).at(&self.path);
        if let Err(error) = &outcome {
            self.failed = Some(error.clone());
        }
        outcome
    }

    /// Fails the whole transaction.
    pub(super) fn broken(&mut self, error: Error) -> Error {
        self.failed.get_or_insert(error).clone()
    }

    /// Reads in the transaction. A failure fails it too: what was decided on half a reading must not stand.
    pub(super) fn seen<T>(&mut self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let outcome = read(&self.connection).at(&self.path);
        if let Err(error) = &outcome {
            self.failed.get_or_insert_with(|| error.clone());
        }
        outcome
    }

    /// The connection, for SQL of the program.
    pub(super) fn guest(&mut self) -> &mut Connection {
        (self.dirty, self.shared) = (true, true);
        &mut self.connection
    }

    #[cfg(feature = "testing")]
    pub(super) fn limit_growth(&mut self, pages: Option<u32>) -> Result<(), Error> {
        self.written(|connection| {
            let now: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            let most = pages.map_or(i64::from(u32::MAX) - 1, |pages| now + i64::from(pages));
            connection.query_row(&format!("PRAGMA max_page_count = {most}"), [], |_| Ok(()))
        })
    }
}

/// The tables of the program have a constraint that waits for the commit.
fn unmet() -> Error {
    let why = "a foreign key that is checked at the commit names a row that is not there: insert that row too";
    Error::new(ErrorKind::Conflict, why)
}

impl Backend for Writer {
    fn begin(&mut self, wait: bool) -> Result<bool, Error> {
        // A panic in the last transaction may have left it open.
        self.rollback();
        let mut patience = Patience::of(self.wait);
        loop {
            let begun = self.try_begin()?;
            match begun {
                Begun::Yes => return Ok(true),
                _ if !wait => return Ok(false),
                Begun::HeldByProcess => self.lock.wait(&mut patience, &self.path)?,
                Begun::HeldByProgram => self.lock.wait_for_program(&mut patience, &self.path)?,
            }
        }
    }

    fn commit(&mut self) -> Result<(), Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let committed = self.connection.prepare_cached("COMMIT");
        if let Err(error) = committed.and_then(|mut commit| commit.execute([])) {
            return Err(match error.sqlite_error_code() {
                Some(ErrorCode::ConstraintViolation) if self.shared => unmet(),
                _ => super::fault::failed(&self.path, &error),
            });
        }
        (self.dirty, self.shared) = (false, false);
        self.lock.release();
        Ok(())
    }

    fn rollback(&mut self) {
        if self.dirty || self.failed.is_some() {
            self.known = Known::default();
        }
        (self.dirty, self.shared) = (false, false);
        self.failed = None;
        self.undo();
    }

    fn rest(&mut self) {
        if self.log.is_due() {
            let lock = &mut self.lock;
            self.mover.advance(&self.connection, |finish| {
                if lock.try_take().is_ok_and(|taken| taken) {
                    finish();
                    lock.release();
                }
            });
        }
    }
}
