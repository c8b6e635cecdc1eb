//! All runs of a store, one line each; and those of them that have not ended.

use std::{collections::BTreeMap, fmt};

use neuron::{
    Envelope, Error, Fold, Millis, Pattern, Result, RunId,
    fold::Codec,
    store::Select,
    vocabulary::{
        Message as _,
        control::{ControlPaused, ControlResumed},
        orchestration::{
            Fork, OrchestrationCancelled, OrchestrationCompleted, OrchestrationCreated, OrchestrationDecomposed,
            OrchestrationFailed,
        },
        step::{PackageCompleted, PackageFailed},
    },
};
use serde::{Deserialize, Serialize};

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It has not ended. Whether a process drives it now is not on the log.
    Open,
    /// It has not ended, and the last order is to pause.
    Paused,
    /// It ended with an output.
    Completed,
    /// It ended with a failure.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// The orchestrator.
    pub name: String,
    /// How it stands.
    pub state: RunState,
    /// When it began.
    pub started: Millis,
    /// When it ended.
    pub ended: Option<Millis>,
    /// Packages that were assigned.
    pub packages: u64,
    /// Packages that have their answer, well or not.
    pub answered: u64,
    /// The program that began it.
    pub build: String,
    /// The run that it parts from, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
}

/// Folds the log into a summary of every run, by id.
///
/// ```
/// # use neuron::Ledger;
/// # fn show(ledger: &Ledger) -> Result<(), neuron::Error> {
/// for (id, run) in ledger.fold(&orchestrator::runs::Runs, None)?.state {
///     println!("{id} {} {}/{}", run.state, run.answered, run.packages);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs;

impl Fold for Runs {
    type State = BTreeMap<RunId, RunSummary>;

    fn init(&self) -> Self::State {
        BTreeMap::new()
    }

    fn apply(&self, runs: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        let Some(id) = run_of(envelope) else {
            return Ok(());
        };
        if let Some(created) = OrchestrationCreated::read(envelope)? {
            let run = RunSummary {
                name: created.name,
                state: RunState::Open,
                started: envelope.at,
                ended: None,
                packages: 0,
                answered: 0,
                build: created.build,
                fork: created.fork,
            };
            runs.entry(id).or_insert(run);
            return Ok(());
        }
        let Some(run) = runs.get_mut(&id).filter(|run| run.ended.is_none()) else {
            return Ok(());
        };
        match envelope.body.kind.as_str() {
            OrchestrationDecomposed::TYPE => run.packages += envelope.decode::<OrchestrationDecomposed>()?.packages,
            PackageCompleted::TYPE | PackageFailed::TYPE => run.answered += 1,
            ControlPaused::TYPE => run.state = RunState::Paused,
            ControlResumed::TYPE => run.state = RunState::Open,
            OrchestrationCompleted::TYPE => run.end(RunState::Completed, envelope.at),
            OrchestrationFailed::TYPE => run.end(RunState::Failed, envelope.at),
            OrchestrationCancelled::TYPE => run.end(RunState::Cancelled, envelope.at),
            _ => {}
        }
        Ok(())
    }

    fn select(&self) -> Select {
        Pattern::new("orchestration.*.*").map_or(Select::All, Select::Pattern)
    }

    fn snapshot(&self) -> Option<Codec<Self::State>> {
        Some(Codec::new("runs", 2))
    }
}

/// A run that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Begun {
    /// The orchestrator.
    pub name: String,
    /// The `pos` of its first envelope.
    pub pos: u64,
}

/// Folds the log into the runs that have not ended, by id: what a process that takes up work looks through. Unlike
/// [`Runs`] it does not grow with the runs that there ever were.
///
/// ```
/// # use neuron::Ledger;
/// # fn show(ledger: &Ledger) -> Result<(), neuron::Error> {
/// for (id, run) in ledger.fold(&orchestrator::runs::Unfinished, None)?.state {
///     println!("{id} of {} waits for a process", run.name);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Unfinished;

/// The part of a run's beginning that says what is run.
#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Fold for Unfinished {
    type State = BTreeMap<RunId, Begun>;

    fn init(&self) -> Self::State {
        BTreeMap::new()
    }

    fn apply(&self, runs: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        let Some(id) = run_of(envelope) else {
            return Ok(());
        };
        match envelope.body.kind.as_str() {
            OrchestrationCreated::TYPE => {
                let Named { name } = envelope.decode()?;
                runs.entry(id).or_insert(Begun {
                    name,
                    pos: envelope.pos,
                });
            }
            OrchestrationCompleted::TYPE | OrchestrationFailed::TYPE | OrchestrationCancelled::TYPE => {
                runs.remove(&id);
            }
            _ => {}
        }
        Ok(())
    }

    fn select(&self) -> Select {
        Pattern::new("orchestration.*.lifecycle").map_or(Select::All, Select::Pattern)
    }

    fn snapshot(&self) -> Option<Codec<Self::State>> {
        Some(Codec::new("runs-unfinished", 1))
    }
}

impl RunSummary {
    fn end(&mut self, state: RunState, at: Millis) {
        self.state = state;
        self.ended = Some(at);
    }
}

/// The run that an envelope is about, by its topic.
pub(crate) fn run_of(envelope: &Envelope) -> Option<RunId> {
    match envelope.topic.segments().collect::<Vec<_>>()[..] {
        ["orchestration", run, _] => RunId::new(run).ok(),
        _ => None,
    }
}
