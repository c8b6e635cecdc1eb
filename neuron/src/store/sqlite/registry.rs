//! One open store per file and process: its second opening gets what the first one opened.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use super::{
    core::Core,
    options::{Access, Options},
};
use crate::{Error, ErrorKind, Result};

static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<Core>>>> = LazyLock::new(Mutex::default);

/// The open store of this path, opened with `open` if there is none.
pub(super) fn shared(
    path: &Path,
    options: &Options,
    open: impl FnOnce() -> Result<Core, Error>,
) -> Result<Arc<Core>, Error> {
    let mut stores = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    stores.retain(|_, core| core.strong_count() > 0);
    if let Some(core) = stores.get(path).and_then(Weak::upgrade) {
        // Let go before `core` may be dropped, which may call back into user code.
        drop(stores);
        return compatible(path, core, options);
    }
    let core = Arc::new(open()?);
    stores.insert(path.to_owned(), Arc::downgrade(&core));
    Ok(core)
}

fn compatible(path: &Path, core: Arc<Core>, options: &Options) -> Result<Arc<Core>, Error> {
    let there = &core.options;
    let same_fault = match (&there.fault, &options.fault) {
        (_, None) => true,
        (Some(there), Some(asked)) => Arc::ptr_eq(there, asked),
        (None, Some(_)) => false,
    };
    // A file that nobody writes to is opened for writing by nobody: each handle says why when it is asked to.
    let refused = if options.access != Access::Read && core.committer.is_none() && core.refusal.is_none() {
        "for reading only, so it cannot be written to here"
    } else if options.access != Access::Read && options.durability > there.durability {
        "with a durability that promises less"
    } else if !same_fault {
        "without this fault"
    } else {
        return Ok(core);
    };
    let file = path.display();
    Err(Error::new(
        ErrorKind::Misuse,
        format!("this process has {file} open {refused}: close the other handles first, or open it the same way"),
    ))
}
