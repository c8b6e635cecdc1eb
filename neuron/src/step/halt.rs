use std::future::Future;

use tokio::sync::oneshot;

use crate::{Error, ErrorKind, Json, Result, scope::Stop};

/// Why a step ends without an answer.
pub(super) enum Halt {
    /// The body let go of it.
    Dropped,
    /// Nothing of the package goes on.
    Stopped(Stop),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        let stop = if error.kind() == ErrorKind::Cancelled {
            Stop::Cancelled
        } else {
            Stop::Refused(error)
        };
        Self::Stopped(stop)
    }
}

/// What the step that `resolve` names found out.
pub(super) enum Found {
    /// It has happened, and this is what it gave.
    Done(Json),
    /// It has not happened.
    NotDone,
    /// There is no such step, or it could not find out.
    Unknown,
}

/// What comes after an attempt or a ruling.
pub(super) enum Next {
    Again,
    Answered,
}

/// Waits while the body holds on to the call.
pub(super) async fn held<T>(held: &mut oneshot::Receiver<()>, work: impl Future<Output = T>) -> Result<T, Halt> {
    tokio::select! {
        biased;
        _ = held => Err(Halt::Dropped),
        value = work => Ok(value),
    }
}
