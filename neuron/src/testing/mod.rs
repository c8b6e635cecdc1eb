//! For the tests of programs that are built on this crate: time that stands, faults by the names of steps, crashes inside
//! the process, what a log is expected to say, and answers of real runs played again. Feature `testing`.
//!
//! The crate `orchestrator` builds on it: a whole runtime in memory, and a crash matrix over any orchestrator. Models that
//! follow a script are not part of it yet.

mod cassette;
mod clock;
mod cut;
mod faults;
mod log;
mod standing;

pub use cassette::Cassette;
pub use clock::PausedClock;
pub use cut::Cut;
pub use faults::{Failing, Faults, Struck};
pub use log::{compare, tail};
pub use standing::{GoingOn, Standing};

pub use crate::assert_log;
