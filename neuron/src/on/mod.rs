//! Handlers: functions with `#[on("…")]`, each a named durable consumer that a serving process runs.
//!
//! What is promised is what [`consumer`](crate::consumer) promises: a message is handed out until a delivery of it is
//! acknowledged or it is parked, an effect in this store happens exactly once, and of all processes one runs a handler.

mod event;
mod handler;

pub use event::{Event, Occurrence};
pub use handler::{Arrival, Effect, Handler, On, OnMeta};
