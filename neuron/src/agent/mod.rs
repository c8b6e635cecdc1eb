//! Scopes on the ledger: where their records go, under whose epoch, and what stood there before.

mod given;
mod history;
mod journal;
mod memory;
mod said;

pub use history::history;
#[cfg(feature = "testing")]
pub(crate) use history::large;
pub use journal::{LedgerJournal, Place};
