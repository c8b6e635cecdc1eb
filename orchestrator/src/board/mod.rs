//! The board of a run: its packages, what they wait for, and what was ruled on them. A fold, so it is never stored.

mod read;
mod view;

pub(crate) use read::facts;
pub use view::{Amendment, BoardView, Package};
