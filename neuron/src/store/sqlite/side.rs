//! The index from ids to places, in a file beside the store that may be deleted at any moment: it is only ever a faster
//! way to what the store says, and whatever is found in it is checked there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::{
    lock::beside,
    number::{signed, unsigned},
    read::Reader,
};
use crate::{Error, ErrorKind, Result, limits, store::prefix::Prefix};

/// Marks the side file (`nsid` in ASCII).
const APPLICATION: i64 = 0x6e73_6964;
const FORMAT: i64 = 1;

const TABLES: &str = "
CREATE TABLE id (word INTEGER NOT NULL, pos INTEGER NOT NULL, PRIMARY KEY (word, pos)) STRICT, WITHOUT ROWID;
CREATE TABLE indexed (one INTEGER PRIMARY KEY CHECK (one = 1), pos INTEGER NOT NULL, id BLOB NOT NULL) STRICT;
";

/// Ids are indexed by their first eight bytes; what they share is told apart in the store.
fn word(id: &[u8]) -> i64 {
    let mut first = [0; 8];
    first.iter_mut().zip(id).for_each(|(to, from)| *to = *from);
    // The order of the bytes, on signed numbers.
    (u64::from_be_bytes(first) ^ (1 << 63)).cast_signed()
}

/// The index of one store.
#[derive(Debug)]
pub(super) struct Side {
    path: PathBuf,
    writes: bool,
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
        let (indexed, candidates) = self.candidates(store, prefix).unwrap_or_else(|error| {
            tracing::debug!(file = %self.path.display(), %error, "the index of ids is of no use; looking through the store");
            (0, Vec::new())
        });
        let mut found = Vec::new();
        for pos in candidates {
            if id_at(store, pos)?.is_some_and(|id| prefix.holds(&id)) {
                found.push(unsigned(pos));
            }
        }
        scan(store, indexed, prefix, &mut found)?;
        found.sort_unstable();
        found.dedup();
        found.truncate(limits::ID_MATCHES_MAX);
        Ok(found)
    }

    /// Up to which `pos` the index goes, and what it gives for a prefix.
    fn candidates(&self, store: &Reader, prefix: &Prefix) -> Result<(i64, Vec<i64>), Error> {
        let side = self.open(store)?;
        let answer = || -> rusqlite::Result<(i64, Vec<i64>)> {
            let mut statement =
                side.prepare("SELECT pos FROM id WHERE word BETWEEN ?1 AND ?2 ORDER BY pos LIMIT ?3")?;
            // More candidates than are told apart, as some may only share the first bytes.
            let limit = signed(4 * limits::ID_MATCHES_MAX as u64);
            let places = statement.query_map(params![word(&prefix.first), word(&prefix.last), limit], |row| {
                row.get(0)
            })?;
            Ok((
                indexed(&side)?.map_or(0, |(pos, _)| pos),
                places.collect::<Result<_, _>>()?,
            ))
        };
        answer().map_err(|error| self.failed(&error))
    }

    fn open(&self, store: &Reader) -> Result<Connection, Error> {
        if !self.writes {
            let side = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            self.check(&side, store)?;
            return Ok(side);
        }
        let side = self.current(store).or_else(|_| {
            // Truncated, of another store, newer: it is made anew, as nothing in it is worth keeping.
            for suffix in ["", "-journal"] {
                let mut name = self.path.clone().into_os_string();
                name.push(suffix);
                let _ = fs::remove_file(name);
            }
            self.current(store)
        })?;
        self.fill(&side, store)?;
        Ok(side)
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, Error> {
        let side = Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let side = side.map_err(|error| self.failed(&error))?;
        side.busy_timeout(limits::READ_WAIT_MAX)
            .map_err(|error| self.failed(&error))?;
        Ok(side)
    }

    /// The file as it is, or a new one.
    fn current(&self, store: &Reader) -> Result<Connection, Error> {
        let side = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        let make = || -> rusqlite::Result<()> {
            let empty: bool = side.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
            if empty {
                let mark = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT};");
                side.execute_batch(&format!("BEGIN IMMEDIATE; {mark} {TABLES} COMMIT;"))?;
            }
            Ok(())
        };
        make().map_err(|error| self.failed(&error))?;
        self.check(&side, store)?;
        Ok(side)
    }

    /// Whether the file is an index of this very store.
    fn check(&self, side: &Connection, store: &Reader) -> Result<(), Error> {
        let pragma = |name| side.query_row(name, [], |row| row.get::<_, i64>(0));
        let known = pragma("PRAGMA application_id")
            .and_then(|application| Ok((application, pragma("PRAGMA user_version")?)))
            .and_then(|mark| Ok((mark, indexed(side)?)));
        let (mark, indexed) = known.map_err(|error| self.failed(&error))?;
        let stands = match &indexed {
            Some((pos, id)) => id_at(store, *pos)?.as_ref() == Some(id),
            None => true,
        };
        if mark == (APPLICATION, FORMAT) && stands {
            return Ok(());
        }
        let why = format!("{} is no index of this store", self.path.display());
        Err(Error::new(ErrorKind::NotAStore, why))
    }

    /// Enters what was committed since, in batches that are sorted so that each page is written once.
    fn fill(&self, side: &Connection, store: &Reader) -> Result<(), Error> {
        loop {
            let from = indexed(side)
                .map_err(|error| self.failed(&error))?
                .map_or(0, |(pos, _)| pos);
            let mut batch: Vec<(i64, i64)> = Vec::new();
            let mut end = None;
            each_id(store, from, |pos, id| {
                batch.push((word(id), pos));
                end = Some((pos, id.to_vec()));
                batch.len() < limits::ID_INDEX_BATCH_MAX
            })?;
            let Some((pos, id)) = end else { return Ok(()) };
            batch.sort_unstable();
            let enter = || -> rusqlite::Result<()> {
                side.execute_batch("BEGIN IMMEDIATE")?;
                let mut insert = side.prepare("INSERT OR IGNORE INTO id (word, pos) VALUES (?1, ?2)")?;
                for (word, pos) in &batch {
                    insert.execute([word, pos])?;
                }
                side.execute(
                    "INSERT OR REPLACE INTO indexed (one, pos, id) VALUES (1, ?1, ?2)",
                    params![pos, id],
                )?;
                side.execute_batch("COMMIT")
            };
            enter().map_err(|error| self.failed(&error))?;
        }
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        super::fault::failed(&self.path, error)
    }
}

/// The last envelope that is in the index.
fn indexed(side: &Connection) -> rusqlite::Result<Option<(i64, Vec<u8>)>> {
    side.query_row("SELECT pos, id FROM indexed", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

fn id_at(store: &Reader, pos: i64) -> Result<Option<Vec<u8>>, Error> {
    let mut statement = store.prepare("SELECT id FROM envelope WHERE pos = ?1")?;
    let id = statement.query_row([pos], |row| row.get(0)).optional();
    id.map_err(|error| super::fault::failed(&store.path, &error))
}

/// Shows the ids after `pos`, in order, until `see` has enough.
fn each_id(store: &Reader, pos: i64, mut see: impl FnMut(i64, &[u8]) -> bool) -> Result<(), Error> {
    let mut statement = store.prepare("SELECT pos, id FROM envelope WHERE pos > ?1 ORDER BY pos")?;
    let mut walk = || -> rusqlite::Result<()> {
        let mut rows = statement.query([pos])?;
        while let Some(row) = rows.next()? {
            if !see(row.get(0)?, row.get_ref(1)?.as_blob()?) {
                break;
            }
        }
        Ok(())
    };
    walk().map_err(|error| super::fault::failed(&store.path, &error))
}

fn scan(store: &Reader, after: i64, prefix: &Prefix, found: &mut Vec<u64>) -> Result<(), Error> {
    each_id(store, after, |pos, id| {
        if prefix.holds(id) {
            found.push(unsigned(pos));
        }
        found.len() < limits::ID_MATCHES_MAX
    })
}
