//! Scopes on the ledger: where their records go, under whose epoch, and what stood there before.

mod given;
mod history;
mod journal;
mod said;

pub use history::history;
pub use journal::{LedgerJournal, Place};
