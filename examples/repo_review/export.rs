//! The review as a file beside the store.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Where the review of a store stands: its name with `md` in place of `db`.
pub(crate) fn place(store: &Path) -> PathBuf {
    if store.extension().is_some_and(|extension| extension == "md") {
        let mut path = store.as_os_str().to_owned();
        path.push(".md");
        return path.into();
    }
    store.with_extension("md")
}

/// Writes the file whole or not at all: beside its place first, then into it.
pub(crate) fn write(place: &Path, mut content: impl Read) -> io::Result<()> {
    let mut beside = place.as_os_str().to_owned();
    beside.push(".part");
    let mut file = File::create(&beside)?;
    io::copy(&mut content, &mut file)?;
    file.sync_all()?;
    fs::rename(&beside, place)
}
