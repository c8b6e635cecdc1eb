//! Whether an append is likely to have company, so that one commit serves several.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::limits;

/// What is known of the appends of late.
#[derive(Debug, Default)]
pub(super) struct Company {
    /// Appends so far that were not seen to have company.
    lone: AtomicU32,
    /// Commits for which company is still expected.
    expected: AtomicU32,
}

impl Company {
    /// Whether an append should let others go first: there are others among the `present`, there were lately, or it is
    /// time to look again.
    pub(super) fn sought(&self, present: usize) -> bool {
        present > 1
            || self.expected.load(Ordering::Relaxed) > 0
            || self
                .lone
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(limits::COMPANY_LOOK)
    }

    /// Learns how many batches a commit held. Only who commits calls this.
    pub(super) fn met(&self, batches: usize) {
        let expected = self.expected.load(Ordering::Relaxed);
        let expected = if batches > 1 {
            limits::COMPANY_LOOK
        } else {
            expected.saturating_sub(1)
        };
        self.expected.store(expected, Ordering::Relaxed);
    }
}
