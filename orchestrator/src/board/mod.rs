//! The board of a run: its packages, what they wait for, and what was ruled on them. A fold, so it is never stored.

mod view;

pub use view::{Amendment, BoardView, Package};
