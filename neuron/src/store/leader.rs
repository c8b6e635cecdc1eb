//! Who takes the lead, and which thread has it at this moment.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
};

/// Who takes the lead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lead {
    /// A task: it never waits for another process.
    Task,
    /// A thread that may.
    Thread,
    /// A thread that also waits for the present leader, so that all that waits is committed when it returns.
    Flush,
}

/// The thread that commits, while it does: what it calls back must not wait for it.
#[derive(Default)]
pub(super) struct Leader(Mutex<Option<ThreadId>>);

impl Leader {
    /// Whether this very thread commits, so that it is called back by itself.
    pub(super) fn is_this_thread(&self) -> bool {
        *self.thread() == Some(thread::current().id())
    }

    /// This thread commits until the guard is gone; also a callback that panics ends it.
    pub(super) fn begin(&self) -> Leading<'_> {
        *self.thread() = Some(thread::current().id());
        Leading(self)
    }

    fn thread(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, a thread commits.
pub(super) struct Leading<'a>(&'a Leader);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        *self.0.thread() = None;
    }
}
