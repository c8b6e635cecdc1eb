//! How a step learns that it is being cancelled, and gets a moment to clean up.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::{Manner, Scope, Stop};
use crate::{Error, ErrorKind};

/// Whether a body is being parted with, and whether it wants to know.
pub(super) struct Parting {
    heeded: AtomicBool,
    told: watch::Sender<bool>,
}

impl Default for Parting {
    fn default() -> Self {
        Self {
            heeded: AtomicBool::new(false),
            told: watch::Sender::new(false),
        }
    }
}

impl Scope {
    /// The body asks to be told: from now on it is not dropped at once.
    pub(crate) fn heed_parting(&self) {
        if self.manner == Manner::Free {
            self.parting.heeded.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the body is to be given time: it wants to know, and nobody else has taken its run over.
    pub(crate) fn is_parted_with_slowly(&self) -> bool {
        self.parting.heeded.load(Ordering::Relaxed) && matches!(self.runtime.stopped(), None | Some(Stop::Cancelled))
    }

    /// Tells the body that its caller has let go of it.
    pub(crate) fn part_with(&self) {
        self.parting.told.send_replace(true);
    }

    /// Whether its caller has let go of it, or its run was cancelled.
    pub(crate) fn is_parted_with(&self) -> bool {
        *self.parting.told.borrow() || self.runtime.stopped() == Some(Stop::Cancelled)
    }

    /// Whether it cleans up: it is told nothing more and starts nothing more.
    pub(crate) fn cleans_up(&self) -> bool {
        self.parting.heeded.load(Ordering::Relaxed) && self.is_parted_with() && self.is_parted_with_slowly()
    }

    /// Waits until the body is being cancelled.
    pub(crate) async fn parting(&self) {
        if self.manner != Manner::Free {
            return std::future::pending().await;
        }
        let mut told = self.parting.told.subscribe();
        let mut cancelled = self.runtime.cancelled.subscribe();
        tokio::select! {
            // Both senders live as long as the scope.
            _ = told.wait_for(|told| *told) => {}
            _ = cancelled.wait_for(|cancelled| *cancelled) => {}
        }
    }
}

/// What a call gives that is made while cleaning up.
pub(super) fn too_late() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        "this step is being cancelled: what it cleans up it does itself, without calls",
    )
}
