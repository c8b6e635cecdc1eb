//! How often a serving process has taken up runs that were left without an end.

use std::{collections::HashMap, time::Duration};

use neuron::{ErrorKind, RunId, limits};
use tokio::{sync::watch, time::Instant};

use super::{standing::End, switchboard::Switchboard};

/// The runs that this process has taken up to serve.
#[derive(Default)]
pub(super) struct Tries(HashMap<RunId, Try>);

struct Try {
    /// How often, since somebody said something to the run.
    times: u32,
    last: Instant,
    end: watch::Receiver<Option<End>>,
}

impl Tries {
    /// Whether a run that has not ended, and that nobody drives here, may be taken up now.
    pub(super) fn may_be_taken_up(&mut self, run: &RunId, switchboard: &Switchboard) -> bool {
        let Some(before) = self.0.get_mut(run) else { return true };
        if switchboard.is_spoken_to(run) {
            before.times = 0;
            return true;
        }
        if before.is_held() {
            return false;
        }
        before.last.elapsed() >= wait(before.times)
    }

    pub(super) fn took_up(&mut self, run: &RunId, end: watch::Receiver<Option<End>>) {
        let times = self.0.get(run).map_or(0, |before| before.times);
        let now = Try {
            times: times.saturating_add(1),
            last: Instant::now(),
            end,
        };
        self.0.insert(run.clone(), now);
    }

    /// Forgets those that have ended.
    pub(super) fn keep(&mut self, is_open: impl Fn(&RunId) -> bool) {
        self.0.retain(|run, _| is_open(run));
    }
}

impl Try {
    /// Whether the run was left because this code does not fit its log: it will not the next time either.
    fn is_held(&self) -> bool {
        let end = self.end.borrow();
        let Some(Err(error)) = &*end else { return false };
        matches!(
            error.kind(),
            ErrorKind::Diverged | ErrorKind::ReplayDecode | ErrorKind::RunIdConflict
        )
    }
}

/// How long a run is left alone after it was taken up so often.
fn wait(times: u32) -> Duration {
    let doublings = times.saturating_sub(1).min(16);
    (limits::SERVE_POLL * (1 << doublings)).min(limits::RETAKE_WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_taken_up_less_and_less_often_and_at_least_once_a_minute() {
        let waits: Vec<u64> = (1..9).map(|times| wait(times).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(wait(u32::MAX), limits::RETAKE_WAIT_MAX);
    }
}
