use std::fmt;

use serde::Serialize;

use crate::{fact::Conclusion, package::Phase};

/// A step of a package, or equal ones that follow one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The step, or what else was called (`$sleep`, `$wait`).
    pub name: String,
    /// How far it has come. Of several calls, the state that most asks for a look.
    pub state: State,
    /// Calls of it that gave an output. Rows of a plan that name the same step are counted together.
    pub done: usize,
    /// Calls of it.
    pub calls: usize,
    /// Parts that end before it begins, by place: in a plan what flows, in a body nothing, as only its code knows.
    pub after: Vec<usize>,
    /// Whether it runs for each element of a list, or on a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manner: Option<String>,
}

impl Part {
    /// Its state, and how many of its calls are done where there are several.
    pub fn standing(&self) -> String {
        match (self.calls, &self.manner) {
            (0, _) | (1, None) => self.state.to_string(),
            (calls, _) if self.done == calls => format!("{calls} done"),
            (calls, _) => format!("{}, {} of {calls} done", self.state, self.done),
        }
    }
}

/// How far a step, a package or a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Declared, and never begun although its package has ended: its condition was not met, or its package failed.
    Skipped,
    /// It gave its output.
    Done,
    /// It has not begun.
    Waiting,
    /// Its body let go of it, or it was cancelled.
    Cancelled,
    /// It has begun and not ended.
    Running,
    /// An attempt failed, and another one will be made.
    Retrying,
    /// It failed, or was denied.
    Failed,
    /// It differs from a recorded `once` step, and does not run before somebody has looked.
    Held,
    /// Nobody knows whether it has happened.
    InDoubt,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Skipped,
        Self::Done,
        Self::Waiting,
        Self::Cancelled,
        Self::Running,
        Self::Retrying,
        Self::Failed,
        Self::Held,
        Self::InDoubt,
    ];

    /// Whether it asks for a person.
    pub fn needs_a_look(self) -> bool {
        matches!(self, Self::Held | Self::InDoubt)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Done => "done",
            Self::Waiting => "waiting",
            Self::Cancelled => "cancelled",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Failed => "failed",
            Self::Held => "held",
            Self::InDoubt => "in doubt",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl From<Phase> for State {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Waiting | Phase::Declared | Phase::Cleared => Self::Waiting,
            Phase::Running => Self::Running,
            Phase::Done => Self::Done,
            Phase::Failed | Phase::Denied => Self::Failed,
            Phase::Cancelled => Self::Cancelled,
        }
    }
}

impl From<&Conclusion> for State {
    fn from(conclusion: &Conclusion) -> Self {
        match conclusion {
            Conclusion::Completed => Phase::Done.into(),
            Conclusion::Failed(_) => Phase::Failed.into(),
            Conclusion::Cancelled { .. } => Phase::Cancelled.into(),
        }
    }
}
