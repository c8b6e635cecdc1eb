//! What an annotated function is made of: one type that says everything about it, behind the function's own name.

mod args;
mod callable;
mod context;
mod definition;
mod entry;
mod form;
mod meta;
mod payload;
mod registry;
mod sets;

pub use args::{Args, Encoded, Fields, Keep};
pub use callable::{Callable, Tool, tool};
pub use context::Context;
pub use definition::{Agent, Def, Orchestrator, Step, encode, form_of, kind};
pub use entry::{Entry, present};
pub use form::{Form, schema_ref};
pub use meta::{Meta, Outliner, Param, Resolver, RetryOn, Run};
pub use payload::{Body, Outcome, Payload, Ran, body};
pub use registry::Registry;

pub(crate) use meta::judged;
pub(crate) use payload::recorded;
pub(crate) use sets::in_order;
