//! Slots that the dead have left.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use super::slot::{self, Liveness};

/// Slots whose processes have died.
pub(crate) fn stale(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let slots = entries.filter(|entry| entry.file_name().to_str().is_some_and(slot::is_incarnation));
    let free = |path: &PathBuf| File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok());
    let mut stale: Vec<_> = slots.map(|entry| entry.path()).filter(free).collect();
    stale.sort_unstable();
    stale
}

/// Removes a slot, unless its process lives.
pub(crate) fn remove_if_stale(slot: &Path) -> bool {
    matches!(slot::look(slot), Ok(Liveness::Dead)) && !slot.exists()
}
