//! Slots: one file per living process incarnation in the folder `<store>.owners`, locked by the kernel while it lives.

use std::{
    collections::HashSet,
    fs::{self, File, TryLockError},
    io::{ErrorKind as IoKind, Read as _},
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc, LazyLock, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread::Thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{Digest, Error, Result, store::beside};

/// A living process incarnation on a store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// Under which it claims, and to which a name can be handed over.
    pub incarnation: String,
    /// Its process.
    pub pid: u32,
}

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
    slot: Mutex<Option<Arc<Slot>>>,
}

#[derive(Debug)]
struct Slot {
    file: File,
    path: PathBuf,
    beat: AtomicU64,
    /// The thread that beats; it ends as soon as the slot is gone.
    heart: Mutex<Option<Thread>>,
}

/// The folder with the slots of a store's processes.
pub(crate) fn folder(store: &Path) -> PathBuf {
    beside(store, "owners")
}

/// Incarnations of this process: a store in memory has no folder, and a process knows its own without a look.
static LIVING: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

impl Slots {
    pub(super) fn join(store: Option<&Path>, beat: Duration) -> Result<Self, Error> {
        let incarnation = fresh();
        let folder = store.map(folder);
        let slot = folder
            .as_deref()
            .map(|folder| Slot::lock(folder, &incarnation, beat))
            .transpose()?;
        if let Some(folder) = &folder {
            // What the dead left behind. Litter harms nobody, so a fault here keeps nobody from work.
            for_each_other(folder, &incarnation, |_, _| {});
        }
        LIVING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(incarnation.clone());
        Ok(Self {
            incarnation,
            folder,
            slot: Mutex::new(slot),
        })
    }

    pub(super) fn incarnation(&self) -> &str {
        &self.incarnation
    }

    /// Lets go of the slot, so that this incarnation is dead to all others.
    pub(super) fn leave(&self) {
        LIVING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.incarnation);
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
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
        look(&folder.join(incarnation))
    }

    /// Who lives on this store, this incarnation included. Slots of the dead are removed on the way.
    pub(super) fn living(&self) -> Vec<Peer> {
        let own = |incarnation: &String| Peer {
            incarnation: incarnation.clone(),
            pid: std::process::id(),
        };
        let Some(folder) = &self.folder else {
            return vec![own(&self.incarnation)];
        };
        let mut living = vec![own(&self.incarnation)];
        for_each_other(folder, &self.incarnation, |incarnation, pid| {
            living.push(Peer {
                incarnation: incarnation.to_owned(),
                pid,
            });
        });
        living.sort_unstable();
        living
    }
}

/// Whether the process of this slot lives. Removes the slot of one that does not.
pub(super) fn look(path: &Path) -> Result<Liveness, Error> {
    let failed = |error: std::io::Error| Error::from(error).context(format!("slot {}", path.display()));
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == IoKind::NotFound => return Ok(Liveness::Dead),
        Err(error) => return Err(failed(error)),
    };
    // Shared, so that two who look at once do not take each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => {
            // Nobody will lock it again: incarnations are never reused.
            let _ = fs::remove_file(path);
            Ok(Liveness::Dead)
        }
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            file.read_to_string(&mut text).map_err(failed)?;
            let mut words = text.split_whitespace().map(str::parse::<u64>);
            let mut word = || words.next().and_then(Result::ok).unwrap_or(0);
            let (pid, beat) = (word(), word());
            Ok(Liveness::Alive {
                pid: u32::try_from(pid).unwrap_or(0),
                beat,
            })
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Shows the living incarnations but the own, and removes the slots of the dead.
fn for_each_other(folder: &Path, own: &str, mut see: impl FnMut(&str, u32)) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())) {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name == own || !is_incarnation(&name) {
            continue;
        }
        match look(&entry.path()) {
            Ok(Liveness::Alive { pid, .. }) => see(&name, pid),
            Ok(Liveness::Dead) => {}
            Err(error) => tracing::debug!(%error, "a slot cannot be looked at"),
        }
    }
}

/// Whether a file of the folder is a slot: `PID-HASH`. Others may have files of their own there.
pub(super) fn is_incarnation(name: &str) -> bool {
    let Some((pid, hash)) = name.split_once('-') else {
        return false;
    };
    pid.parse::<u32>().is_ok() && hash.len() == 16 && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Slot {
    fn lock(folder: &Path, incarnation: &str, every: Duration) -> Result<Arc<Self>, Error> {
        let path = folder.join(incarnation);
        let made = fs::create_dir_all(folder).and_then(|()| locked(&path));
        let file = made.map_err(|error| Error::from(error).context(format!("slot {}", path.display())))?;
        let slot = Arc::new(Self {
            file,
            path,
            beat: AtomicU64::new(0),
            heart: Mutex::default(),
        });
        slot.write()?;
        let weak = Arc::downgrade(&slot);
        let thread = std::thread::Builder::new()
            .name("neuron-heartbeat".into())
            .spawn(move || beats(&weak, every))?;
        *slot.heart.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread.thread().clone());
        Ok(slot)
    }

    /// The pid and the heartbeat word, always of one length so that a reader never sees half of it.
    fn write(&self) -> Result<(), Error> {
        let beat = self.beat.fetch_add(1, Ordering::Relaxed) + 1;
        let words = format!("{:010} {beat:020}\n", std::process::id());
        Ok(self.file.write_all_at(words.as_bytes(), 0)?)
    }
}

/// A new file that this process holds the lock of. Between its making and its locking it looks like that of a dead process,
/// which somebody may remove: then it is made again.
fn locked(path: &Path) -> std::io::Result<File> {
    loop {
        let file = File::create_new(path)?;
        file.lock()?;
        if file.metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The lock goes with the descriptor; the file is only litter, so failing to remove it harms nobody.
        let _ = fs::remove_file(&self.path);
        if let Some(heart) = self.heart.get_mut().unwrap_or_else(PoisonError::into_inner) {
            heart.unpark();
        }
    }
}

fn beats(weak: &Weak<Slot>, every: Duration) {
    while let Some(slot) = weak.upgrade() {
        if let Err(error) = slot.write() {
            tracing::warn!(%error, "the heartbeat could not be written: another process may take this one for hung");
        }
        drop(slot);
        std::thread::park_timeout(every);
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
