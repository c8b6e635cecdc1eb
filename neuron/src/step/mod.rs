//! Steps: how one is called, what its body is given, and how it is carried out.

mod artifact;
mod backoff;
mod boundary;
mod builtin;
mod call;
mod cx;
mod deadline;
mod doubt;
mod emit;
mod end;
mod execute;
mod halt;
mod onward;
mod question;
mod together;
mod transaction;
mod update;
mod wait;

pub use call::Call;
pub use cx::{Cx, test};
pub(crate) use execute::ask;
pub use question::{Question, Within};
pub use update::{Update, Updates};
pub use wait::Wait;
