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

/// Writes the file whole or not at all: beside its place first, then into it. Two processes that end at the same time
/// write the same, each beside the other.
pub(crate) fn write(place: &Path, content: impl Read) -> io::Result<()> {
    let mut beside = place.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = fill(&beside, content).and_then(|()| fs::rename(&beside, place));
    if written.is_err() {
        // What is left of it is of no use; that it cannot be removed is not worth another word.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn fill(path: &Path, mut content: impl Read) -> io::Result<()> {
    let mut file = File::create(path)?;
    io::copy(&mut content, &mut file)?;
    file.sync_all()
}
