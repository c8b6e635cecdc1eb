//! The six beats as one pure machine: assign, declare, clearance, execute, report, recover.
//!
//! [`advance`] takes an [`Event`] into the [`State`] and says which [`Command`]s follow. It has no clock, no log and no
//! thread; who drives it carries the commands out in their order. What it records it takes in itself at once, by the
//! same fold that reads the log, so a state made from a log ([`State::resume`]) goes on where the log ends: nothing that
//! stands there is said twice.

mod assign;
mod clear;
mod control;
mod declare;
mod execute;
mod report;
mod state;

use neuron::{
    Error, ErrorKind, Result, TokenId,
    vocabulary::{
        clearance::PlanDeclared,
        orchestration::{Claims, EdgeDeclared, PackageAssigned},
    },
};

use crate::{
    fact::{Conclusion, Fact},
    package::{Key, Outcome},
    ruling::Verdict,
};

pub use state::State;

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
    /// What [`Command::Plan`] gave.
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

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Append this.
    Record(Fact),
    /// Ask the package for its plan, with the inputs that are there, and come back with [`Event::Planned`].
    Plan {
        /// The package.
        package: Key,
    },
    /// Run it, and come back with [`Event::Ended`].
    Start {
        /// The package.
        package: Key,
    },
    /// Append the answer of the package to the body that assigned it.
    Answer {
        /// The package.
        package: Key,
        /// Its outcome; the output of one that is done is with whoever ran it.
        outcome: Outcome,
    },
    /// Hand the ruling to the step that waits for it.
    Rule {
        /// The package.
        package: Key,
        /// Key of the step.
        step: String,
        /// The ruling.
        verdict: Verdict,
    },
    /// It runs: let it start no further step until [`Command::Release`].
    Hold {
        /// The package.
        package: Key,
    },
    /// It may start steps again.
    Release {
        /// The package.
        package: Key,
    },
    /// It runs: stop it, and come back with [`Event::Ended`].
    Stop {
        /// The package.
        package: Key,
    },
    /// Stop the run's own body; nothing comes back.
    Abandon,
    /// The run is over: append how.
    Conclude(Conclusion),
}

/// Takes an event in, and gives what follows from it.
///
/// # Errors
/// [`ErrorKind::Misuse`] for an event that cannot happen in this state: the state is then not to be used any further.
pub fn advance(state: &mut State, event: Event) -> Result<Vec<Command>, Error> {
    let mut beat = Beat {
        state,
        commands: Vec::new(),
    };
    match event {
        Event::Assigned { within, packages } => beat.assigned(within.as_ref(), &packages)?,
        Event::Planned { package, plan } => beat.planned(&package, plan)?,
        Event::Ended { package, outcome } => beat.ended(&package, outcome)?,
        Event::Amended {
            package,
            step,
            name,
            claims,
        } => beat.amended(&package, step, name, &claims)?,
        Event::Ordered { token, order } => beat.ordered(token.as_ref(), order)?,
        Event::BodyEnded { outcome } => beat.body_ended(outcome)?,
    }
    Ok(beat.commands)
}

/// One event on its way through the state.
struct Beat<'a> {
    state: &'a mut State,
    commands: Vec<Command>,
}

impl Beat<'_> {
    /// Puts a fact on the log, and on the board that is folded from it.
    fn record(&mut self, fact: Fact) -> Result<(), Error> {
        self.state.board.record(&fact)?;
        self.commands.push(Command::Record(fact));
        Ok(())
    }
}

fn illegal(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Misuse, why)
}
