//! Putting a file right without touching what is stored: guards, indexes, the write-ahead log, the side file.

use std::{collections::BTreeSet, fs, path::Path};

use rusqlite::{Connection, OpenFlags};

use super::{
    connect,
    fault::At as _,
    layout::{self, Drift},
    lock::Lock,
    salvage,
};
use crate::{
    Digest, Error, Result, limits,
    store::{Options, beside},
};

/// What a look at a file and at what stands beside it shows.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    pub(crate) drift: Vec<Drift>,
    /// What SQLite's own check finds.
    pub(crate) check: Vec<String>,
    /// Chunks that belong to no artifact, and their bytes.
    pub(crate) orphans: (u64, u64),
}

impl Condition {
    /// Whether pages of the file are damaged, and not only indexes that say something else than their tables.
    pub(crate) fn is_damaged(&self) -> bool {
        self.check.iter().any(|line| index_of(line).is_none())
    }

    /// The indexes that do not say what their tables say.
    pub(crate) fn indexes(&self) -> BTreeSet<&str> {
        self.check.iter().filter_map(|line| index_of(line)).collect()
    }
}

/// Findings of SQLite's own check that are told; more would only repeat them.
const CHECKS: usize = 20;

/// Looks through a file.
pub(crate) fn condition(connection: &Connection, path: &Path) -> Result<Condition, Error> {
    Ok(Condition {
        drift: layout::drift(connection).at(path)?,
        check: salvage::lines(connection, &format!("PRAGMA integrity_check({CHECKS})")).at(path)?,
        // Where the tables are damaged, that is what is told.
        orphans: orphans(connection).unwrap_or_default(),
    })
}

/// Chunks that no manifest names. Memory holds the hashes of those that one does.
fn orphans(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    let mut named = std::collections::HashSet::new();
    let mut statement = connection.prepare("SELECT chunks FROM manifest")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        named.extend(
            row.get_ref(0)?
                .as_blob()?
                .chunks(32)
                .filter_map(|hash| Digest::from_slice(hash).ok()),
        );
    }
    let (mut count, mut bytes) = (0, 0);
    let mut statement = connection.prepare("SELECT hash, length(bytes) FROM chunk")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if Digest::from_slice(row.get_ref(0)?.as_blob()?).is_ok_and(|hash| !named.contains(&hash)) {
            count += 1;
            bytes += row.get::<_, i64>(1).map_or(0, super::number::unsigned);
        }
    }
    Ok((count, bytes))
}

/// The index that a finding of SQLite's own check is about, if it is about one alone: its table is the truth, so that it
/// can be made anew.
pub(crate) fn index_of(finding: &str) -> Option<&str> {
    let about = [
        "missing from index ",
        "wrong # of entries in index ",
        "values differ from index ",
    ];
    about
        .iter()
        .find_map(|words| finding.split_once(words))
        .map(|(_, name)| name)
}

/// How the side file is.
pub(crate) enum Side {
    /// It is whole, or not there.
    Whole,
    /// It is damaged, for this reason, and can be removed.
    Damaged(String),
    /// Something else stands in its place, or it may not be read.
    InTheWay(String),
}

/// Looks at the side file.
pub(crate) fn side(path: &Path) -> Side {
    let side = beside(path, "side");
    let shown = side.display();
    match side.symlink_metadata() {
        Err(_) => return Side::Whole,
        Ok(metadata) if !metadata.is_file() => {
            return Side::InTheWay(format!("{shown} is no regular file, so that it is no side file"));
        }
        Ok(_) => {}
    }
    if let Err(error) = fs::File::open(&side) {
        return Side::InTheWay(format!("{shown} cannot be read: {error}"));
    }
    let looked = connect::probe(&side).and_then(|connection| salvage::lines(&connection, "PRAGMA quick_check(1)"));
    match looked.map(|found| found.into_iter().next()) {
        Ok(None) => Side::Whole,
        Ok(Some(why)) => Side::Damaged(why),
        Err(error) => Side::Damaged(error.to_string()),
    }
}

pub(crate) fn remove_side(path: &Path) -> Result<(), Error> {
    let side = beside(path, "side");
    fs::remove_file(&side).map_err(|error| Error::from(error).context(format!("{} cannot be removed", side.display())))
}

/// Makes guards and indexes anew, as one transaction. The tables themselves are left alone.
pub(crate) fn layout(path: &Path, drift: &[Drift], indexes: &[String]) -> Result<(), Error> {
    let mut lock = Lock::of_writers(path)?;
    lock.take(Options::default().wait, path)?;
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let anew = drift.iter().filter(|drift| drift.is_mendable()).map(|drift| {
        let gone = format!("DROP {} IF EXISTS {};", drift.part.kind, quoted(&drift.part.name));
        gone + &drift
            .made_by
            .as_ref()
            .map_or_else(String::new, |made| format!("{made};"))
    });
    let filled = indexes.iter().map(|index| format!("REINDEX {};", quoted(index)));
    let statements: String = anew.chain(filled).collect();
    let text = format!("BEGIN IMMEDIATE; {statements} COMMIT;");
    let connection = writing(path).at(path)?;
    let mended = connection.execute_batch(&text).at(path);
    if mended.is_err() && !connection.is_autocommit() {
        // Closing it would undo it as well.
        let _ = connection.execute_batch("ROLLBACK");
    }
    lock.release();
    mended
}

/// Moves the write-ahead log into the file; false if somebody reads what stands there.
pub(crate) fn checkpoint(path: &Path) -> Result<bool, Error> {
    let connection = writing(path).at(path)?;
    let busy: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .at(path)?;
    Ok(busy == 0)
}

fn writing(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(limits::READ_WAIT_MAX)?;
    connection.execute_batch(connect::TIDY)?;
    Ok(connection)
}

/// Whether locks keep anybody out on the file system of a store; unknown where there is no lock to try.
pub(crate) fn locks_hold(path: &Path) -> Option<bool> {
    let open = || fs::File::open(beside(path, "lock")).ok();
    let (one, other) = (open()?, open()?);
    match one.try_lock() {
        // Somebody holds it, and is seen to.
        Err(fs::TryLockError::WouldBlock) => Some(true),
        Err(fs::TryLockError::Error(_)) => Some(false),
        Ok(()) => Some(matches!(other.try_lock(), Err(fs::TryLockError::WouldBlock))),
    }
}

/// The files beside a store that its writers lock.
pub(crate) fn locks(path: &Path) -> [std::path::PathBuf; 2] {
    [beside(path, "lock"), beside(path, "open")]
}

/// Bytes of the write-ahead log; nothing if there is none.
pub(crate) fn log_bytes(path: &Path) -> Option<u64> {
    fs::metadata(connect::log_of(path)).ok().map(|log| log.len())
}
