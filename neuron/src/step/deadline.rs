use std::{future::Future, time::Duration};

use tokio::time::Instant;

use crate::{Millis, limits, scope::Journal};

/// Waits for a moment that stands on the log, `span` at most.
///
/// The clock of the wall says when it has passed, so that whoever was suspended or dead meanwhile does not wait for what is
/// over. It may be set back, so the monotonic clock ends a wait as well: nobody waits longer than was asked for at first.
pub(super) async fn passed(journal: &dyn Journal, deadline: Millis, span: Duration) {
    let began = Instant::now();
    let span = span.min(journal.now().until(deadline));
    loop {
        let left = span.saturating_sub(began.elapsed()).min(journal.now().until(deadline));
        if left.is_zero() {
            return;
        }
        // The monotonic clock stands still in a suspended machine: on waking, the wall is to be looked at again.
        tokio::time::sleep(left.min(limits::CLOCK_LOOK)).await;
    }
}

/// `None` if `work` takes longer than the limit.
pub(super) async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        None => Some(work.await),
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
    }
}
