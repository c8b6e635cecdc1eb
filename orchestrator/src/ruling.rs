//! What clearance rules, each with its reason.

use crate::package::Key;

/// One ruling on a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The package may run.
    Go {
        /// The package.
        package: Key,
        /// Why.
        because: String,
    },
    /// The package may run only after another one: the two want a resource that one of them holds alone.
    After {
        /// The package that waits.
        package: Key,
        /// The package that goes first.
        first: Key,
        /// The resource.
        resource: String,
        /// Why.
        because: String,
    },
    /// The package may not run.
    Denied {
        /// The package.
        package: Key,
        /// Why not.
        because: String,
        /// The package it collides with.
        with: Option<Key>,
    },
}

/// The ruling on one more step of a package that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Go {
        /// Why.
        because: String,
    },
    /// It may not run.
    Denied {
        /// Why not.
        because: String,
        /// The package it collides with.
        with: Option<Key>,
    },
}
