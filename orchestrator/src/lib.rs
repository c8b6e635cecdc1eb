//! The orchestrator: it alone assigns, rules on what was declared, and writes down why.

#![cfg_attr(
    test,
    allow(
        clippy::expect_used,
        clippy::panic,
        clippy::unwrap_used,
        reason = "a test that fails is meant to panic"
    )
)]

pub mod account;
mod ancestry;
pub mod board;
pub mod builds;
pub mod clearance;
pub mod cli;
pub mod fact;
pub mod graph;
pub mod package;
pub mod prelude;
pub mod protocol;
pub mod ruling;
pub mod runs;
mod shell;
#[cfg(feature = "testing")]
pub mod testing;
pub mod waiting;

pub use neuron;
pub use shell::{
    Assign, Begins, Board, Builder, Fork, Found, Neuron, Outlook, Package, Recovered, Replayed, Run, Running, Target,
    Work, order,
};

/// The program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
