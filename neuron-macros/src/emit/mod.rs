//! Model to tokens. Nothing here can fail, branch on the user's behalf, or leave a name for the user to trip over:
//! paths are absolute, helper items hide inside the function.

mod definition;
mod fallback;
mod handler;
mod outline;
mod parts;

pub(crate) use definition::definition;
pub(crate) use fallback::{as_written, beside};
pub(crate) use handler::handler;
pub(crate) use outline::outline;
