//! The envelope: the one record everything is made of.
//!
//! Four planes evolve apart: the form of the envelope itself (plane 0, pinned), the values of headers (1), the contract
//! of a body (2), and payloads (3). Headers are a list that is only ever injected into: [`Headers::current`] is the last
//! word on a key, [`Headers::history`] every word, and order is causality.
//!
//! A [`Draft`] has no place yet; the commit seals it into an [`Envelope`] with `seq`, `at` and `id`. They are two types,
//! so that nothing can pass for recorded that is not.

mod author;
mod body;
mod draft;
mod filter;
mod header;
mod passing;
mod receipt;
mod record;
mod sealed;

pub use author::Author;
pub use body::{Artifact, Body, Kind};
pub(crate) use draft::bounded;
pub use draft::{Cause, Draft, Parent};
pub use filter::Filter;
pub use header::{Header, Headers};
pub(crate) use header::{Reserved, refuse_reserved};
pub(crate) use passing::Passing;
pub use receipt::{Deferred, Receipt};
pub(crate) use record::{Prepared, RecordedBatch};
pub use sealed::Envelope;
