//! Sealed archives: what one says of itself.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};

use super::{ddl::Form, fault::At as _, layout};
use crate::{Digest, Error, ErrorKind, Result, store::Archive};

/// What an archive says of itself; none for a store.
pub(super) fn read(path: &Path, connection: &Connection) -> Result<Option<Archive>, Error> {
    if layout::form(connection).at(path)? == Form::Store {
        return Ok(None);
    }
    let bad = |why: &str| Error::new(ErrorKind::Corrupt, format!("the archive {} {why}", path.display()));
    let found: Option<(Vec<u8>, String)> = connection
        .query_row("SELECT hash, manifest FROM archive WHERE one = 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .map_err(|error| bad(&format!("does not say what it holds: {error}")))?;
    let (hash, manifest) = found.ok_or_else(|| bad("does not say what it holds: that row is missing"))?;
    let meant = Digest::content(manifest.as_bytes());
    if hash != meant.as_bytes() {
        return Err(bad("does not hold what it says: that text, or its hash, was changed"));
    }
    let archive = serde_json::from_str(&manifest)
        .map_err(|error| bad(&format!("says what it holds in no known form: {error}")))?;
    Ok(Some(archive))
}

/// Why nothing is appended to an archive; none for a store.
pub(super) fn refusal(path: &Path, connection: &Connection) -> Result<Option<Error>, Error> {
    let form = layout::form(connection).at(path)?;
    Ok((form == Form::Archive).then(|| {
        let why = format!(
            "{} is a sealed archive: it is read as a store is, and nothing is appended to it",
            path.display()
        );
        Error::new(ErrorKind::ReadOnly, why)
    }))
}
