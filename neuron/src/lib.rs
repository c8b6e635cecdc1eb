//! State is never stored, it is folded.

#![cfg_attr(
    test,
    allow(
        clippy::expect_used,
        clippy::panic,
        clippy::unwrap_used,
        reason = "a test that fails is meant to panic"
    )
)]

pub mod canon;
mod digest;
mod error;
pub mod graph;
pub mod limits;

pub use canon::Json;
pub use digest::{CALL_CONTEXT, Digest, ENVELOPE_CONTEXT, SCHEMA_CONTEXT};
pub use error::{BoxError, Error, ErrorKind, Result, Terminal};
