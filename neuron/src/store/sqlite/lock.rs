//! The locks beside the store that all processes queue on, each with the pid of whoever holds it.
//!
//! The kernel's lock alone is unfair: whoever lets it go and takes it again at once is always faster than one who has to be
//! woken. So the file holds two lines: who held the lock last, and who is next. Whoever finds the lock held enters itself as
//! the next, if nobody is. A holder that sees another's name there takes the lock again only until its turn is over; nobody
//! else takes it at all. A next one that does not come, because it is dead or stopped, is passed over. The lines are
//! only about fairness: what keeps two from writing at once is the kernel's lock.

use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use super::holder;
use crate::{Error, ErrorKind, Result, limits, store::beside};

/// How long whoever is next sleeps between two looks, at first and at most.
const NEXT_SLEEP: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(1));
/// How long the others sleep.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);

/// Bytes of a line: pid, number of the handle in its process.
const LINE: usize = 22;
type Line = [u8; LINE];
const NOBODY: Line = *b"                     \n";

/// A kernel lock on a file beside the store. The kernel lets it go when its process dies, so nobody ever clears it by hand.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// The line that says who this is.
    own: Line,
    held: bool,
    /// Until when it may be taken again although another is next.
    turn: Option<Instant>,
    /// Who is next and did not come, and when that was first seen.
    absent: Option<(Line, Instant)>,
}

/// What the lock file says.
struct Names {
    last: Line,
    next: Line,
}

impl Lock {
    /// That which a writer holds for each of its transactions.
    pub(super) fn of_writers(store: &Path) -> Result<Self, Error> {
        Self::open(beside(store, "lock"))
    }

    /// That which a process holds while it makes, opens or closes a store that it writes to, so that no two of them
    /// recover or remove its write-ahead log at once. It is another one because a process that stands inside a commit
    /// keeps nobody from reading.
    pub(super) fn of_openings(store: &Path) -> Result<Self, Error> {
        Self::open(beside(store, "open"))
    }

    fn open(path: PathBuf) -> Result<Self, Error> {
        static HANDLES: AtomicU32 = AtomicU32::new(0);
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
        let handle = HANDLES.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:<10} {handle:<10}\n", std::process::id());
        let mut own = NOBODY;
        own.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        Ok(Self {
            file,
            path,
            own,
            held: false,
            turn: None,
            absent: None,
        })
    }

    /// Takes the lock if it is free and not another's turn.
    pub(super) fn try_take(&mut self) -> Result<bool, Error> {
        match self.file.try_lock() {
            Ok(()) => self.held = true,
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => {
                return Err(Error::from(error).context(format!("{} cannot be locked", self.path.display())));
            }
        }
        let taken = self.names().and_then(|names| self.enter(&names));
        if !matches!(taken, Ok(true)) {
            self.release();
        }
        taken.map_err(|error| Error::from(error).context(format!("{} cannot be written", self.path.display())))
    }

    /// Whether this one may keep the lock that it has just taken; if so, it signs.
    fn enter(&mut self, names: &Names) -> std::io::Result<bool> {
        let goes_on = names.last == self.own;
        if names.next == NOBODY || names.next == self.own {
            self.turn = None;
        } else if goes_on && self.turn_lasts() {
            return Ok(true);
        } else if !self.is_absent(names.next) {
            return Ok(false);
        } else {
            self.turn = None;
        }
        self.absent = None;
        if names.next == NOBODY {
            if !goes_on {
                self.file.write_all_at(&self.own, 0)?;
            }
        } else {
            self.file.write_all_at(&[self.own, NOBODY].concat(), 0)?;
        }
        Ok(true)
    }

    fn turn_lasts(&mut self) -> bool {
        let now = Instant::now();
        now < *self.turn.get_or_insert(now + limits::TURN_MAX)
    }

    /// Whether whoever is next has left the free lock untaken for too long.
    fn is_absent(&mut self, next: Line) -> bool {
        let now = Instant::now();
        match self.absent {
            Some((seen, since)) if seen == next => now >= since + limits::PASSED_OVER_AFTER,
            _ => {
                self.absent = Some((next, now));
                false
            }
        }
    }

    fn names(&self) -> std::io::Result<Names> {
        let mut text = [NOBODY, NOBODY].concat();
        let length = self.file.read_at(&mut text, 0)?;
        // Of a file that is being made only a part may be there.
        text[length..].fill(b' ');
        let line = |from: usize| {
            let mut line = NOBODY;
            line.copy_from_slice(&text[from..from + LINE]);
            line[LINE - 1] = b'\n';
            line
        };
        Ok(Names {
            last: line(0),
            next: line(LINE),
        })
    }

    /// Enters this one as the next, unless somebody is; whether it is the next.
    fn line_up(&self) -> bool {
        // Only fairness depends on it, so a fault here is left to the taking, which tells it.
        match self.names() {
            Ok(names) if names.next == NOBODY => self.file.write_all_at(&self.own, LINE as u64).is_ok(),
            Ok(names) => names.next == self.own,
            Err(_) => false,
        }
    }

    /// Nobody has to wait for this one any more.
    fn step_back(&self) {
        if self.names().is_ok_and(|names| names.next == self.own) {
            let _ = self.file.write_all_at(&NOBODY, LINE as u64);
        }
    }

    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.held) {
            // An unlock that fails leaves the lock to the end of the process; there is nobody to tell.
            let _ = self.file.unlock();
        }
    }

    /// Takes the lock, waiting for it as long as `limit`. An error names the holder.
    pub(super) fn take(&mut self, limit: Duration, store: &Path) -> Result<(), Error> {
        let mut patience = Patience::of(limit);
        while !self.try_take()? {
            self.wait(&mut patience, store)?;
        }
        Ok(())
    }

    /// Waits a little for whoever holds the lock. An error that names it once `patience` is at its end.
    pub(super) fn wait(&self, patience: &mut Patience, store: &Path) -> Result<(), Error> {
        let longest = if self.line_up() { NEXT_SLEEP.1 } else { LONGEST_SLEEP };
        patience
            .sleep(longest)
            .map_err(|limit| self.busy(store, limit, &self.holder()))
    }

    /// Waits a little for another program, which takes no part in the queue.
    pub(super) fn wait_for_program(&self, patience: &mut Patience, store: &Path) -> Result<(), Error> {
        patience
            .sleep(LONGEST_SLEEP)
            .map_err(|limit| self.busy(store, limit, &holder::named(store)))
    }

    fn busy(&self, store: &Path, limit: Duration, holder: &str) -> Error {
        self.step_back();
        let file = store.display();
        let why = format!("{holder} has held {file} for {limit:?}: let it go on or end it, then try again");
        Error::new(ErrorKind::Busy, why)
    }

    /// Who held the lock last; the holder, while it cannot be taken.
    fn holder(&self) -> String {
        let pid = self.names().ok().and_then(|names| {
            let text = String::from_utf8_lossy(&names.last).into_owned();
            text.split_whitespace().next()?.parse::<u32>().ok()
        });
        pid.map_or_else(
            || "another process".to_owned(),
            |pid| format!("another process (pid {pid})"),
        )
    }
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
            sleep: NEXT_SLEEP.0,
            limit,
        }
    }

    /// Sleeps a little, at most `longest`; gives the limit once it has passed.
    fn sleep(&mut self, longest: Duration) -> Result<(), Duration> {
        if Instant::now() >= self.until {
            return Err(self.limit);
        }
        std::thread::sleep(self.sleep.min(longest));
        self.sleep = (self.sleep * 2).min(LONGEST_SLEEP);
        Ok(())
    }
}
