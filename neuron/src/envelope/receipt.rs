//! Where an envelope came to stand, known now or with a later commit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Digest, Error, Millis, Result, Topic};

/// Where an envelope was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its topic.
    pub topic: Topic,
    /// Its place in the topic.
    pub seq: u64,
    /// Its id.
    pub id: Digest,
    /// Its place in the store.
    pub pos: u64,
    /// When it was committed.
    pub at: Millis,
    /// Whether it was there already, under the same idempotency key.
    pub deduplicated: bool,
}

/// A deferred append: ordered with what follows, committed with the process's next commit or after 100 ms.
///
/// A later draft of this process may name it as parent or cause.
#[derive(Clone, Debug, Default)]
pub struct Deferred {
    settled: Arc<Mutex<Settled>>,
    /// Which store of the process it was given to; 0 = none.
    store: u64,
}

#[derive(Debug, Default)]
struct Settled {
    outcome: Option<Result<Receipt, Error>>,
    /// The commit is over: until then only the batches of the same group know the place.
    is_durable: bool,
}

impl Deferred {
    /// One that waits in this store.
    pub(crate) fn of(store: u64) -> Self {
        Self {
            store,
            ..Self::default()
        }
    }

    pub(crate) fn store(&self) -> u64 {
        self.store
    }

    /// Why it was refused, or why its commit failed; `None` as long as that is not known.
    pub fn refusal(&self) -> Option<Error> {
        self.settled().outcome.clone()?.err()
    }

    /// Its place, once it has one that no crash takes back.
    pub fn place(&self) -> Option<Receipt> {
        let settled = self.settled();
        settled.outcome.clone()?.ok().filter(|_| settled.is_durable)
    }

    /// What the writer made of it, also while its commit is under way.
    pub(crate) fn outcome(&self) -> Option<Result<Receipt, Error>> {
        self.settled().outcome.clone()
    }

    pub(crate) fn settle(&self, outcome: Result<Receipt, Error>) {
        self.settled().outcome = Some(outcome);
    }

    pub(crate) fn confirm(&self) {
        self.settled().is_durable = true;
    }

    fn settled(&self) -> MutexGuard<'_, Settled> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
