//! Steps: how one is called, what its body is given, and how it is carried out.

mod artifact;
mod backoff;
mod boundary;
mod builtin;
mod call;
mod cx;
mod deadline;
mod doubt;
mod execute;
mod halt;

pub use call::Call;
pub use cx::{Cx, test};
pub(crate) use execute::ask;
