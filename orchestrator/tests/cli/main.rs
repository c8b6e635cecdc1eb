//! The command line, asked as a person asks it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "a test that fails is meant to panic"
)]

mod answers;
mod consumers;
mod copies;
mod digest;
mod integrity;
mod manners;
mod orders;
mod past;
mod runs;
mod world;
