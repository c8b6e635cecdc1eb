//! A store, or a part of one, as lines of JSON; and the sealed archive that such lines make.
//!
//! The form is written down in WIRE.md. An export is for every program that reads JSON; an archive is for the verbs of
//! this one.

mod input;
mod line;
mod read;
mod write;

pub use line::Trailer;
pub use read::{Imported, import};
pub use write::export;
