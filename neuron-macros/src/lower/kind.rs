//! What an attribute makes of a function, and the words that messages use for it.

use proc_macro2::Ident;
use syn::Path;

/// What is being defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Step,
    Agent,
    Orchestrator,
    Plan,
}

impl Kind {
    /// The name of the attribute, which is also the word for the thing.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Agent => "agent",
            Self::Orchestrator => "orchestrator",
            Self::Plan => "plan",
        }
    }

    /// The word with its article.
    pub(crate) fn a(self) -> &'static str {
        match self {
            Self::Step => "a step",
            Self::Agent => "an agent",
            Self::Orchestrator => "an orchestrator",
            Self::Plan => "a plan",
        }
    }

    /// The trait of the runtime that stands for the kind; also the name of its marker type.
    pub(crate) fn marker(self) -> &'static str {
        match self {
            Self::Step => "Step",
            Self::Agent => "Agent",
            Self::Orchestrator => "Orchestrator",
            Self::Plan => "Plan",
        }
    }

    /// The name of the type of the first parameter.
    pub(crate) fn context(self) -> &'static str {
        match self {
            Self::Step | Self::Agent => "Cx",
            Self::Orchestrator => "Board",
            Self::Plan => "Plan",
        }
    }

    /// The whole signature that is expected of a function called `ident`.
    pub(crate) fn usage(self, ident: &Ident) -> String {
        match self {
            Self::Step | Self::Agent => format!("`async fn {ident}(cx: &Cx, …) -> Result<…>`"),
            Self::Orchestrator => format!("`async fn {ident}(board: &Board, …) -> Result<…>`"),
            Self::Plan => format!("`fn {ident}(plan: &Plan, …) -> Node<…>`"),
        }
    }

    /// The kind that an attribute makes, if it is one of ours, with or without the name of a crate before it.
    pub(crate) fn of_attribute(path: &Path) -> Option<Self> {
        let last = path.segments.last()?;
        [Self::Step, Self::Agent, Self::Orchestrator, Self::Plan]
            .into_iter()
            .find(|kind| last.ident == kind.word())
    }
}
