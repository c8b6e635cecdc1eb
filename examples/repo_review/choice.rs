//! Which run a command means.

use std::collections::BTreeMap;
use std::fmt;

use neuron::store::Select;
use neuron::topic::catalog;
use neuron::vocabulary::Message as _;
use neuron::vocabulary::orchestration::OrchestrationCreated;
use neuron::{Error, ErrorKind, Ledger, Result, RunId};
use orchestrator::runs::{RunState, RunSummary, Runs};
use serde::Deserialize;

use crate::git::{GitError, Repository, Subject};

/// The orchestrator's name on the log.
const NAME: &str = "review";

/// The run that is meant, and how it stands.
pub(crate) struct Choice {
    pub(crate) id: RunId,
    /// What it reviews: of a run that has begun, what it began with, whatever `HEAD` is now.
    pub(crate) subject: Subject,
    /// How it stands; `None` if it is new.
    pub(crate) state: Option<RunState>,
    moved: bool,
}

#[derive(Deserialize)]
struct Given {
    subject: Subject,
}

impl Choice {
    /// The run that was asked for; else the newest one that was not finished and is of this repository; else the one
    /// of the present commit, finished or new. A run that failed is not tried again: a new one is.
    pub(crate) fn make(
        ledger: &Ledger,
        repository: &Repository,
        present: Subject,
        asked: Option<RunId>,
    ) -> Result<Self, Error> {
        let mut runs = ledger.fold(&Runs, None)?.state;
        runs.retain(|_, run| run.name == NAME);
        if let Some(id) = asked {
            let state = runs.get(&id).map(|run| run.state);
            return match state {
                Some(RunState::Open | RunState::Paused) => Self::unfinished(ledger, repository, &present, &id, state),
                _ => Ok(Self {
                    id,
                    subject: present,
                    state,
                    moved: false,
                }),
            };
        }
        let mut open: Vec<_> = runs.iter().filter(|(_, run)| is_open(run)).collect();
        open.sort_by_key(|(_, run)| std::cmp::Reverse(run.started));
        for (id, run) in open {
            match Self::unfinished(ledger, repository, &present, id, Some(run.state)) {
                Err(error) if error.kind() == ErrorKind::Misuse => {}
                choice => return choice,
            }
        }
        let (id, state) = named(ledger, &runs, &present)?;
        Ok(Self {
            id,
            subject: present,
            state,
            moved: false,
        })
    }

    fn unfinished(
        ledger: &Ledger,
        repository: &Repository,
        present: &Subject,
        id: &RunId,
        state: Option<RunState>,
    ) -> Result<Self, Error> {
        let subject = subject(ledger, id)?;
        if !holds(repository, present, &subject).map_err(|error| Error::new(ErrorKind::Io, error))? {
            let why =
                format!("run `{id}` reviews {subject}, which this repository does not hold: give --run another id");
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        let moved = subject != *present;
        Ok(Self {
            id: id.clone(),
            subject,
            state,
            moved,
        })
    }
}

fn is_open(run: &RunSummary) -> bool {
    matches!(run.state, RunState::Open | RunState::Paused)
}

/// What a run that has begun reviews.
fn subject(ledger: &Ledger, id: &RunId) -> Result<Subject, Error> {
    let first = ledger
        .read(Select::Topic(catalog::lifecycle(id)))
        .limit(1)
        .envelopes()
        .next();
    let created = first.transpose()?.map(|envelope| OrchestrationCreated::read(&envelope));
    let args = created.transpose()?.flatten().and_then(|created| created.args);
    let args =
        args.ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("run `{id}` does not say what it reviews")))?;
    Ok(args.decode::<Given>()?.subject)
}

/// Whether the repository is the one that a run began with, as far as its commit tells.
fn holds(repository: &Repository, present: &Subject, subject: &Subject) -> Result<bool, GitError> {
    if subject.shallow != present.shallow {
        return Ok(false);
    }
    match &subject.commit {
        Some(commit) => repository.holds(commit),
        None => Ok(present.commit.is_none()),
    }
}

/// The run of a subject: the finished one, or the first name that is free.
fn named(
    ledger: &Ledger,
    runs: &BTreeMap<RunId, RunSummary>,
    present: &Subject,
) -> Result<(RunId, Option<RunState>), Error> {
    let commit = present
        .commit
        .as_deref()
        .map_or("empty", |commit| &commit[..commit.len().min(12)]);
    let mut name = format!("{NAME}-{commit}");
    if present.shallow {
        name.push_str("-shallow");
    }
    let mut id = RunId::new(&name)?;
    let mut next = 2;
    while let Some(run) = runs.get(&id) {
        if run.state == RunState::Completed && subject(ledger, &id)? == *present {
            return Ok((id, Some(run.state)));
        }
        id = RunId::new(format!("{name}-{next}"))?;
        next += 1;
    }
    Ok((id, None))
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, subject, .. } = self;
        match self.state {
            None => write!(f, "run {id}: a review of {subject}")?,
            Some(RunState::Open) => write!(f, "run {id} goes on where its log ends: a review of {subject}")?,
            Some(RunState::Paused) => write!(f, "run {id} is paused: a review of {subject}")?,
            Some(RunState::Completed | RunState::Failed | RunState::Cancelled) => {
                write!(
                    f,
                    "run {id} has ended before; the log holds its answer: a review of {subject}"
                )?;
            }
        }
        if self.moved {
            f.write_str("; HEAD has moved since, the next command reviews it")?;
        }
        Ok(())
    }
}
