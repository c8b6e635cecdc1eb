//! What SQLite refuses, in the words of this crate.

use std::{fs, path::Path};

use rusqlite::ErrorCode;

use super::connect;
use crate::{Error, ErrorKind, Result};

/// Turns a refusal of SQLite into an error that names the file and what to do.
pub(super) fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    let file = path.display();
    if is_busy(error) {
        // What SQLite says of it ("database is locked") helps nobody.
        let why = format!("another program holds {file}: let it finish, then try again");
        return Error::new(ErrorKind::Busy, why);
    }
    let (kind, what) = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (
            ErrorKind::Full,
            format!("the disk of {file} is full: free some space, then go on; nothing was half-written"),
        ),
        Some(ErrorCode::ReadOnly) if in_the_way(path).is_none() => (
            ErrorKind::ReadOnly,
            format!("{file} can only be read: check its permissions and those of its folder"),
        ),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::NotAStore,
            format!("{file} is not a SQLite file: give the path of a store"),
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Corrupt,
            format!("{file} is truncated or damaged: restore it from a copy"),
        ),
        Some(ErrorCode::TooBig) => (
            ErrorKind::TooLarge,
            format!("a value is too large for {file}: use an artifact"),
        ),
        Some(ErrorCode::ConstraintViolation) => (
            ErrorKind::Corrupt,
            format!("{file} refused a row that should be its next: its tables contradict themselves, run `verify`"),
        ),
        Some(
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::SystemIoFailure | ErrorCode::ReadOnly,
        ) => {
            if let Some(why) = in_the_way(path) {
                return Error::new(ErrorKind::Io, why);
            }
            let what =
                format!("{file} cannot be read or written: check the disk and the permissions of file and folder");
            (ErrorKind::Io, what)
        }
        Some(_) => (ErrorKind::Io, format!("{file}: SQLite refused")),
        None => (
            ErrorKind::Corrupt,
            format!("{file} holds a value of the wrong type: run `verify`"),
        ),
    };
    match kind {
        // What SQLite says of these says no more.
        ErrorKind::Corrupt | ErrorKind::Full | ErrorKind::NotAStore if error.sqlite_error_code().is_some() => {
            Error::new(kind, what)
        }
        _ => Error::new(kind, error).context(what),
    }
}

/// What keeps SQLite from opening a store, of what can be told from outside.
fn in_the_way(store: &Path) -> Option<String> {
    for part in [store, &connect::log_of(store), &connect::index_of(store)] {
        let Ok(metadata) = fs::metadata(part) else { continue };
        let shown = part.display();
        if !metadata.is_file() {
            return Some(format!(
                "{shown} is no regular file, and stands where a file of the store belongs: move it away"
            ));
        }
        if let Err(error) = rustix::fs::access(part, rustix::fs::Access::READ_OK) {
            return Some(format!("{shown} cannot be read ({error}): give this user the right to"));
        }
    }
    None
}

/// Whether somebody else holds the file, so that waiting helps.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

/// `map_err` with the path of the file.
pub(super) trait At<T> {
    /// Names the file in the error.
    fn at(self, path: &Path) -> Result<T, Error>;
}

impl<T> At<T> for rusqlite::Result<T> {
    fn at(self, path: &Path) -> Result<T, Error> {
        self.map_err(|error| failed(path, &error))
    }
}
