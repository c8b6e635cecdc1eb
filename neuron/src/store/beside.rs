//! The files that stand beside a store.

use std::path::{Path, PathBuf};

/// `<store>.<what>`.
pub(crate) fn beside(store: &Path, what: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}
