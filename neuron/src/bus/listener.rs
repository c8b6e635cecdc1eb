use std::{
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Poll, Waker},
};

use tokio::sync::oneshot;

use crate::{Envelope, Pattern, Result, transport::Queue};

/// How many envelopes a listener has lost: it was too slow, or the way from another process was. Durable ones still
/// stand on the log.
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
struct State {
    queue: Queue<Item, u64>,
    reader: Option<Waker>,
}

/// One subscriber's bounded queue. When it is full the newest is dropped and counted.
pub(super) struct Slot {
    pub(super) is_handler: bool,
    state: Mutex<State>,
}

impl Slot {
    pub(super) fn new(is_handler: bool) -> Self {
        Self {
            is_handler,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an envelope in; gives whom to wake.
    pub(super) fn push(&self, item: Item, bytes: usize) -> Option<Waker> {
        let mut state = self.state();
        state.queue.push(item, bytes);
        state.reader.take()
    }

    /// Takes a loss in; gives whom to wake.
    pub(super) fn lose(&self, count: u64) -> Option<Waker> {
        let mut state = self.state();
        state.queue.lose(count);
        state.reader.take()
    }
}

/// Where a listener is registered.
pub(super) trait Desk: Send + Sync {
    /// A listener has left.
    fn leave(&self, pattern: &Pattern, key: u64);
}

/// The receiving end of a bounded buffer on the bus.
pub struct Listener {
    slot: Arc<Slot>,
    pattern: Pattern,
    key: u64,
    desk: Weak<dyn Desk>,
}

impl Listener {
    pub(super) fn new(slot: Arc<Slot>, pattern: Pattern, key: u64, desk: Weak<dyn Desk>) -> Self {
        Self {
            slot,
            pattern,
            key,
            desk,
        }
    }

    pub(super) fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The next envelope, or how many were lost before it.
    ///
    /// # Errors
    /// [`Lagged`] once, at the place where envelopes were lost; the next call goes on.
    pub async fn next(&mut self) -> Result<Arc<Envelope>, Lagged> {
        self.item().await.map(|item| item.envelope)
    }

    /// What is there now, without waiting; `None` if there is nothing.
    ///
    /// # Errors
    /// As [`Listener::next`].
    pub fn try_next(&mut self) -> Result<Option<Arc<Envelope>>, Lagged> {
        match self.slot.state().queue.pop().transpose() {
            Ok(item) => Ok(item.map(|item| item.envelope)),
            Err(lost) => Err(Lagged(lost)),
        }
    }

    pub(super) async fn item(&mut self) -> Result<Item, Lagged> {
        poll_fn(|context| {
            let mut state = self.slot.state();
            if let Some(entry) = state.queue.pop() {
                return Poll::Ready(entry.map_err(Lagged));
            }
            state.reader = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(desk) = self.desk.upgrade() {
            desk.leave(&self.pattern, self.key);
        }
        // Whoever waits in `emit` for one of these has nothing left to wait for.
        let left = std::mem::take(&mut self.slot.state().queue);
        drop(left);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("pattern", &self.pattern)
            .finish_non_exhaustive()
    }
}
