//! Orders: pause, resume, cancel. Whoever is addressed subscribes to a durable topic, so an order is never missed, only
//! late; and obeying it twice is obeying it once.

use std::collections::BTreeMap;

use crate::{
    Envelope, Error, Fold, Result, Topic,
    store::Select,
    vocabulary::{
        Message as _,
        control::{ControlCancelled, ControlPaused, ControlResumed},
    },
};

/// What the orders on a control topic add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Whether the last of pause and resume was pause.
    pub paused: bool,
    /// The reason of the first cancel, if there was one. A cancel is final.
    pub cancelled: Option<Option<String>>,
    /// Those for single threads, by key.
    pub threads: BTreeMap<String, ThreadOrders>,
    /// The `seq` of the last envelope that was looked at; 0 = none.
    pub head: u64,
}

/// What the orders for one thread add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadOrders {
    /// Whether the last of pause and resume was pause.
    pub paused: bool,
    /// The reason of the first cancel, if there was one. A cancel is final.
    pub cancelled: Option<Option<String>>,
}

impl ThreadOrders {
    /// One more order.
    pub fn obey(&mut self, order: &ThreadOrder) {
        match order {
            ThreadOrder::Pause => self.paused = true,
            ThreadOrder::Resume => self.paused = false,
            ThreadOrder::Cancel { because } => {
                self.cancelled.get_or_insert_with(|| because.clone());
            }
        }
    }
}

/// An order for one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadOrder {
    /// Start nothing more.
    Pause,
    /// Go on.
    Resume,
    /// Stop for good.
    Cancel {
        /// The reason given.
        because: Option<String>,
    },
}

impl ThreadOrder {
    /// The thread that an envelope of a control topic orders about, by its key, and what it orders.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema) if its payload is not what its type says.
    pub fn of(envelope: &Envelope) -> Result<Option<(String, Self)>, Error> {
        let (thread, order) = match envelope.body.kind.as_str() {
            ControlPaused::TYPE => (envelope.decode::<ControlPaused>()?.thread, Self::Pause),
            ControlResumed::TYPE => (envelope.decode::<ControlResumed>()?.thread, Self::Resume),
            ControlCancelled::TYPE => {
                let ControlCancelled { thread, because } = envelope.decode()?;
                (thread, Self::Cancel { because })
            }
            _ => return Ok(None),
        };
        Ok(thread.map(|thread| (thread, order)))
    }
}

impl Orders {
    /// Both together: of a run and of a token in it.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            paused: self.paused || other.paused,
            cancelled: self.cancelled.clone().or_else(|| other.cancelled.clone()),
            threads: self.threads.clone().into_iter().chain(other.threads.clone()).collect(),
            head: 0,
        }
    }
}

/// Folds a control topic into [`Orders`].
///
/// ```
/// # use neuron::{Ledger, RunId, token::Control, topic::catalog};
/// # fn show(ledger: &Ledger) -> Result<(), neuron::Error> {
/// let run = RunId::new("digest-1")?;
/// let orders = ledger.fold(&Control::new(catalog::run_control(&run)), None)?.state;
/// assert!(!orders.paused);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Control(Topic);

impl Control {
    /// The fold of one control topic.
    pub fn new(topic: Topic) -> Self {
        Self(topic)
    }
}

impl Fold for Control {
    type State = Orders;

    fn init(&self) -> Orders {
        Orders::default()
    }

    fn apply(&self, orders: &mut Orders, envelope: &Envelope) -> Result<(), Error> {
        orders.head = envelope.seq;
        if let Some((thread, order)) = ThreadOrder::of(envelope)? {
            orders.threads.entry(thread).or_default().obey(&order);
            return Ok(());
        }
        match envelope.body.kind.as_str() {
            ControlPaused::TYPE => orders.paused = true,
            ControlResumed::TYPE => orders.paused = false,
            ControlCancelled::TYPE if orders.cancelled.is_none() => {
                orders.cancelled = Some(envelope.decode::<ControlCancelled>()?.because);
            }
            _ => {}
        }
        Ok(())
    }

    fn select(&self) -> Select {
        Select::Topic(self.0.clone())
    }
}
