//! What carries ephemeral envelopes from one bus to the others that have the same store open.
//!
//! Durable topics never pass here: other processes see commits through the store. What is lost on the way is no loss of
//! data; it is counted, and whoever listens on the other side is told.

#[cfg(unix)]
mod bridge;
#[cfg(feature = "testing")]
pub mod conformance;
#[cfg(unix)]
mod frame;
mod link;
mod local;
mod lost;
#[cfg(unix)]
mod meeting;
#[cfg(unix)]
mod peer;
mod queue;

#[cfg(unix)]
pub use bridge::Bridge;
pub use link::{Inbox, Link, Transport};
pub use local::Local;
pub use lost::Lost;
pub(crate) use queue::{Loss, Queue};
