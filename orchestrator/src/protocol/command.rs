use crate::{
    fact::{Conclusion, Fact},
    package::{Key, Outcome},
    ruling::Verdict,
};

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Append this.
    Record(Fact),
    /// Ask the package for its plan, with the inputs that are there, and come back with [`Event::Planned`](super::Event::Planned).
    Plan {
        /// The package.
        package: Key,
    },
    /// Run it, and come back with [`Event::Ended`](super::Event::Ended).
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
    /// It runs: stop it, and come back with [`Event::Ended`](super::Event::Ended).
    Stop {
        /// The package.
        package: Key,
    },
    /// Stop the run's own body; nothing comes back.
    Abandon,
    /// The run is over: append how.
    Conclude(Conclusion),
}
