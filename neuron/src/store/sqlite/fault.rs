//! What SQLite refuses, in the words of this crate.

use std::path::Path;

use rusqlite::ErrorCode;

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
        Some(ErrorCode::ReadOnly) => (
            ErrorKind::ReadOnly,
            format!("{file} can only be read: check its permissions and those of its folder"),
        ),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::NotAStore,
            format!("{file} is not a SQLite file: give the path of a store"),
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Corrupt,
            format!("{file} is truncated or damaged: restore it from a copy; `verify` tells what is left"),
        ),
        Some(ErrorCode::TooBig) => (
            ErrorKind::TooLarge,
            format!("a value is too large for {file}: use an artifact"),
        ),
        Some(ErrorCode::ConstraintViolation) => (
            ErrorKind::Corrupt,
            format!("{file} refused a row that should be its next: its tables contradict themselves, run `verify`"),
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::SystemIoFailure) => (
            ErrorKind::Io,
            format!("{file} cannot be read or written: check the disk and the permissions of file and folder"),
        ),
        Some(_) => (ErrorKind::Io, format!("{file}: SQLite refused")),
        None => (
            ErrorKind::Corrupt,
            format!("{file} holds a value of the wrong type: run `verify`"),
        ),
    };
    Error::new(kind, error).context(what)
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
