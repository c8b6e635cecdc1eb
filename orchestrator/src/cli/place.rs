//! Which store is meant, and how a command opens it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use neuron::{
    ErrorKind, Ledger,
    store::{Access, Options, Sqlite},
};

use super::{
    console::Console,
    outcome::{Failure, Outcome},
};

/// Which file is meant.
pub(super) fn path(named: Option<&Path>, console: &Console<'_>) -> Outcome<PathBuf> {
    match named.or(console.named_store()) {
        // A path is shown as it was given.
        Some(path) if console.home() == Path::new(".") => Ok(path.to_path_buf()),
        Some(path) => Ok(console.home().join(path)),
        None => only(console.home()),
    }
}

/// Opens the store that is meant. A reading command changes no byte of it; none makes a store.
pub(super) fn open(named: Option<&Path>, access: Access, console: &Console<'_>) -> Outcome<Ledger> {
    let path = path(named, console)?;
    let options = Options {
        access,
        clock: console.ticking(),
        ..Options::default()
    };
    Ok(Ledger::open(path, options)?)
}

/// The one store of a folder.
fn only(folder: &Path) -> Outcome<PathBuf> {
    let mut found = candidates(folder)?;
    if found.len() > 1 {
        // SQLite files of other programs are not meant.
        let stores = found
            .iter()
            .filter(|path| may_be_store(path))
            .cloned()
            .collect::<Vec<_>>();
        if !stores.is_empty() {
            found = stores;
        }
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::Usage(format!(
            "there is no store (*.db) in {}: name one with --store PATH or NEURON_STORE",
            shown(folder)
        ))),
        many => {
            let names: Vec<_> = many.iter().map(|path| format!("  {}", path.display())).collect();
            Err(Failure::Usage(format!(
                "there are {} stores in {}: name the one you mean with --store PATH or NEURON_STORE\n{}",
                many.len(),
                shown(folder),
                names.join("\n")
            )))
        }
    }
}

fn candidates(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let fault = |error: std::io::Error| {
        let why = format!("the folder {} cannot be read", shown(folder));
        Failure::Fault(neuron::Error::from(error).context(why))
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path.extension().is_some_and(|it| it == "db") && path.is_file() {
            found.push(path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path));
        }
    }
    found.sort();
    Ok(found)
}

fn may_be_store(path: &Path) -> bool {
    let reading = Options {
        access: Access::Read,
        ..Options::default()
    };
    Sqlite::open(path, reading).map_or_else(|error| error.kind() != ErrorKind::NotAStore, |_| true)
}

fn shown(folder: &Path) -> String {
    if folder == Path::new(".") {
        return "this folder".into();
    }
    folder.display().to_string()
}
