//! One message that a consumer has in view: read, and not settled on the log.

use std::time::Duration;

use crate::{EnvelopeRef, Millis};

/// A message in view.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) reference: EnvelopeRef,
    /// Deliveries made, that in hand included.
    pub(super) attempts: u32,
    /// Whether the log says that it is pending, so that the position may pass it.
    pub(super) recorded: bool,
    /// Whether the log may say so: then the position alone does not settle it.
    pub(super) told: bool,
    pub(super) phase: Phase,
}

/// Where a message stands. Moments are counted from the opening of the consumer, by a monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It may be handed out when its turn comes.
    Queued,
    /// It may be handed out at this moment or later.
    Waiting(Duration),
    /// Its delivery is being recorded.
    Preparing,
    /// Its delivery is recorded; whoever asks next gets it.
    Prepared,
    /// Somebody works on it, until this moment at the latest.
    InHand { lapse: Duration, given_up: bool },
    /// Its effect is being committed.
    Settling { lapse: Duration, given_up: bool },
    /// Its delivery has ended; that is not on the log yet.
    Ended(End),
    /// Its delivery has ended, and a batch that says so is under way.
    Recording(End),
}

/// How a delivery ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Ack,
    Retry {
        after: Duration,
        due: Duration,
        wall: Millis,
        because: String,
    },
    Park {
        because: String,
    },
}

impl End {
    /// Whether the message is settled by it.
    pub(super) fn settles(&self) -> bool {
        !matches!(self, Self::Retry { .. })
    }
}

impl Phase {
    /// Whether somebody has it in hand, or is about to.
    pub(super) fn is_in_hand(&self) -> bool {
        matches!(
            self,
            Self::Preparing | Self::Prepared | Self::InHand { .. } | Self::Settling { .. }
        )
    }

    /// Whether its end is settled, on the log or not.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self, Self::Ended(end) | Self::Recording(end) if end.settles())
    }
}

impl Entry {
    /// Whether it counts as in flight: handed out, or to be tried again.
    pub(super) fn is_in_flight(&self) -> bool {
        !self.phase.is_settled() && !self.is_fresh()
    }

    /// Whether it was never handed out.
    pub(super) fn is_fresh(&self) -> bool {
        self.phase == Phase::Queued && self.attempts == 0 && !self.recorded
    }
}
