//! How connections to the file are made. The file itself is never opened outside SQLite: closing any descriptor of it
//! would drop the locks that SQLite holds in this process.

use std::{
    fmt::Write as _,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::options::Durability;
use crate::{Error, Result, limits, store::beside};

/// Statements kept prepared by one connection: all that there are.
const STATEMENTS: usize = 64;

/// No copy of a record stays in the free space of a page: whoever finds one in the file has found the record.
pub(super) const TIDY: &str = "PRAGMA secure_delete = FAST;";

/// How a reader reaches the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// This process also writes: an ordinary reader.
    Shared,
    /// This process only reads, and another may write: no byte is written, not even into the shared index of the
    /// write-ahead log.
    Foreign,
    /// Nobody has the file open: it is read as it stands, for as long as it stands so.
    Still(Stamp),
}

/// What a file looked like; another look means that somebody has written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl Stamp {
    /// The file's, if nobody has it open for writing: then there is no write-ahead log beside it.
    pub(super) fn of_still(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        if log_of(path).exists() {
            return None;
        }
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            inode: metadata.ino(),
        })
    }
}

/// The write-ahead log of a file.
pub(super) fn log_of(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// The shared index of that log.
pub(super) fn index_of(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-shm");
    name.into()
}

/// Brings everything that was committed so far onto the disk, whoever committed it and with whatever durability. What is
/// no longer in the log was synced when it was moved into the file. (The log is no file that SQLite locks.)
pub(super) fn sync_log(path: &Path) -> Result<(), Error> {
    let synced = fs::File::open(log_of(path)).and_then(|log| log.sync_data());
    match synced {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced.map_err(|error| Error::from(error).context(format!("the log of {}", path.display()))),
    }
}

/// The connection that writes. Its opening waits so long for another that recovers or closes the file.
pub(super) fn writer(path: &Path, durability: Durability, wait: Duration) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(wait.min(limits::READ_WAIT_MAX))?;
    prepare(&connection)?;
    let level = match durability {
        Durability::PowerLoss => "FULL",
        Durability::Process => "NORMAL",
    };
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch(&format!(
        "{TIDY} PRAGMA synchronous = {level}; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;"
    ))?;
    connection.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))?;
    // Cut when it begins anew: after a reader has kept it growing.
    connection.query_row(
        &format!("PRAGMA journal_size_limit = {}", limits::WAL_KEPT_BYTES_MAX),
        [],
        |_| Ok(()),
    )?;
    // From here on whoever waits does so by itself, and can say for whom.
    connection.busy_timeout(Duration::ZERO)?;
    Ok(connection)
}

/// A connection that reads, and waits so long for another that recovers or closes the file.
pub(super) fn reader(path: &Path, reach: Reach, wait: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let with = |options: &str| {
        let connection = Connection::open_with_flags(uri(path, options), flags)?;
        connection.busy_timeout(wait.min(limits::READ_WAIT_MAX))?;
        prepare(&connection)?;
        // The file is opened by the first statement that needs it.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    match reach {
        Reach::Shared => with("mode=ro"),
        Reach::Still(_) => with("mode=ro&immutable=1"),
        // A shared index that is missing (a crash on another machine) has to be made to read the log at all.
        Reach::Foreign => with("mode=ro&readonly_shm=1").or_else(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::CannotOpen) => with("mode=ro"),
            _ => Err(error),
        }),
    }
}

/// A connection that looks at the head of a file of unknown kind, without locks, logs or any other trace.
pub(super) fn probe(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(
        uri(path, "mode=ro&immutable=1"),
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI,
    )
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;")
}

/// A path as SQLite reads it in a URI; bytes that mean something there are escaped.
fn uri(path: &Path, options: &str) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri + "?" + options
}

/// Where a new store is built before it takes its name.
pub(super) fn unfinished(path: &Path) -> std::path::PathBuf {
    beside(path, "new")
}
