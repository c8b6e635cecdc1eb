//! The thread that commits what nobody else takes along.

use std::{
    sync::{Arc, Weak},
    thread,
    time::Instant,
};

use super::{
    backend::Backend,
    commit::{Committer, held},
    leader::Lead,
};
use crate::{Error, Result, limits};

impl<B: Backend + 'static> Committer<B> {
    /// Starts the thread that commits what nobody else takes along. It ends with the store.
    pub(crate) fn start_standby(self: &Arc<Self>) -> Result<(), Error> {
        let weak = Arc::downgrade(self);
        let thread = thread::Builder::new()
            .name("neuron-commit".into())
            .spawn(move || stand_by(&weak))?;
        *held(&self.standby) = Some(thread);
        Ok(())
    }
}

/// Commits what was handed over at once, and what was deferred and nobody took along, in time.
fn stand_by<B: Backend + 'static>(weak: &Weak<Committer<B>>) {
    // Half of the delay may pass before it is seen that something is deferred.
    let look = limits::DEFERRED_DELAY_MAX / 2;
    let mut seen: Option<(u64, Instant)> = None;
    while let Some(this) = weak.upgrade() {
        let mut queue = held(&this.queue);
        if queue.closed {
            return;
        }
        let now = Instant::now();
        seen = queue.unflushed().map(|since| match seen {
            Some((known, at)) if known == since => (known, at),
            _ => (since, now + look),
        });
        let due = seen.map(|(_, at)| at);
        if std::mem::take(&mut queue.handed_over) || due.is_some_and(|due| due <= now) {
            drop(queue);
            this.lead(Lead::Flush);
            continue;
        }
        // It also wakes now and then to see whether the store is gone.
        let wait = due.map_or(look, |due| due - now);
        drop(this.wake.wait_timeout(queue, wait));
    }
}
