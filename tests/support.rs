//! What the tests of the whole share: child processes that can be stopped hard, and real servers.
//!
//! Everything here waits for events (a line of output, a stop that the kernel confirms) and fails with what the other
//! side has said so far, so that no test needs a sleep or a guess.

#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails is meant to panic"
)]

#[path = "support/dice.rs"]
mod dice;
#[path = "support/process.rs"]
mod process;
#[cfg(feature = "services")]
#[path = "support/service.rs"]
mod service;

use std::{net::TcpListener, time::Duration};

pub use tempfile::TempDir;

pub use dice::{Dice, LONG, SEED, fresh_seed, is_long, seed_given};
pub use process::{Process, binary, example};
#[cfg(feature = "services")]
pub use service::{Kind, Service};

/// How long anything may take before a test gives up: far beyond what a loaded machine needs.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A folder of its own, in memory where the system has such a place: for behaviour that does not depend on a disk.
pub fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a folder of its own")
}

/// A port of the loopback interface that is free now. Somebody else may take it before it is used.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free loopback port");
    listener.local_addr().expect("a bound port").port()
}
