//! For the tests of programs with agents: a runtime in memory whose time the test moves, faults by the names of steps,
//! crashes, what a log is expected to say, and a crash matrix over any orchestrator in one line. Feature `testing`.
//!
//! ```toml
//! [dev-dependencies]
//! orchestrator = { version = "0.1", features = ["testing"] }
//! ```
//!
//! | to test | use |
//! |---|---|
//! | a step or an agent by itself | [`neuron::test`](neuron::test()), or [`Faults::test`] with faults |
//! | a run, without waiting for its timers | [`Kit`] |
//! | what happens when a step fails, or takes long | [`Kit::fail`], [`Kit::delay`] |
//! | that a crash at one commit does no harm | [`Kit::crash_after_commit`], [`Kit::restart`] |
//! | that a crash at any commit does no harm | [`crash_matrix`] |
//! | what the log says | [`assert_log!`] |
//! | code against what a real run was answered | [`Kit::play`] |
//!
//! Models that follow a script are not part of it yet.

mod kit;
mod matrix;
mod place;

pub use kit::Kit;
pub use matrix::{CrashMatrix, Survived, crash_matrix};
pub use neuron::testing::{
    Cassette, Cut, Failing, Faults, GoingOn, PausedClock, Standing, Struck, assert_log, compare, tail,
};
