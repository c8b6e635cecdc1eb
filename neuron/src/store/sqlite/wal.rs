//! The write-ahead log: moved into the store beside the writers, watched, and cut when it has grown.
//!
//! A thread of its own moves what it can while others append. What they have appended meanwhile is little; the writer moves
//! that between two commits, when nobody appends, so that the log is whole in the store and the next commit begins it anew.
//! What cannot be moved is needed by a reader that has not ended: then the log grows, and that is told.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Instant,
};

use rusqlite::Connection;

use super::{
    connect::{self, log_of},
    number::unsigned,
    options::Durability,
};
use crate::{limits, store::Wal};

/// What is known of the log; shared by the writer, the thread that moves it, and whoever asks.
#[derive(Debug)]
pub(super) struct Log {
    path: Arc<Path>,
    durability: Durability,
    /// Pages in the log, as the last commit left it.
    pages: AtomicU64,
    /// From so many pages on something is to be done: that many at first, more while a reader holds the log.
    due: AtomicU64,
    page_bytes: u64,
    /// The writer is to move the rest, as little is left.
    finish: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    asked: bool,
    closed: bool,
    held: Option<Held>,
}

/// A reader keeps pages in the log.
#[derive(Clone, Copy, Debug)]
struct Held {
    since: Instant,
    pages: u64,
    /// The next size that is worth a warning.
    warn_at: u64,
}

impl Log {
    /// The log that a connection writes.
    pub(super) fn new(path: Arc<Path>, durability: Durability, connection: &Connection) -> rusqlite::Result<Self> {
        let page_bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let page_bytes = unsigned(page_bytes).max(512);
        Ok(Self {
            path,
            durability,
            pages: AtomicU64::new(0),
            due: AtomicU64::new(limits::WAL_BYTES_MAX / page_bytes),
            page_bytes,
            finish: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub(super) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// A commit left so many pages in the log.
    pub(super) fn grew_to(&self, pages: u64) {
        self.pages.store(pages, Ordering::Relaxed);
    }

    pub(super) fn is_due(&self) -> bool {
        self.pages.load(Ordering::Relaxed) >= self.due.load(Ordering::Relaxed)
    }

    /// Whether those who append leave the thread behind; not where a reader is the reason.
    fn runs_ahead(&self) -> bool {
        let most = limits::WAL_RUN_AHEAD_BYTES_MAX / self.page_bytes;
        self.pages.load(Ordering::Relaxed) >= most && self.state().held.is_none()
    }

    fn wait_for_pass(&self) {
        let waited = (self.changed).wait_timeout_while(self.state(), limits::STORE_WAIT_MAX, |state| state.asked);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn look(&self) -> Wal {
        let held = self.state().held;
        Wal {
            held_bytes: held.map_or(0, |held| held.pages * self.page_bytes),
            held_for: held.map(|held| held.since.elapsed()),
            ..of_file(&self.path)
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what can be moved: how many pages there are, and how many are left. None if another does so at this moment.
    fn moved(&self, connection: &Connection) -> Option<(u64, u64)> {
        let outcome = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        match outcome {
            Ok((0, there, moved)) if there >= 0 => {
                let (there, moved) = (there.cast_unsigned(), moved.max(0).cast_unsigned());
                Some((there, there.saturating_sub(moved)))
            }
            Ok(_) => None,
            Err(error) => {
                // What stands in the log is durable there; it is tried again.
                let file = self.path.display();
                tracing::warn!(%file, %error, "the write-ahead log could not be moved into the store");
                None
            }
        }
    }

    /// What the last pass found while nobody appended: whatever is left is held by a reader.
    fn found(&self, there: u64, left: u64) {
        let first = limits::WAL_BYTES_MAX / self.page_bytes;
        let mut state = self.state();
        if left == 0 {
            state.held = None;
            self.due.store(first, Ordering::Relaxed);
            return;
        }
        let held = state.held.get_or_insert(Held {
            since: Instant::now(),
            pages: left,
            warn_at: first * 2,
        });
        held.pages = left;
        if there >= held.warn_at {
            held.warn_at = there * 2;
            let (file, bytes) = (self.path.display(), there * self.page_bytes);
            let seconds = held.since.elapsed().as_secs();
            tracing::warn!(
                %file, bytes, seconds,
                "the write-ahead log grows, because somebody reads the store and does not end: end that reading transaction"
            );
        }
        // While it cannot shrink, each commit would try in vain.
        self.due.store(there + first / 4, Ordering::Relaxed);
    }
}

/// What the file itself tells.
pub(super) fn of_file(store: &Path) -> Wal {
    Wal {
        bytes: fs::metadata(log_of(store)).map_or(0, |metadata| metadata.len()),
        ..Wal::default()
    }
}

/// The thread that moves the log, once there was something to move. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Mover {
    log: Arc<Log>,
    thread: Option<JoinHandle<()>>,
}

impl Mover {
    pub(super) fn new(log: Arc<Log>) -> Self {
        Self { log, thread: None }
    }

    /// Has the log moved. To be called between two commits; `alone` gives a moment in which nobody appends, if there is one.
    pub(super) fn advance(&mut self, connection: &Connection, alone: impl FnOnce(&mut dyn FnMut())) {
        if self.log.runs_ahead() {
            // The disk does not keep up: whoever appends waits for it, or the log would grow without bound.
            self.log.wait_for_pass();
            self.log.finish.store(true, Ordering::Relaxed);
        }
        if self.log.finish.load(Ordering::Relaxed) {
            let log = &self.log;
            alone(&mut || {
                log.finish.store(false, Ordering::Relaxed);
                if let Some((there, left)) = log.moved(connection) {
                    log.found(there, left);
                }
            });
            return;
        }
        let mut state = self.log.state();
        if std::mem::replace(&mut state.asked, true) {
            return;
        }
        drop(state);
        self.log.changed.notify_all();
        if self.thread.is_none() {
            let log = self.log.clone();
            let started = std::thread::Builder::new()
                .name("neuron-checkpoint".into())
                .spawn(move || work(&log));
            match started {
                Ok(thread) => self.thread = Some(thread),
                Err(error) => {
                    self.log.state().asked = false;
                    tracing::warn!(%error, "the write-ahead log is not moved: no thread can be started");
                }
            }
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.log.state().closed = true;
        self.log.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has no result, and a panic of it was reported by the runtime.
            let _ = thread.join();
        }
    }
}

fn work(log: &Log) {
    let mut connection = None;
    loop {
        let mut state = log.state();
        // While a reader holds the log, its end is looked for also when nobody appends.
        while !state.asked && !state.closed {
            let held = state.held.is_some();
            let waited = log.changed.wait_timeout(state, limits::WAL_LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if held {
                break;
            }
        }
        if state.closed {
            return;
        }
        drop(state);
        match connection
            .take()
            .map_or_else(|| connect::writer(&log.path, log.durability, limits::READ_WAIT_MAX), Ok)
        {
            Ok(open) => {
                move_most(log, &open);
                connection = Some(open);
            }
            Err(error) => tracing::warn!(%error, "the write-ahead log could not be moved into the store"),
        }
        log.state().asked = false;
        log.changed.notify_all();
    }
}

/// Passes that each move what was appended during the one before, until little is left.
fn move_most(log: &Log, connection: &Connection) {
    let mut before = u64::MAX;
    while let Some((there, left)) = log.moved(connection) {
        if left == 0 {
            return log.found(there, 0);
        }
        if left <= limits::WAL_REST_BYTES_MAX / log.page_bytes || left >= before / 2 {
            // The writer finds out whether that is what was appended meanwhile, or what a reader holds.
            log.finish.store(true, Ordering::Relaxed);
            if log.state().held.is_some() {
                log.found(there, left);
            }
            return;
        }
        before = left;
    }
}
