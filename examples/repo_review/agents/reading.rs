//! Reading within a step: beside the asynchronous threads, with its cost recorded and its progress told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use neuron::{Burn, Cx, Result};

use crate::git::{GitError, Progress, Reader, Repository};

/// How often a step says how far it is: often enough to be seen to move.
const TOLD_EVERY: Duration = Duration::from_millis(100);

/// Does `work` with a reader of its own, on a thread that may block, and tells how many of `what` it has read. The `git`
/// commands it starts are recorded as tool calls of the step; a step that is dropped stops its reading.
pub(super) async fn read<T: Send + 'static>(
    cx: &Cx,
    what: &str,
    work: impl FnOnce(&Reader, Progress<'_>) -> Result<T, GitError> + Send + 'static,
) -> Result<T> {
    let repository = cx.state::<Repository>()?.clone();
    let (so_far, wanted) = (Arc::new(AtomicU64::new(0)), Wanted(Arc::new(AtomicBool::new(true))));
    let (count, still) = (so_far.clone(), wanted.0.clone());
    let mut working = tokio::task::spawn_blocking(move || {
        let reader = repository.reader();
        let progress: Progress<'_> = &mut |read| {
            count.store(read, Ordering::Relaxed);
            if still.load(Ordering::Relaxed) {
                Ok(())
            } else {
                Err(GitError::Stopped)
            }
        };
        let result = work(&reader, progress);
        (reader.calls(), result)
    });
    let mut tick = tokio::time::interval(TOLD_EVERY);
    let (calls, result) = loop {
        tokio::select! {
            done = &mut working => break done?,
            _ = tick.tick() => cx.progress(so_far.load(Ordering::Relaxed), None, what),
        }
    };
    cx.burn(Burn {
        tool_calls: calls,
        ..Burn::default()
    });
    Ok(result?)
}

/// Whether somebody still waits; dropped with the step.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
