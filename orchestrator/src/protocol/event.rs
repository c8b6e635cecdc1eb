use neuron::{
    Error, TokenId,
    vocabulary::{
        clearance::PlanDeclared,
        orchestration::{Claims, EdgeDeclared, PackageAssigned},
    },
};

use crate::package::{Key, Outcome};

/// What has happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A body is idle, and has assigned these since it last was; also what it assigned before a restart.
    Assigned {
        /// The orchestrator's package whose body it is; `None` for the run's own.
        within: Option<Key>,
        /// The packages, in order.
        packages: Vec<Assignment>,
    },
    /// What [`Command::Plan`](super::Command::Plan) gave.
    Planned {
        /// The package.
        package: Key,
        /// Its plan.
        plan: Planned,
    },
    /// A package that was started has ended.
    Ended {
        /// The package.
        package: Key,
        /// How.
        outcome: Outcome,
    },
    /// A package that runs wants a step that it did not declare.
    Amended {
        /// The package.
        package: Key,
        /// Key of the step.
        step: String,
        /// Name of the step.
        name: String,
        /// What it asks for.
        claims: Claims,
    },
    /// Somebody gave an order.
    Ordered {
        /// To whom; `None` for the whole run.
        token: Option<TokenId>,
        /// What.
        order: Order,
    },
    /// The run's own body has ended.
    BodyEnded {
        /// How.
        outcome: Outcome,
    },
}

/// A package as its orchestrator's body assigned it.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// What goes on the log, if it does not stand there yet.
    pub assigned: PackageAssigned,
    /// What it waits for.
    pub edges: Vec<EdgeDeclared>,
    /// Whether the program holds the code that executes it.
    pub known: bool,
}

/// What became of asking a package for its plan.
#[derive(Clone, Debug)]
pub enum Planned {
    /// Here it is.
    Written(PlanDeclared),
    /// It reads a value that is still to come.
    Waiting,
    /// It cannot be written.
    Failed(Error),
}

/// An order from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start nothing more.
    Pause,
    /// Go on.
    Resume,
    /// Stop for good.
    Cancel {
        /// Why.
        because: Option<String>,
    },
}
