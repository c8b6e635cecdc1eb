//! What a journal knows of its topic beyond the log: what the next record responds to, and what brought it about.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    Cause, Error, Parent,
    scope::Record,
    vocabulary::{
        Message as _,
        dialogue::{QuestionAsked, QuestionRefused},
        step::{StepArtifact, StepDoubted, StepStarted, ThreadStarted, TimerStarted, WaitStarted},
    },
};

#[derive(Default)]
pub(super) struct State {
    /// The last start of each call that has not ended: what its end responds to.
    pub(super) starts: HashMap<Arc<str>, Parent>,
    /// The heads of the control topics up to which no cancel stands.
    pub(super) heads: Vec<u64>,
    pub(super) cause: Option<Cause>,
    /// Why a deferred record could not even wait for a commit; the next append fails with it, as nothing may stand that
    /// relies on a record that was lost.
    pub(super) lost: Option<Error>,
}

impl State {
    /// A record of a call stands, here.
    pub(super) fn wrote(&mut self, call: Arc<str>, says: Says, place: Parent) {
        self.cause = None;
        match says {
            Says::Start => drop(self.starts.insert(call, place)),
            Says::End => drop(self.starts.remove(&call)),
            Says::More => {}
        }
    }
}

/// What a record says of its call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// It begins: its end will respond to this.
    Start,
    End,
    /// It goes on.
    More,
}

impl Says {
    pub(super) fn of(record: &Record) -> Self {
        match record.kind {
            StepStarted::TYPE | TimerStarted::TYPE | ThreadStarted::TYPE | WaitStarted::TYPE | QuestionAsked::TYPE => {
                Self::Start
            }
            StepDoubted::TYPE | StepArtifact::TYPE | QuestionRefused::TYPE => Self::More,
            _ => Self::End,
        }
    }
}

pub(super) fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
