//! Who is told of commits, for as long as it lives.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{Page, Range, Row};
use crate::{Error, Result};

/// Is told of what is committed. A function of rows is one.
pub trait Observer: Send + Sync {
    /// What this process has committed, in commit order, before the appender gets its receipt.
    fn committed(&self, rows: &[Arc<Row>]);

    /// Everything up to `last` may be read by now, and something of it may be other processes'. Called within 50 ms of a
    /// foreign commit, and also after own ones; `page` reads.
    fn noticed(&self, last: u64, page: &dyn Fn(Range) -> Result<Page, Error>) {
        let _ = (last, page);
    }
}

impl<F: Fn(&[Arc<Row>]) + Send + Sync> Observer for F {
    fn committed(&self, rows: &[Arc<Row>]) {
        self(rows);
    }
}

/// The observers of one open store. The store keeps none of them alive.
#[derive(Default)]
pub(crate) struct Observers(Mutex<Vec<Weak<dyn Observer>>>);

impl Observers {
    pub(crate) fn add(&self, observer: Weak<dyn Observer>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.strong_count() > 0);
        known.push(observer);
    }

    pub(crate) fn committed(&self, rows: &[Arc<Row>]) {
        self.living().iter().for_each(|observer| observer.committed(rows));
    }

    pub(crate) fn noticed(&self, last: u64, page: &dyn Fn(Range) -> Result<Page, Error>) {
        self.living().iter().for_each(|observer| observer.noticed(last, page));
    }

    /// Those that live, to be called without the lock: none of them waits for what another one does.
    fn living(&self) -> Vec<Arc<dyn Observer>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter_map(Weak::upgrade).collect()
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.living().len()).finish()
    }
}
