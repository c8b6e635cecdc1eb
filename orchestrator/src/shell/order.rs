use std::fmt;

use neuron::{
    Author, Draft, Error, Ledger, Receipt, Result, RunId, TokenId, Topic,
    topic::catalog,
    vocabulary::{
        Message as _,
        control::{ControlCancelled, ControlPaused, ControlResumed},
    },
};

use crate::protocol::Order;

/// Whom an order is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A whole run.
    Run(RunId),
    /// One agent's work on one package.
    Token(TokenId),
    /// One thread of that work, with all below it.
    Thread(TokenId, String),
}

impl Target {
    /// The topic on which its orders stand.
    pub fn topic(&self) -> Topic {
        match self {
            Self::Run(run) => catalog::run_control(run),
            Self::Token(token) | Self::Thread(token, _) => catalog::control(token),
        }
    }

    /// The key of the thread that is meant.
    fn thread(&self) -> Option<String> {
        match self {
            Self::Thread(_, thread) => Some(thread.clone()),
            Self::Run(_) | Self::Token(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(f, "run {run}"),
            Self::Token(token) => write!(f, "token {token}"),
            Self::Thread(token, thread) => write!(f, "thread {thread} of token {token}"),
        }
    }
}

/// Gives an order, from whatever process: it is on the log, so whoever it is for cannot miss it.
///
/// # Errors
/// A kind of the disk.
pub async fn order(
    ledger: &Ledger,
    target: &Target,
    order: Order,
    because: Option<String>,
    author: Author,
) -> Result<Receipt, Error> {
    ledger.publish(draft(target, order, because, author)?).await
}

fn draft(target: &Target, order: Order, because: Option<String>, author: Author) -> Result<Draft, Error> {
    let (topic, thread) = (target.topic(), target.thread());
    match order {
        Order::Pause => ControlPaused { because, thread }.draft(topic, author),
        Order::Resume => ControlResumed { because, thread }.draft(topic, author),
        Order::Cancel { because: own } => {
            let because = own.or(because);
            ControlCancelled { because, thread }.draft(topic, author)
        }
    }
}
