//! Where a test may break a store on purpose.

use std::fmt;

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
