//! What a crash leaves, and how it is opened again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};

use neuron::{
    Error, ErrorKind, ManualClock,
    store::{Durability, Fault, Memory, Options, Point, Sqlite, Store},
};
use neuron_workspace::{TempDir, scratch};

/// What the store stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    File,
}

/// What the next commit meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The disk is full.
    Fails,
    /// Everybody dies at this point of it: what stands then is kept as an image.
    Dies(Point),
}

/// Strikes one commit.
#[derive(Debug, Default)]
pub(crate) struct Striker {
    next: Mutex<Option<Fate>>,
    image: Mutex<Option<TempDir>>,
    file: Mutex<Option<PathBuf>>,
}

impl Fault for Striker {
    fn at(&self, point: Point) -> Result<(), Error> {
        let next = *self.next.lock().unwrap();
        match next {
            Some(Fate::Fails) if point == Point::BeforeCommit => {
                *self.next.lock().unwrap() = None;
                Err(Error::new(ErrorKind::Full, "the disk is full, says the simulation"))
            }
            Some(Fate::Dies(at)) if at == point => {
                *self.next.lock().unwrap() = None;
                *self.image.lock().unwrap() = self.file.lock().unwrap().as_deref().map(image);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The files of a store as they are at this moment, which is all that `kill -9` leaves. Copied by a program of its own:
/// closing a database file in this process would drop the locks that SQLite holds on it.
fn image(file: &Path) -> TempDir {
    let folder = scratch();
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let files = [file.as_os_str().to_owned(), log];
    let there = files.iter().filter(|file| fs::exists(file).unwrap());
    let copied = Command::new("cp").args(there).arg(folder.path()).status().unwrap();
    assert!(copied.success());
    folder
}

/// The disk under both processes.
pub(crate) struct Disk {
    place: Place,
    clock: Arc<ManualClock>,
    pub(crate) striker: Arc<Striker>,
}

enum Place {
    Memory(Memory),
    File(TempDir),
}

impl Disk {
    pub(crate) fn new(kind: Kind, clock: Arc<ManualClock>) -> Self {
        let striker = Arc::new(Striker::default());
        let place = match kind {
            Kind::Memory => Place::Memory(Memory::with(clock.clone(), Some(striker.clone())).unwrap()),
            Kind::File => Place::File(scratch()),
        };
        Self { place, clock, striker }
    }

    fn file(folder: &TempDir) -> PathBuf {
        folder.path().join("sim.db")
    }

    /// The store as one more process sees it.
    pub(crate) fn open(&self) -> Arc<dyn Store> {
        match &self.place {
            Place::Memory(memory) => Arc::new(memory.clone()),
            Place::File(folder) => {
                let file = Self::file(folder);
                let options = Options {
                    durability: Durability::Process,
                    clock: self.clock.clone(),
                    fault: Some(self.striker.clone()),
                    ..Options::default()
                };
                let store = Sqlite::open_apart(&file, options).unwrap();
                *self.striker.file.lock().unwrap() = Some(file);
                Arc::new(store)
            }
        }
    }

    /// Strikes the next commit.
    pub(crate) fn strike(&self, fate: Fate) {
        *self.striker.next.lock().unwrap() = Some(fate);
    }

    /// Whether the strike has not met a commit yet; it is called off.
    pub(crate) fn spared(&self) -> bool {
        self.striker.next.lock().unwrap().take().is_some()
    }

    /// Goes on from what a death now, or at the commit that was struck, has left. `stood` envelopes stood before that
    /// commit, `stands` after it. Every handle must be gone but those that `hold` the old files.
    pub(crate) fn die(&mut self, at: Option<Point>, stood: u64, stands: u64) -> Box<dyn std::any::Any> {
        let place = match &self.place {
            Place::Memory(memory) => {
                let kept = if at == Some(Point::BeforeCommit) { stood } else { stands };
                Place::Memory(memory.cut(usize::try_from(kept).unwrap()).unwrap())
            }
            Place::File(folder) => {
                let image = self.striker.image.lock().unwrap().take();
                Place::File(image.unwrap_or_else(|| image_of(folder)))
            }
        };
        Box::new(std::mem::replace(&mut self.place, place))
    }
}

fn image_of(folder: &TempDir) -> TempDir {
    image(&Disk::file(folder))
}
