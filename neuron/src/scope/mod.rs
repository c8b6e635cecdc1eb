//! A scope is one body that is driven: an agent's, a thread's, a step's, an orchestrator's.
//!
//! It owns what makes a replay the same as the first run: the counters that tell equal calls apart, the recorded
//! answers, and the gate that hands answers over one at a time, in the order of the log, only while the body is idle.

mod ask;
mod body;
#[cfg_attr(not(feature = "testing"), allow(unreachable_pub, reason = "public for tests alone"))]
mod boundary;
mod content;
mod continued;
mod drive;
mod gate;
mod identity;
mod idle;
mod incarnation;
mod inside;
mod journal;
mod known;
mod leaving;
mod memory;
mod once;
mod parting;
mod past;
mod recorded;
mod rehearsal;
mod rehearse;
mod runtime;
mod state;
mod updates;

pub use ask::{Answer, Ask};
pub(crate) use body::Birth;
pub use body::{Hook, Manner, Scope};
#[cfg(feature = "testing")]
pub use boundary::{Boundary, Entering};
#[cfg(not(feature = "testing"))]
pub(crate) use boundary::{Boundary, Entering};
pub use content::Content;
pub use continued::incarnations;
pub use drive::{contain, drive};
pub use gate::Start;
pub(crate) use incarnation::{INCARNATION, Incarnation, Onward};
pub use inside::{inside, panicked};
pub use journal::{Burn, Committed, Given, Journal, Record, Ruling, Said, Sought, Then, ThenSaid, Work};
pub(crate) use journal::{by_size, is_refusal};
pub use known::Past;
pub(crate) use known::{ASK, Request, UPDATE, WAIT};
pub use memory::MemoryJournal;
pub use past::History;
pub use recorded::Taken;
pub(crate) use recorded::{Answer as Recorded, lapsed, undecodable};
pub(crate) use rehearsal::THREAD;
pub use rehearsal::{Finding, Rehearsal};
pub use rehearse::rehearse;
pub use runtime::{Admission, Code, Fresh, Runtime, Stop};
pub use state::State;
