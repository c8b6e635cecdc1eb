use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, oneshot};

use crate::{Envelope, Pattern, Result, limits};

/// How many envelopes a listener that was too slow has lost. Durable ones still stand on the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged(pub u64);

impl fmt::Display for Lagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the listener was too slow and lost {} envelopes", self.0)
    }
}

impl std::error::Error for Lagged {}

pub(super) struct Item {
    pub(super) envelope: Arc<Envelope>,
    pub(super) handled: Option<oneshot::Sender<()>>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    lagged: u64,
    closed: bool,
}

impl Queue {
    /// The next item, or how many were lost after those that were there.
    fn take(&mut self) -> Result<Option<Item>, Lagged> {
        // What was lost is newer than what is queued, so it is told once the queue is empty.
        match (self.items.pop_front(), self.lagged) {
            (None, 1..) => Err(Lagged(std::mem::take(&mut self.lagged))),
            (item, _) => Ok(item),
        }
    }
}

/// One subscriber's bounded queue. When it is full the newest is dropped and counted.
pub(super) struct Slot {
    pub(super) pattern: Pattern,
    pub(super) is_handler: bool,
    queue: Mutex<Queue>,
    filled: Notify,
}

impl Slot {
    pub(super) fn new(pattern: Pattern, is_handler: bool) -> Self {
        Self {
            pattern,
            is_handler,
            queue: Mutex::default(),
            filled: Notify::new(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.queue().closed
    }

    pub(super) fn push(&self, item: Item) {
        let mut queue = self.queue();
        if queue.closed {
            return;
        }
        if queue.items.len() >= limits::EPHEMERAL_QUEUE_MAX {
            queue.lagged += 1;
            return;
        }
        queue.items.push_back(item);
        drop(queue);
        self.filled.notify_one();
    }
}

/// The receiving end of a bounded buffer on the bus.
pub struct Listener {
    slot: Arc<Slot>,
}

impl Listener {
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        Self { slot }
    }

    pub(super) fn pattern(&self) -> &Pattern {
        &self.slot.pattern
    }

    /// The next envelope, or how many were lost before it.
    ///
    /// # Errors
    /// [`Lagged`] once after envelopes were lost; the next call goes on.
    pub async fn next(&mut self) -> Result<Arc<Envelope>, Lagged> {
        self.item().await.map(|item| item.envelope)
    }

    /// What is there now, without waiting; `None` if there is nothing.
    ///
    /// # Errors
    /// As [`Listener::next`].
    pub fn try_next(&mut self) -> Result<Option<Arc<Envelope>>, Lagged> {
        self.slot.queue().take().map(|item| item.map(|item| item.envelope))
    }

    pub(super) async fn item(&mut self) -> Result<Item, Lagged> {
        loop {
            if let Some(item) = self.slot.queue().take()? {
                return Ok(item);
            }
            self.slot.filled.notified().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut queue = self.slot.queue();
        queue.closed = true;
        queue.items.clear();
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("pattern", &self.slot.pattern)
            .finish_non_exhaustive()
    }
}
