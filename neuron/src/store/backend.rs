//! What group commit asks of a store.

use super::seal::Transaction;
use crate::{Error, Result};

/// What a store must do so that batches can be committed to it in groups.
pub(crate) trait Backend: Transaction + Send {
    /// Opens the write transaction. Without `wait`, gives `false` if another process holds the store.
    fn begin(&mut self, wait: bool) -> Result<bool, Error>;
    /// Makes the transaction durable.
    fn commit(&mut self) -> Result<(), Error>;
    /// Undoes the transaction and forgets what was cached in it.
    fn rollback(&mut self);
    /// Does what can wait until the receipts have left. The transaction is over.
    fn rest(&mut self) {}
}
