use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::sync::Notify;

use crate::{
    Error, ErrorKind, Result,
    store::{Fault, Point},
};

/// A crash inside this process: from one commit on nothing more is committed, and no body of a step is polled any more
/// (see [`Faults::until`](super::Faults::until)).
///
/// It is no `kill -9`: memory, open files and threads stay until whoever tests lets go of them. Where that matters,
/// [`Crash`](crate::store::Crash) aborts a real process.
///
/// ```
/// use neuron::{store::{Fault, Point}, testing::Cut};
/// let cut = Cut::at(Point::BeforeCommit, 2);
/// assert!(Fault::at(&*cut, Point::BeforeCommit).is_ok());
/// assert!(Fault::at(&*cut, Point::BeforeCommit).is_err());
/// assert!(cut.has_fallen());
/// ```
#[derive(Debug)]
pub struct Cut {
    point: Point,
    commit: AtomicU64,
    seen: AtomicU64,
    fallen: AtomicBool,
    told: Notify,
}

impl Cut {
    /// A crash at this point of the `commit`th commit from now on, counted from 1; never if it is 0.
    pub fn at(point: Point, commit: u64) -> Arc<Self> {
        Arc::new(Self {
            point,
            commit: AtomicU64::new(commit),
            seen: AtomicU64::new(0),
            fallen: AtomicBool::new(false),
            told: Notify::new(),
        })
    }

    /// Moves the crash to the `commit`th commit from now on, counted from 1.
    pub fn after(&self, commit: u64) {
        self.commit
            .store(self.commits().saturating_add(commit), Ordering::SeqCst);
    }

    /// Commits so far.
    pub fn commits(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }

    /// Crashes now.
    pub fn fall(&self) {
        self.fallen.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    /// Whether it has come, or will.
    pub fn is_set(&self) -> bool {
        self.has_fallen() || self.commit.load(Ordering::SeqCst) > self.commits()
    }

    /// Whether it has come.
    pub fn has_fallen(&self) -> bool {
        self.fallen.load(Ordering::SeqCst)
    }

    /// Waits for it.
    pub async fn fallen(&self) {
        loop {
            let told = self.told.notified();
            if self.has_fallen() {
                return;
            }
            told.await;
        }
    }
}

impl Fault for Cut {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == self.point
            && !self.has_fallen()
            && self.seen.fetch_add(1, Ordering::SeqCst) + 1 == self.commit.load(Ordering::SeqCst)
        {
            self.fall();
        }
        if self.has_fallen() {
            return Err(Error::new(
                ErrorKind::Io,
                "the test has crashed this process: nothing is committed any more",
            ));
        }
        Ok(())
    }
}
