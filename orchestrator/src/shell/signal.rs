use std::sync::Arc;

use neuron::{Error, Json, Result, TokenId, token::ThreadOrder};
use tokio::sync::{mpsc, oneshot};

use super::{body::Body, laid::Laid};
use crate::{
    package::{Claims, Key},
    protocol::Order,
    ruling::Verdict,
};

/// What the parts of a run tell its driver.
pub(crate) enum Signal {
    /// A body is idle or has ended, and has assigned these since it last was.
    Assigned { body: Arc<Body>, packages: Vec<Laid> },
    /// A package that was started has ended.
    Ended { package: Key, outcome: Result<Json, Error> },
    /// A package wants a step that it did not declare.
    Amended {
        package: Key,
        step: String,
        name: String,
        claims: Claims,
        reply: oneshot::Sender<Verdict>,
    },
    /// Somebody gave an order.
    Ordered { token: Option<TokenId>, order: Order },
    /// Somebody gave an order for one thread of a package, by its key.
    ThreadOrdered {
        token: TokenId,
        thread: String,
        order: ThreadOrder,
    },
    /// The run's own body has ended.
    BodyEnded { outcome: Result<Json, Error> },
    /// The run cannot go on in this process: the log could not be written, or the code does not fit it.
    Broken(Error),
}

/// The way to a run's driver. Its length is bounded by the packages, amendments and orders there are.
pub(crate) type Signals = mpsc::UnboundedSender<Signal>;
