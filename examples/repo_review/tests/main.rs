//! The modules of the main job, tested from within. The program itself is tested by `it`, as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "some of it is for the program alone")]

#[path = "../agents/mod.rs"]
mod agents;
#[path = "../bounded.rs"]
mod bounded;
#[path = "../dependencies/mod.rs"]
mod dependencies;
#[path = "../docs/mod.rs"]
mod docs;
#[path = "../git/mod.rs"]
mod git;
#[path = "../history/mod.rs"]
mod history;
#[path = "../judgement.rs"]
mod judgement;
#[path = "../language.rs"]
mod language;
#[path = "../name.rs"]
mod name;
#[path = "../report/mod.rs"]
mod report;
#[path = "../risk/mod.rs"]
mod risk;
#[path = "../rust_source.rs"]
mod rust_source;
#[path = "../structure.rs"]
mod structure;

mod fixture;
mod input;
mod numbers;
mod plans;
