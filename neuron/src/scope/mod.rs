//! A scope is one body that is driven: an agent's, a thread's, a step's, an orchestrator's.
//!
//! It owns what makes a replay the same as the first run: the counters that tell equal calls apart, the recorded
//! answers, and the gate that hands answers over one at a time, in the order of the log, only while the body is idle.

mod ask;
mod body;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for tests alone"))]
mod boundary;
mod content;
mod drive;
mod gate;
mod identity;
mod idle;
mod inside;
mod journal;
mod memory;
mod past;
mod runtime;

pub use ask::{Answer, Ask};
pub(crate) use body::Birth;
pub use body::{Hook, Manner, Scope};
#[cfg(feature = "testing")]
pub use boundary::{Boundary, Entering};
#[cfg(not(feature = "testing"))]
pub(crate) use boundary::{Boundary, Entering};
pub use content::Content;
pub use drive::{contain, drive};
pub use gate::Start;
pub use inside::{inside, panicked};
pub(crate) use journal::by_size;
pub use journal::{Burn, Committed, Journal, Record, Ruling, Then};
pub use memory::MemoryJournal;
pub(crate) use past::{Answer as Recorded, Known};
pub use past::{History, Past, Taken};
pub use runtime::{Admission, Code, Fresh, Runtime, State, Stop};
