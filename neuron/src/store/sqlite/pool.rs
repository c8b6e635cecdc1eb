//! A few read connections, lent out one at a time.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    connect::{self, Reach, Stamp},
    fault::failed,
    read::Reader,
};
use crate::{Error, ErrorKind, Result, limits};

#[derive(Debug)]
struct Lent {
    reader: Reader,
    reach: Reach,
}

/// The readers of one store.
#[derive(Debug)]
pub(super) struct Pool {
    path: Arc<Path>,
    /// This process writes to the file too.
    writes: bool,
    /// How long a reading waits for another process that recovers or closes the file.
    wait: Duration,
    free: Mutex<Vec<Lent>>,
}

impl Pool {
    pub(super) fn new(path: Arc<Path>, writes: bool, wait: Duration) -> Self {
        Self {
            path,
            writes,
            wait,
            free: Mutex::default(),
        }
    }

    /// Reads with a connection of the pool. Runs again if the file turned out to have changed under a reading that
    /// takes no locks, or if another process was just closing or recovering it.
    pub(super) fn read<T>(&self, mut read: impl FnMut(&mut Reader) -> Result<T, Error>) -> Result<T, Error> {
        let mut again = 0..limits::READ_AGAIN_MAX;
        loop {
            match self.read_as_it_stands(&mut read) {
                Err(error) if self.may_pass(&error) && again.next().is_some() => {
                    std::thread::sleep(Duration::from_millis(1 << again.start));
                }
                outcome => return outcome,
            }
        }
    }

    /// Whether what a reading met is perhaps only the passing state of a file that others write to.
    fn may_pass(&self, error: &Error) -> bool {
        let passing = [
            ErrorKind::ReadOnly,
            ErrorKind::Corrupt,
            ErrorKind::Io,
            ErrorKind::NotAStore,
        ];
        !self.writes && passing.contains(&error.kind())
    }

    fn read_as_it_stands<T>(&self, read: &mut impl FnMut(&mut Reader) -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let mut lent = self.take()?;
            let outcome = read(&mut lent.reader);
            if self.stands(lent.reach) {
                // A connection that failed is not trusted with the next question.
                if outcome.is_ok() {
                    self.give(lent);
                }
                return outcome;
            }
        }
    }

    fn stands(&self, reach: Reach) -> bool {
        match reach {
            Reach::Shared | Reach::Foreign => true,
            Reach::Still(stamp) => Stamp::of_still(&self.path) == Some(stamp),
        }
    }

    fn take(&self) -> Result<Lent, Error> {
        while let Some(lent) = self.free().pop() {
            if self.stands(lent.reach) {
                return Ok(lent);
            }
        }
        let mut reach = self.reach();
        loop {
            match connect::reader(&self.path, reach, self.wait) {
                Ok(connection) => {
                    let reader = Reader::new(self.path.clone(), connection);
                    return Ok(Lent { reader, reach });
                }
                // The log came or went while the file was opened: look again.
                Err(error) if self.reach() != reach => {
                    tracing::debug!(%error, "the file changed hands while it was opened");
                    reach = self.reach();
                }
                Err(error) => return Err(failed(&self.path, &error)),
            }
        }
    }

    fn reach(&self) -> Reach {
        if self.writes {
            return Reach::Shared;
        }
        Stamp::of_still(&self.path).map_or(Reach::Foreign, Reach::Still)
    }

    fn give(&self, lent: Lent) {
        let mut free = self.free();
        if free.len() < limits::READERS_MAX {
            free.push(lent);
        }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Lent>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connections that are not lent out.
    pub(super) fn close(&self) {
        self.free().clear();
    }
}
