//! Reading within a step: beside the asynchronous threads, with its cost recorded and its progress told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use neuron::scope::Burn;
use neuron::{Context as _, Cx, Result};

use crate::git::{GitError, Progress, Reader, Repository};

/// Does `work` with a reader of its own, on a thread that may block. The `git` commands it starts are recorded as
/// tool calls of the step; a step that is dropped stops its reading.
pub(super) async fn read<T: Send + 'static>(
    cx: &Cx,
    work: impl FnOnce(&Reader, Progress<'_>) -> Result<T, GitError> + Send + 'static,
) -> Result<T> {
    let repository = cx.state::<Repository>()?.clone();
    let wanted = Wanted(Arc::new(AtomicBool::new(true)));
    let still = wanted.0.clone();
    let done = tokio::task::spawn_blocking(move || {
        let reader = repository.reader();
        let progress: Progress<'_> = &mut |_| {
            if still.load(Ordering::Relaxed) {
                Ok(())
            } else {
                Err(GitError::Stopped)
            }
        };
        let result = work(&reader, progress);
        (reader.calls(), result)
    });
    let (calls, result) = done.await?;
    cx.scope().burn(Burn {
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
