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
    /// Whether a run that has not ended, and that nobody drives here, may be taken up now. What was said to it counts until
    /// it is taken up.
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
    pub(super) fn keep(&mut self, switchboard: &Switchboard, is_open: impl Fn(&RunId) -> bool) {
        self.0.retain(|run, _| is_open(run));
        switchboard.keep(is_open);
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
#[allow(clippy::unwrap_used, reason = "a test that fails is meant to panic")]
mod tests {
    use std::sync::Arc;

    use neuron::{Author, Error, Ledger, SystemClock, pipeline::Pipeline, store::Memory};

    use super::{
        super::order::{Target, order},
        *,
    };
    use crate::protocol::Order;

    /// Something is said to a run, and has been heard.
    async fn say(ledger: &Ledger, switchboard: &Switchboard, run: &RunId) {
        let target = Target::Run(run.clone());
        order(ledger, &target, Order::Resume, None, Author::cli())
            .await
            .unwrap();
        while !switchboard.is_spoken_to(run) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_is_said_to_a_run_that_is_held_has_it_taken_up_once_and_not_again_and_again() {
        let store = Arc::new(Memory::new().unwrap());
        let ledger = Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap();
        let switchboard = Switchboard::listen(&ledger).unwrap();
        let (mut tries, run) = (Tries::default(), RunId::new("r").unwrap());
        let held = || watch::channel(Some(Err(Error::new(ErrorKind::Diverged, "another call")))).1;
        tries.took_up(&run, held());
        switchboard.leave(&run, []);
        assert!(!tries.may_be_taken_up(&run, &switchboard), "nobody has said anything");
        say(&ledger, &switchboard, &run).await;
        assert!(tries.may_be_taken_up(&run, &switchboard));
        // An order about its build stands against it, say: what was said still counts.
        assert!(tries.may_be_taken_up(&run, &switchboard));
        // It is taken up, and fails before anybody listens for it.
        switchboard.acted_on(&run);
        tries.took_up(&run, held());
        assert!(!tries.may_be_taken_up(&run, &switchboard));
        say(&ledger, &switchboard, &run).await;
        assert!(tries.may_be_taken_up(&run, &switchboard));
        // Somebody else ends it.
        tries.keep(&switchboard, |_| false);
        assert!(!switchboard.is_spoken_to(&run), "it is forgotten");
    }

    #[test]
    fn a_run_is_taken_up_less_and_less_often_and_at_least_once_a_minute() {
        let waits: Vec<u64> = (1..9).map(|times| wait(times).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(wait(u32::MAX), limits::RETAKE_WAIT_MAX);
    }
}
