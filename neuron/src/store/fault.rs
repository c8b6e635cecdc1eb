//! Where a test may break a store on purpose.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Error, Result};

/// A moment in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Point {
    /// Everything is written into the transaction; nothing is durable.
    BeforeCommit,
    /// The commit is durable; nobody has seen it yet.
    AfterCommit,
}

/// Called at each [`Point`] of each commit, on the committing thread, while the store is held.
///
/// An error given before the commit makes it fail as a full disk would; after it, the error is of no effect. A fault may
/// also stop or abort the process: that is what it is for.
pub trait Fault: Send + Sync + fmt::Debug {
    /// Lets the commit go on, or not.
    ///
    /// # Errors
    /// Whatever the commit shall fail with.
    fn at(&self, point: Point) -> Result<(), Error>;
}

/// Aborts the process at one commit, as `kill -9` would: for crash matrices and demonstrations.
///
/// ```no_run
/// use neuron::{Ledger, store::{Crash, Options, Point}};
/// let options = Options { fault: Some(Crash::at(Point::AfterCommit, 20)), ..Options::default() };
/// let ledger = Ledger::open("demo.db", options)?;
/// # Ok::<(), neuron::Error>(())
/// ```
#[derive(Debug)]
pub struct Crash {
    point: Point,
    commit: u64,
    seen: AtomicU64,
}

impl Crash {
    /// Aborts at this point of the `commit`th commit of this process, counted from 1; never if it is 0.
    pub fn at(point: Point, commit: u64) -> Arc<dyn Fault> {
        Arc::new(Self {
            point,
            commit,
            seen: AtomicU64::new(0),
        })
    }
}

impl Fault for Crash {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == self.point && self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.commit {
            std::process::abort();
        }
        Ok(())
    }
}
