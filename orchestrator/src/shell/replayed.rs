use std::fmt;

use neuron::{Error, ErrorKind, RunId, scope::Finding};
use serde::Serialize;

/// What the code of this program would do with a run, if it took it up now: found out by a dry run over its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// The run.
    pub run: RunId,
    /// Its orchestrator, as the log calls it.
    pub name: String,
    /// The build that began it.
    pub build: String,
    /// The worst of what was found.
    pub outlook: Outlook,
    /// What was found; empty if the run would go on as recorded.
    pub findings: Vec<Found>,
}

/// What would become of a run, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outlook {
    /// It would go on as recorded.
    GoesOn,
    /// Something would run before what is recorded already.
    RunsFirst,
    /// Recorded answers would not be asked for: what they say would be done again otherwise, or is lost.
    RunsAgain,
    /// A body awaits what is not on the log, so that no replay is sure.
    Unrecorded,
    /// A payment would be held until a person rules on it.
    Held,
    /// Something recorded does not decode as the present type: the run would be held, or cannot be taken up.
    Undecodable,
    /// Its orchestrator is not registered in this program.
    NoCode,
    /// Its log is damaged.
    Damaged,
}

impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::GoesOn => "goes on",
            Self::RunsFirst => "runs first",
            Self::RunsAgain => "runs again",
            Self::Unrecorded => "unrecorded",
            Self::Held => "held",
            Self::Undecodable => "undecodable",
            Self::NoCode => "no code",
            Self::Damaged => "damaged",
        })
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// What it means for the run.
    pub outlook: Outlook,
    /// The token of the package in whose body it was found; none for the orchestrator's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The step, package or thread that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The `pos` of the recorded envelope that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pos: Option<u64>,
    /// All of it, as a sentence.
    pub message: String,
}

impl Replayed {
    /// Whether the run would go on as recorded.
    pub fn goes_on(&self) -> bool {
        self.outlook == Outlook::GoesOn
    }
}

/// A run of whose log nothing can be said.
pub(super) fn damaged(run: &RunId, name: String, error: &Error) -> Replayed {
    let mut told = Replayed {
        run: run.clone(),
        name,
        build: String::new(),
        outlook: Outlook::GoesOn,
        findings: Vec::new(),
    };
    told.add(
        Outlook::Damaged,
        format!("the log of the run is damaged (`neuron verify` says where): {error}"),
    );
    told
}

impl Replayed {
    /// Adds what is about the whole run.
    pub(super) fn add(&mut self, outlook: Outlook, message: String) {
        self.push(Found {
            outlook,
            token: None,
            name: None,
            pos: None,
            message,
        });
    }

    fn push(&mut self, found: Found) {
        self.outlook = self.outlook.max(found.outlook);
        self.findings.push(found);
    }

    /// Adds what was found in a body: that of the package with this token, or the orchestrator's.
    pub(super) fn found(&mut self, token: Option<&str>, finding: &Finding) {
        let (outlook, name, pos, message) = match finding {
            Finding::Unasked { name, pos, instead, .. } => (
                Outlook::RunsAgain,
                Some(name),
                Some(*pos),
                match instead {
                    Some(_) => format!("`{name}` is recorded at {pos} with other arguments, and would run again"),
                    None => format!("the code no longer asks for `{name}`, which is recorded at {pos}"),
                },
            ),
            Finding::First { name, before, pos, .. } => (
                Outlook::RunsFirst,
                Some(name),
                Some(*pos),
                format!(
                    "`{name}` would run before `{before}`, which is recorded at {pos}; whether the code asks for that \
                     nobody can know before"
                ),
            ),
            Finding::Held { name, .. } => (
                Outlook::Held,
                Some(name),
                None,
                format!("`{name}` must not happen twice and is recorded otherwise: it would wait for `neuron resolve`"),
            ),
            Finding::Stopped(error) if error.kind() == ErrorKind::ReplayDecode => {
                (Outlook::Undecodable, None, None, error.to_string())
            }
            Finding::Stopped(error) => (Outlook::RunsAgain, None, None, format!("the body stops: {error}")),
            _ => (
                Outlook::Unrecorded,
                None,
                None,
                "the body awaits what is not on the log; await calls of its context only".into(),
            ),
        };
        self.push(Found {
            outlook,
            token: token.map(Into::into),
            name: name.cloned(),
            pos,
            message,
        });
    }
}
