//! What an attribute makes of a function, and the words that messages use for it.

use proc_macro2::Ident;
use syn::{Path, Type};

/// What is being defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Step,
    Agent,
    Orchestrator,
    Plan,
    Handler,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Step, Self::Agent, Self::Orchestrator, Self::Plan, Self::Handler];

    /// The name of the attribute.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Handler => "on",
            _ => self.word(),
        }
    }

    /// The word for the thing.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Agent => "agent",
            Self::Orchestrator => "orchestrator",
            Self::Plan => "plan",
            Self::Handler => "handler",
        }
    }

    /// The word with its article.
    pub(crate) fn a(self) -> &'static str {
        match self {
            Self::Step => "a step",
            Self::Agent => "an agent",
            Self::Orchestrator => "an orchestrator",
            Self::Plan => "a plan",
            Self::Handler => "a handler",
        }
    }

    /// The trait of the runtime that stands for the kind; also the name of its marker type.
    pub(crate) fn marker(self) -> &'static str {
        match self {
            Self::Step => "Step",
            Self::Agent => "Agent",
            Self::Orchestrator => "Orchestrator",
            Self::Plan => "Plan",
            Self::Handler => "On",
        }
    }

    /// The name of the type of the first parameter.
    pub(crate) fn context(self) -> &'static str {
        match self {
            Self::Step | Self::Agent => "Cx",
            Self::Orchestrator => "Board",
            Self::Plan => "Plan",
            Self::Handler => "Event",
        }
    }

    /// The word for the first parameter.
    pub(crate) fn first(self) -> &'static str {
        match self {
            Self::Handler => "event",
            _ => "context",
        }
    }

    /// The most parameters after the context: the runtime implements no longer tuples.
    pub(crate) fn parameters_max(self) -> usize {
        match self {
            Self::Handler => 1,
            _ => 8,
        }
    }

    /// The whole signature that is expected of a function called `ident`.
    pub(crate) fn usage(self, ident: &Ident) -> String {
        match self {
            Self::Step | Self::Agent => format!("`async fn {ident}(cx: &Cx, …) -> Result<…>`"),
            Self::Orchestrator => format!("`async fn {ident}(board: &Board, …) -> Result<…>`"),
            Self::Plan => format!("`fn {ident}(plan: &Plan, …) -> Node<…>`"),
            Self::Handler => format!("`async fn {ident}(event: &Event, payload: …) -> Result<()>`"),
        }
    }

    /// The kind whose context a type is called like.
    pub(crate) fn of_context(ty: &Type) -> Option<Self> {
        let Type::Path(path) = ty else { return None };
        let last = path.path.segments.last()?;
        Self::ALL.into_iter().find(|kind| last.ident == kind.context())
    }

    /// The kind that an attribute makes, if it is one of ours, with or without the name of a crate before it.
    pub(crate) fn of_attribute(path: &Path) -> Option<Self> {
        let last = path.segments.last()?;
        Self::ALL.into_iter().find(|kind| last.ident == kind.attribute())
    }
}
