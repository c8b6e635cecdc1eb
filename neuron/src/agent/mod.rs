//! Scopes on the ledger: where their records go, under whose epoch, and what stood there before.

mod given;
mod history;
mod journal;
mod memory;
mod said;

#[cfg(feature = "testing")]
pub(crate) use history::large;
pub use history::{history, inherited};
pub use journal::{LedgerJournal, Place};
