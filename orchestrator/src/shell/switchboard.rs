use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use neuron::{
    Envelope, Error, Ledger, Pattern, Result, RunId, TokenId,
    ledger::From,
    limits,
    token::ThreadOrder,
    vocabulary::{
        Message as _,
        control::{ControlCancelled, ControlPaused, ControlResumed},
    },
};

use tokio::sync::oneshot;

use super::{
    order::Target,
    signal::{Signal, Signals},
};
use crate::protocol::Order;

/// Hands orders on the log to the runs of this process: one subscription for all of them.
pub(crate) struct Switchboard {
    lines: Mutex<Lines>,
    /// Dropped with it, so that whoever listens lets go of the log.
    _alive: oneshot::Sender<()>,
}

#[derive(Default)]
struct Lines {
    runs: HashMap<RunId, Signals>,
    tokens: HashMap<TokenId, Signals>,
    /// Runs that were left without an end, and whether anything was said to them since.
    left: HashMap<RunId, bool>,
    /// The tokens of these.
    homes: HashMap<TokenId, RunId>,
}

impl Switchboard {
    /// Begins to listen to the log.
    ///
    /// # Errors
    /// A kind of the disk.
    pub(crate) fn listen(ledger: &Ledger) -> Result<Arc<Self>, Error> {
        let (alive, mut gone) = oneshot::channel();
        let board = Arc::new(Self {
            lines: Mutex::default(),
            _alive: alive,
        });
        let mut orders = ledger.subscribe(Pattern::new("*.*.control")?, From::Now)?;
        let weak: Weak<Self> = Arc::downgrade(&board);
        tokio::spawn(async move {
            loop {
                let before = orders.position();
                let order = tokio::select! {
                    _ = &mut gone => return,
                    order = orders.next() => order,
                };
                match order {
                    Ok(envelope) => {
                        let Some(board) = weak.upgrade() else { return };
                        board.hand_on(&envelope);
                    }
                    // One order cannot be read; those behind it can.
                    Err(error) if orders.position() > before => {
                        tracing::error!(%error, "an order on the log cannot be read and is passed over");
                    }
                    Err(error) => {
                        tracing::error!(%error, "orders cannot be read from the log; they are tried again");
                        tokio::time::sleep(limits::SERVE_POLL).await;
                    }
                }
            }
        });
        Ok(board)
    }

    pub(crate) fn connect_run(&self, run: &RunId, signals: &Signals) {
        let mut lines = self.lines();
        lines.runs.insert(run.clone(), signals.clone());
        if lines.left.remove(run).is_some() {
            lines.homes.retain(|_, home| home != run);
        }
    }

    pub(crate) fn connect_token(&self, token: &TokenId, signals: &Signals) {
        self.lines().tokens.insert(token.clone(), signals.clone());
    }

    pub(crate) fn disconnect<'a>(&self, run: &RunId, tokens: impl IntoIterator<Item = &'a TokenId>) {
        let mut lines = self.lines();
        lines.runs.remove(run);
        for token in tokens {
            lines.tokens.remove(token);
        }
    }

    /// A run is left without an end: from now on it is noted whether anything is said to it or its packages.
    pub(crate) fn leave<'a>(&self, run: &RunId, tokens: impl IntoIterator<Item = &'a TokenId>) {
        let mut lines = self.lines();
        lines.left.insert(run.clone(), false);
        let homes = tokens.into_iter().map(|token| (token.clone(), run.clone()));
        lines.homes.extend(homes);
    }

    /// Something was said to a run that was left here, and nobody has acted on it.
    pub(crate) fn speak(&self, run: &RunId) {
        if let Some(told) = self.lines().left.get_mut(run) {
            *told = true;
        }
    }

    /// Whether somebody has said something to a run, or to a package of it, since it was left here: an order, a ruling, an
    /// answer.
    pub(crate) fn is_spoken_to(&self, run: &RunId) -> bool {
        self.lines().left.get(run).is_some_and(|told| *told)
    }

    /// What was said to a run is acted on: it is taken up.
    pub(crate) fn acted_on(&self, run: &RunId) {
        if let Some(told) = self.lines().left.get_mut(run) {
            *told = false;
        }
    }

    /// Forgets the runs that were left here and have ended since, whoever ended them.
    pub(crate) fn keep(&self, is_open: impl Fn(&RunId) -> bool) {
        let Lines { left, homes, .. } = &mut *self.lines();
        left.retain(|run, _| is_open(run));
        homes.retain(|_, run| left.contains_key(run));
    }

    fn hand_on(&self, envelope: &Envelope) {
        let Some(target) = target_of(envelope) else { return };
        let mut lines = self.lines();
        let home = match &target {
            Target::Run(run) => Some(run.clone()),
            Target::Token(token) | Target::Thread(token, _) => lines.homes.get(token).cloned(),
        };
        if let Some(told) = home.and_then(|run| lines.left.get_mut(&run)) {
            *told = true;
        }
        let (line, token) = match target {
            Target::Run(run) => (lines.runs.get(&run), None),
            Target::Token(token) | Target::Thread(token, _) => (lines.tokens.get(&token), Some(token)),
        };
        if let Some((line, signal)) = line.zip(signal(envelope, token)) {
            // A run that has just ended obeys nothing any more.
            let _ = line.send(signal);
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom an envelope of a control topic is said to.
fn target_of(envelope: &Envelope) -> Option<Target> {
    let segments: Vec<&str> = envelope.topic.segments().collect();
    match segments[..] {
        ["orchestration", run, "control"] => RunId::new(run).ok().map(Target::Run),
        ["agent", token, "control"] => TokenId::new(token).ok().map(Target::Token),
        _ => None,
    }
}

/// What the driver of a run is told of an order; `None` for anything else on a control topic, such as a ruling.
fn signal(envelope: &Envelope, token: Option<TokenId>) -> Option<Signal> {
    match ThreadOrder::of(envelope) {
        Ok(Some((thread, order))) => token.map(|token| Signal::ThreadOrdered { token, thread, order }),
        Ok(None) => order_of(envelope).map(|order| Signal::Ordered { token, order }),
        Err(error) => {
            tracing::error!(%error, topic = %envelope.topic, seq = envelope.seq, "an order is none, and is passed over");
            None
        }
    }
}

/// What an envelope orders; `None` for anything else on a control topic, such as a ruling.
fn order_of(envelope: &Envelope) -> Option<Order> {
    Some(match envelope.body.kind.as_str() {
        ControlPaused::TYPE => Order::Pause,
        ControlResumed::TYPE => Order::Resume,
        ControlCancelled::TYPE => Order::Cancel {
            because: envelope
                .decode::<ControlCancelled>()
                .ok()
                .and_then(|order| order.because),
        },
        _ => return None,
    })
}
