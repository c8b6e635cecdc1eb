//! The shell: it drives bodies, carries out what the protocol commands, and keeps the log.

mod admission;
pub(crate) mod answer;
mod assign;
mod body;
mod builder;
mod context;
mod driver;
mod engine;
mod execute;
mod handle;
mod handlers;
mod job;
mod laid;
mod launch;
mod neuron;
mod order;
mod recover;
mod replay;
mod replayed;
mod run;
mod scribe;
mod signal;
mod standing;
mod supervise;
mod switchboard;
pub(crate) mod update;

pub use assign::{Assign, Work};
pub use builder::Builder;
pub use context::Board;
pub use handle::Package;
pub use neuron::{Begins, Neuron};
pub use order::{Target, order};
pub use recover::Recovered;
pub(crate) use replay::Replay;
pub use replayed::{Found, Outlook, Replayed};
pub use run::{Run, Running};
