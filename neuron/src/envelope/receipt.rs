//! Where an envelope came to stand, known now or with a later commit.

use std::sync::{Arc, Mutex, PoisonError};

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
pub struct Deferred(Arc<Mutex<Option<Result<Receipt, Error>>>>);

impl Deferred {
    /// Its place, once it has one.
    pub fn place(&self) -> Option<Receipt> {
        self.outcome().and_then(Result::ok)
    }

    pub(crate) fn outcome(&self) -> Option<Result<Receipt, Error>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn settle(&self, outcome: Result<Receipt, Error>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }
}
