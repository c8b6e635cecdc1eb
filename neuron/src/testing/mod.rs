//! For the tests of programs that are built on this crate: time that stands, faults by the names of steps, crashes inside
//! the process, and what a log is expected to say. Feature `testing`.
//!
//! The crate `orchestrator` builds on it: a whole runtime in memory, and a crash matrix over any orchestrator. Models that
//! follow a script are not part of it yet.

mod clock;
mod cut;
mod faults;
mod log;

pub use clock::{PausedClock, Standing};
pub use cut::Cut;
pub use faults::{Failing, Faults, Struck};
pub use log::{compare, tail};

pub use crate::assert_log;
