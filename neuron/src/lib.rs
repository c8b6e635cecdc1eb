//! State is never stored, it is folded.

mod digest;
mod error;
pub mod limits;

pub use digest::{CALL_CONTEXT, Digest, ENVELOPE_CONTEXT, SCHEMA_CONTEXT};
pub use error::{BoxError, Error, ErrorKind, Result, Terminal};
