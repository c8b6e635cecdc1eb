//! The work of a run as a graph: packages, what they wait for, and how far the steps of each have come. Folded from the
//! log; drawn as Mermaid, Graphviz or SVG.

mod calls;
mod draw;
mod svg;

use std::fmt;

use neuron::{
    Error, Ledger, Result, RunId, TokenId,
    plan::{Outline, Row},
    topic::catalog,
    vocabulary::orchestration::{EdgeReason, PackageKind},
};
use serde::Serialize;

use self::calls::Calls;
use crate::{
    board::{BoardView, Package},
    fact::Conclusion,
    package::Phase,
};

/// Parts of one package that are drawn; of an agent that makes more calls of different names in turn, the last are told by
/// number.
pub const PARTS_MAX: usize = 40;

/// The work of a run, as it stands in a log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunGraph {
    /// The run.
    pub run: RunId,
    /// Its orchestrator.
    pub name: String,
    /// How far it has come.
    pub state: State,
    /// Its packages, in the order of their assignment, those of orchestrators that it assigned included.
    pub packages: Vec<Work>,
}

/// A package.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Work {
    /// Its agent, plan or orchestrator.
    pub name: String,
    /// What it is.
    pub kind: PackageKind,
    /// Its token.
    pub token: TokenId,
    /// How far it has come on the board.
    pub phase: Phase,
    /// The package whose body assigned it, by place; none if the run's own did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<usize>,
    /// What it waits for.
    pub after: Vec<Edge>,
    /// Its steps: the rows of a plan as they were declared, else the calls of a body in the order they began.
    pub parts: Vec<Part>,
    /// Parts that are not drawn, beyond [`PARTS_MAX`].
    pub more: usize,
}

/// What a package waits for, or waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// The package, by place.
    pub from: usize,
    /// Why: a parameter, a resource, or `after`.
    pub why: String,
}

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

impl RunGraph {
    /// The graph of a run, from its log. Blocks.
    ///
    /// ```
    /// # use neuron::{Ledger, RunId};
    /// # fn show(ledger: &Ledger) -> Result<(), neuron::Error> {
    /// let graph = orchestrator::graph::RunGraph::of(ledger, &RunId::new("digest-1")?)?;
    /// std::fs::write("digest-1.svg", graph.svg())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A kind of the disk; [`Schema`](neuron::ErrorKind::Schema) or [`Corrupt`](neuron::ErrorKind::Corrupt) for an
    /// envelope that is not what its type says.
    pub fn of(ledger: &Ledger, run: &RunId) -> Result<Self, Error> {
        let board = BoardView::of(ledger, run)?;
        let state = board.conclusion().map_or(State::Running, State::from);
        let packages = board.packages().iter();
        let packages = packages.map(|package| Work::of(ledger, run, &board, package));
        Ok(Self {
            run: run.clone(),
            name: board.created().map(|created| created.name.clone()).unwrap_or_default(),
            state,
            packages: packages.collect::<Result<_, _>>()?,
        })
    }
}

impl RunGraph {
    /// What the row of a plan at this place is called in a drawing: a, b, … z, a1, …
    pub fn letter(place: usize) -> String {
        let name = char::from(b'a' + u8::try_from(place % 26).unwrap_or(0));
        if place < 26 {
            name.to_string()
        } else {
            format!("{name}{}", place / 26)
        }
    }
}

impl Work {
    /// Whether its parts are the rows of a plan, which name one another, and not calls in the order they began.
    pub fn is_declared(&self) -> bool {
        self.kind == PackageKind::Plan
    }

    fn of(ledger: &Ledger, run: &RunId, board: &BoardView, package: &Package) -> Result<Self, Error> {
        let assigned = &package.assigned;
        let phase = board.phase(package);
        // What an orchestrator assigns stands on the board itself.
        let calls = match assigned.kind {
            PackageKind::Orchestrator => Calls::default(),
            PackageKind::Agent | PackageKind::Plan => {
                Calls::of(ledger, catalog::steps(&assigned.token), &assigned.key)?
            }
        };
        let declared = package.plan.as_ref().filter(|plan| !plan.opaque);
        let mut parts = match declared {
            Some(plan) if assigned.kind == PackageKind::Plan => {
                let outline: Outline = plan.outline.decode()?;
                rows(&outline.rows, &calls, phase)
            }
            _ => calls.in_turn(),
        };
        let more = parts.len().saturating_sub(PARTS_MAX);
        parts.truncate(PARTS_MAX);
        let after = board.before(package).filter_map(|edge| {
            let why = match (edge.why, &edge.parameter, &edge.resource) {
                (EdgeReason::Value, Some(named), _) | (EdgeReason::Clearance, _, Some(named)) => named.clone(),
                (EdgeReason::Value, None, _) => "value".into(),
                (EdgeReason::Clearance, _, None) => "clearance".into(),
                (EdgeReason::After, ..) => "after".into(),
            };
            Some(Edge {
                from: board.place(&edge.from)?,
                why,
            })
        });
        Ok(Self {
            name: assigned.name.clone(),
            kind: assigned.kind,
            token: assigned.token.clone(),
            phase,
            within: board.place(&assigned.scope).filter(|_| assigned.scope != run.as_str()),
            after: after.collect(),
            parts,
            more,
        })
    }
}

/// The rows of a plan, each with what is on the log of the step it names.
fn rows(rows: &[Row], calls: &Calls, phase: Phase) -> Vec<Part> {
    let part = |row: &Row| {
        let (state, done, count) = calls.of_name(&row.step);
        let manner = match (row.each, row.at_once, &row.when) {
            (true, Some(most), _) => Some(format!("for each, {most} at once")),
            (true, None, _) => Some("for each".into()),
            (false, _, Some(_)) => Some("on a condition".into()),
            (false, _, None) => None,
        };
        Part {
            name: row.step.clone(),
            state: state.unwrap_or(if phase.is_over() {
                State::Skipped
            } else {
                State::Waiting
            }),
            done,
            calls: count,
            after: row.edges(),
            manner,
        }
    };
    rows.iter().map(part).collect()
}
