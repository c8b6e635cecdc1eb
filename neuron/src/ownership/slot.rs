//! Slots: one file per living process incarnation in the folder `<store>.owners`, locked by the kernel while it lives.

use std::{
    collections::HashSet,
    fs::{self, File, TryLockError},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, LazyLock, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{Digest, Error, Result};

/// What a look at another incarnation's slot shows.
pub(super) enum Liveness {
    /// The kernel has freed its lock, or its slot is gone.
    Dead,
    /// It holds its lock; `beat` moves unless the process is hung.
    Alive { pid: u32, beat: u64 },
}

/// This process's slot, and the folder in which others have theirs.
#[derive(Debug)]
pub(super) struct Slots {
    incarnation: String,
    folder: Option<PathBuf>,
    /// Keeps the lock and the heartbeat; both end with it.
    _slot: Option<Arc<Slot>>,
}

#[derive(Debug)]
struct Slot {
    file: Mutex<File>,
    path: PathBuf,
    beat: AtomicU64,
}

/// Incarnations of this process: a store in memory has no folder, and a process knows its own without a look.
static LIVING: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

impl Slots {
    pub(super) fn join(store: Option<&Path>, beat: Duration) -> Result<Self, Error> {
        let incarnation = fresh();
        let folder = store.map(|store| {
            let mut name = store.as_os_str().to_owned();
            name.push(".owners");
            PathBuf::from(name)
        });
        let slot = folder
            .as_deref()
            .map(|folder| Slot::lock(folder, &incarnation, beat))
            .transpose()?;
        LIVING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(incarnation.clone());
        Ok(Self {
            incarnation,
            folder,
            _slot: slot,
        })
    }

    pub(super) fn incarnation(&self) -> &str {
        &self.incarnation
    }

    pub(super) fn liveness(&self, incarnation: &str) -> Result<Liveness, Error> {
        if LIVING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(incarnation)
        {
            return Ok(Liveness::Alive {
                pid: std::process::id(),
                beat: 0,
            });
        }
        let Some(folder) = &self.folder else {
            return Ok(Liveness::Dead);
        };
        let path = folder.join(incarnation);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Liveness::Dead),
            Err(error) => return Err(Error::from(error).context(format!("slot {}", path.display()))),
        };
        match file.try_lock() {
            Ok(()) => {
                // Nobody will lock it again: incarnations are never reused.
                let _ = fs::remove_file(&path);
                Ok(Liveness::Dead)
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                let mut words = text.split_whitespace().map(str::parse::<u64>);
                let mut word = || words.next().and_then(Result::ok).unwrap_or(0);
                let (pid, beat) = (word(), word());
                Ok(Liveness::Alive {
                    pid: u32::try_from(pid).unwrap_or(0),
                    beat,
                })
            }
            Err(TryLockError::Error(error)) => Err(Error::from(error).context(format!("slot {}", path.display()))),
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        LIVING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.incarnation);
    }
}

impl Slot {
    fn lock(folder: &Path, incarnation: &str, beat: Duration) -> Result<Arc<Self>, Error> {
        let path = folder.join(incarnation);
        let made = fs::create_dir_all(folder)
            .and_then(|()| File::create_new(&path))
            .and_then(|file| {
                file.lock()?;
                Ok(file)
            });
        let file = made.map_err(|error| Error::from(error).context(format!("slot {}", path.display())))?;
        let slot = Arc::new(Self {
            file: Mutex::new(file),
            path,
            beat: AtomicU64::new(0),
        });
        slot.write()?;
        let weak = Arc::downgrade(&slot);
        std::thread::Builder::new()
            .name("neuron-heartbeat".into())
            .spawn(move || beats(&weak, beat))?;
        Ok(slot)
    }

    /// The pid and the heartbeat word, always of one length so that a reader never sees half of it.
    fn write(&self) -> Result<(), Error> {
        let beat = self.beat.fetch_add(1, Ordering::Relaxed) + 1;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(0))?;
        file.write_all(format!("{:010} {beat:020}\n", std::process::id()).as_bytes())?;
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The lock goes with the descriptor; the file is only litter, so failing to remove it harms nobody.
        let _ = fs::remove_file(&self.path);
    }
}

fn beats(weak: &Weak<Slot>, every: Duration) {
    while let Some(slot) = weak.upgrade() {
        if let Err(error) = slot.write() {
            tracing::warn!(%error, "the heartbeat could not be written: another process may take this one for hung");
        }
        drop(slot);
        std::thread::sleep(every);
    }
}

/// A name no other incarnation has: pid, moment and a count of this process, hashed.
fn fresh() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let moment = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let seed = format!(
        "{} {moment} {}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let hash = Digest::derive("neuron-incarnation-v1", seed.as_bytes()).to_string();
    format!("{}-{}", std::process::id(), &hash[..16])
}
