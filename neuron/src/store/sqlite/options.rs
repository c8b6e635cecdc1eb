use std::{sync::Arc, time::Duration};

use crate::{Clock, SystemClock, limits, store::Fault};

/// What a committed append survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The end of the process, however it comes. A crash of the machine may take the last commits back, in order.
    Process,
    /// Power loss too, as far as the disk keeps its word.
    #[default]
    PowerLoss,
}

/// What an opening may do to the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Writes, and makes the store if it is missing or of zero length.
    #[default]
    Create,
    /// Writes to a store that is there.
    Write,
    /// Reads, and changes no byte on the disk.
    Read,
}

/// How a store is opened.
///
/// ```
/// use neuron::store::{Access, Options};
/// let reading = Options { access: Access::Read, ..Options::default() };
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// What a committed append survives.
    pub durability: Durability,
    /// What the opening may do.
    pub access: Access,
    /// How long a commit waits for another process that holds the store, before it fails as
    /// [`Busy`](crate::ErrorKind::Busy).
    pub wait: Duration,
    /// Where the `at` of envelopes comes from.
    pub clock: Arc<dyn Clock>,
    /// Whether the ephemeral topics of a [`Ledger`](crate::Ledger) reach the other processes that have the store open, as
    /// a [`Bridge`](crate::transport::Bridge) does it. Whoever only reads has no part in it: it changes nothing on the
    /// disk, also no socket.
    pub bridge: bool,
    /// Where a test breaks commits.
    pub fault: Option<Arc<dyn Fault>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            access: Access::default(),
            wait: limits::STORE_WAIT_MAX,
            clock: Arc::new(SystemClock),
            bridge: true,
            fault: None,
        }
    }
}
