//! A file that takes its name only once it is whole and durable.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use crate::{Error, ErrorKind, Result, store::beside};

/// A file under another name than the one it is meant to have. Dropped before it is whole, it goes; if the process dies,
/// its remains bear the other name, and whoever tries again removes them.
#[derive(Debug)]
pub(super) struct Fresh {
    target: PathBuf,
    draft: PathBuf,
    /// Locked as long as somebody works on it. Closed last, when nothing of SQLite is open on the file any more.
    file: File,
}

impl Fresh {
    /// Begins a file that nobody but those in `mode` may read.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if there is a file of that name; [`ErrorKind::Busy`] if another process makes it.
    pub(super) fn begin(target: &Path, mode: u32) -> Result<Self, Error> {
        vacant(target)?;
        let draft = beside(target, "unfinished");
        loop {
            clear(&draft)?;
            let created = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(mode | 0o600)
                .open(&draft);
            let file = match created {
                Ok(file) => file,
                // Somebody else has just begun.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => {
                    let what = format!(
                        "{} cannot be made: check the folder and its permissions",
                        draft.display()
                    );
                    return Err(Error::from(error).context(what));
                }
            };
            // Whoever was faster to lock it has taken it for remains, and removed it.
            if file.try_lock().is_ok() && is_at(&file, &draft) {
                remove(names(&draft).skip(1), &draft)?;
                return Ok(Self {
                    target: target.to_owned(),
                    draft,
                    file,
                });
            }
        }
    }

    /// Where it is written.
    pub(super) fn path(&self) -> &Path {
        &self.draft
    }

    /// Makes it durable and gives it its name, unless there is a file of that name by now.
    pub(super) fn finish(self) -> Result<(), Error> {
        let shown = self.target.display();
        let failed = |error: io::Error| Error::from(error).context(format!("{shown} cannot be made"));
        self.file.sync_all().map_err(failed)?;
        // A link is refused where a name is taken, which a renaming is not.
        match fs::hard_link(&self.draft, &self.target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return vacant(&self.target),
            Err(_) => {
                // A file system without links.
                vacant(&self.target)?;
                fs::rename(&self.draft, &self.target).map_err(failed)?;
            }
        }
        drop_name(&self.draft).map_err(failed)?;
        let folder = self
            .target
            .parent()
            .map_or(Ok(()), |folder| File::open(folder)?.sync_all());
        folder.map_err(failed)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        for name in names(&self.draft) {
            // What stays bears another name, and is removed by whoever tries again.
            let _ = fs::remove_file(name);
        }
    }
}

fn vacant(target: &Path) -> Result<(), Error> {
    if target.symlink_metadata().is_err() {
        return Ok(());
    }
    let why = format!(
        "there is a file {} already: give another path, nothing is overwritten",
        target.display()
    );
    Err(Error::new(ErrorKind::Conflict, why))
}

fn is_at(file: &File, path: &Path) -> bool {
    let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (held, there) = (file.metadata().map(inode), fs::metadata(path).map(inode));
    held.ok().zip(there.ok()).is_some_and(|(held, there)| held == there)
}

fn names(draft: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-journal", "-wal", "-shm"].into_iter().map(|suffix| {
        let mut name = draft.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

fn drop_name(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes what an interrupted one left; an error if it is not interrupted.
fn clear(draft: &Path) -> Result<(), Error> {
    let there = match File::open(draft) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) => None,
    };
    if let Some(there) = &there {
        match there.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = format!("another process is writing {}: let it finish", draft.display());
                return Err(Error::new(ErrorKind::Busy, why));
            }
            Err(TryLockError::Error(error)) => {
                return Err(Error::from(error).context(format!("{} cannot be locked", draft.display())));
            }
        }
        // What was opened has been removed meanwhile, and what bears its name now is somebody else's.
        if !is_at(there, draft) {
            return Ok(());
        }
    }
    // Under the lock to the last: whoever has just made the file and not locked it yet finds it taken, and begins anew.
    remove(names(draft), draft)
}

fn remove(names: impl Iterator<Item = PathBuf>, draft: &Path) -> Result<(), Error> {
    for name in names {
        drop_name(&name).map_err(|error| {
            let what = if name.symlink_metadata().is_ok() {
                format!("{} is in the way and cannot be removed", name.display())
            } else {
                format!(
                    "{} cannot be made: check the folder and its permissions",
                    draft.display()
                )
            };
            Error::from(error).context(what)
        })?;
    }
    Ok(())
}
