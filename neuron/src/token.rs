//! Orders: pause, resume, cancel. Whoever is addressed subscribes to a durable topic, so an order is never missed, only
//! late; and obeying it twice is obeying it once.

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
    /// The `seq` of the last envelope that was looked at; 0 = none.
    pub head: u64,
}

impl Orders {
    /// Both together: of a run and of a token in it.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            paused: self.paused || other.paused,
            cancelled: self.cancelled.clone().or_else(|| other.cancelled.clone()),
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
