//! How a step learns that it is being cancelled, and gets a moment to clean up.

use std::sync::atomic::AtomicBool;

use tokio::sync::watch;

use crate::{Error, ErrorKind};

/// Whether a body is being parted with, and whether it wants to know.
pub(super) struct Parting {
    pub(super) heeded: AtomicBool,
    pub(super) told: watch::Sender<bool>,
}

impl Default for Parting {
    fn default() -> Self {
        Self {
            heeded: AtomicBool::new(false),
            told: watch::Sender::new(false),
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
