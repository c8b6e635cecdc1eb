//! A package: a piece of work on the board, from its assignment to its answer.

use std::{fmt, sync::Arc};

use neuron::{Error, ErrorKind, Result};
use serde::Serialize;

pub use neuron::vocabulary::orchestration::{Claims, EdgeReason, PackageKind};

/// Names a package within its run: the identity of the call that assigned it.
pub type Key = Arc<str>;

/// How a package ended: well, or with the failure that is its answer.
pub type Outcome = Result<(), Error>;

/// How far a package has come. Folded from the log, never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Its plan cannot be written before a value is there.
    Waiting,
    /// Its plan stands on the log, without a ruling.
    Declared,
    /// It may run, and waits for other packages.
    Cleared,
    /// It may run, and everything it waits for has ended.
    Running,
    /// It gave its output.
    Done,
    /// It failed, or something it depends on did.
    Failed,
    /// Clearance refused it.
    Denied,
    /// It was cancelled.
    Cancelled,
}

impl Phase {
    /// The phase of a package that has ended.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Ok(()) => Self::Done,
            Err(error) => match error.kind() {
                ErrorKind::Denied => Self::Denied,
                ErrorKind::Cancelled => Self::Cancelled,
                _ => Self::Failed,
            },
        }
    }

    /// Whether nothing more will happen to it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Denied | Self::Cancelled)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "waiting",
            Self::Declared => "declared",
            Self::Cleared => "cleared",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
        })
    }
}
