//! What holds for the whole: each module is one subject, each test a sentence about it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails is meant to panic"
)]

mod bad_input;
mod bridge;
mod crash;
mod crash_consumer;
mod crash_copy;
mod crash_store;
mod examples;
mod laws;
mod leases;
mod macros;
mod process;
mod readme;
mod repo_review;
mod run;
mod seed;
#[cfg(feature = "services")]
mod services;
mod sharing;
mod side;
mod storm;
mod tidy;
mod wire;
