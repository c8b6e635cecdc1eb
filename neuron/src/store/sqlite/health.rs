//! What SQLite itself finds wrong with a file, and with its layout.

use std::path::Path;

use super::{
    fault::At as _,
    frames,
    layout::{self, Drift},
    read::Reader,
};
use crate::{Error, ErrorKind, Result};

impl Reader {
    /// What SQLite itself finds wrong: an index that does not match its table, a page that is none.
    pub(super) fn integrity(&self) -> Result<(), Error> {
        let found: String = self
            .connection
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .at(&self.path)?;
        if found == "ok" {
            return Ok(());
        }
        let file = self.path.display();
        Err(Error::new(
            ErrorKind::Corrupt,
            format!("{file} is damaged: {found}; restore it from a copy"),
        ))
    }

    /// Whether tables, indexes and guards are as they were made, and the write-ahead log is read to its end.
    pub(super) fn guarded(&self) -> Result<(), Error> {
        frames::whole(&self.path)?;
        let drift = layout::drift(&self.connection).at(&self.path)?;
        if drift.is_empty() {
            return Ok(());
        }
        Err(changed(&self.path, &drift))
    }
}

/// Why a file whose layout was changed is not sound.
fn changed(path: &Path, drift: &[Drift]) -> Error {
    let file = path.display();
    let all: Vec<_> = drift.iter().map(ToString::to_string).collect();
    let hint = if drift.iter().all(Drift::is_mendable) {
        "`neuron doctor --repair` puts that right, and changes nothing that is stored"
    } else {
        "restore it from a copy"
    };
    Error::new(
        ErrorKind::Corrupt,
        format!("the layout of {file} was changed: {}; {hint}", all.join(", ")),
    )
}
