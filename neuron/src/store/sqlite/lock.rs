//! The lock beside the store that writers of all processes queue on, with the pid of whoever holds it.

use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{Error, ErrorKind, Result};

const FIRST_SLEEP: Duration = Duration::from_micros(100);
const LONGEST_SLEEP: Duration = Duration::from_millis(5);

/// A kernel lock on `<store>.lock`. The kernel lets it go when its process dies, so nobody ever clears it by hand.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// The text that says who this process is.
    own: String,
    held: bool,
}

impl Lock {
    pub(super) fn open(store: &Path) -> Result<Self, Error> {
        let path = beside(store, "lock");
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = opened.map_err(|error| {
            Error::from(error).context(format!(
                "{} cannot be opened, which a writer needs beside its store",
                path.display()
            ))
        })?;
        Ok(Self {
            file,
            path,
            own: format!("{:<10}\n", std::process::id()),
            held: false,
        })
    }

    /// Takes the lock if it is free.
    pub(super) fn try_take(&mut self) -> Result<bool, Error> {
        match self.file.try_lock() {
            Ok(()) => {
                self.held = true;
                self.sign()
                    .map(|()| true)
                    .map_err(|error| Error::from(error).context(format!("{} cannot be written", self.path.display())))
            }
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => {
                Err(Error::from(error).context(format!("{} cannot be locked", self.path.display())))
            }
        }
    }

    /// Writes the pid, unless it stands there from the last time.
    fn sign(&self) -> std::io::Result<()> {
        if self.signature().is_ok_and(|there| there == self.own) {
            return Ok(());
        }
        self.file.write_all_at(self.own.as_bytes(), 0)?;
        self.file.set_len(self.own.len() as u64)
    }

    fn signature(&self) -> std::io::Result<String> {
        let mut text = [0; 32];
        let length = self.file.read_at(&mut text, 0)?;
        Ok(String::from_utf8_lossy(&text[..length]).into_owned())
    }

    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.held) {
            // An unlock that fails leaves the lock to the end of the process; there is nobody to tell.
            let _ = self.file.unlock();
        }
    }

    /// Who held the lock last; the holder, while it cannot be taken.
    pub(super) fn holder(&self) -> String {
        let pid = self.signature().ok().and_then(|text| text.trim().parse::<u32>().ok());
        pid.map_or_else(
            || "another process".to_owned(),
            |pid| format!("another process (pid {pid})"),
        )
    }
}

/// A file that belongs to a store: `<store>.<what>`.
pub(super) fn beside(store: &Path, what: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

/// Sleeps longer and longer, until a limit has passed.
#[derive(Debug)]
pub(super) struct Patience {
    until: Instant,
    sleep: Duration,
    limit: Duration,
}

impl Patience {
    pub(super) fn of(limit: Duration) -> Self {
        Self {
            until: Instant::now() + limit,
            sleep: FIRST_SLEEP,
            limit,
        }
    }

    /// Sleeps a little; an error that names `holder` once the limit has passed.
    pub(super) fn wait(&mut self, store: &Path, holder: impl FnOnce() -> String) -> Result<(), Error> {
        if Instant::now() >= self.until {
            let (holder, file, limit) = (holder(), store.display(), self.limit);
            return Err(Error::new(
                ErrorKind::Busy,
                format!("{holder} has held {file} for {limit:?}: let it go on or end it, then try again"),
            ));
        }
        std::thread::sleep(self.sleep);
        self.sleep = (self.sleep * 2).min(LONGEST_SLEEP);
        Ok(())
    }
}
