use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use neuron::{
    Envelope, Error, Ledger, Pattern, Result, RunId, TokenId,
    ledger::From,
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
                let order = tokio::select! {
                    _ = &mut gone => return,
                    order = orders.next() => order,
                };
                match order {
                    Ok(envelope) => {
                        let Some(board) = weak.upgrade() else { return };
                        board.hand_on(&envelope);
                    }
                    Err(error) => {
                        tracing::error!(%error, "orders can no longer be read from the log");
                        return;
                    }
                }
            }
        });
        Ok(board)
    }

    pub(crate) fn connect_run(&self, run: &RunId, signals: &Signals) {
        self.lines().runs.insert(run.clone(), signals.clone());
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

    fn hand_on(&self, envelope: &Envelope) {
        let Some((target, order)) = order_of(envelope) else {
            return;
        };
        let lines = self.lines();
        let (line, token) = match target {
            Target::Run(run) => (lines.runs.get(&run), None),
            Target::Token(token) => (lines.tokens.get(&token), Some(token)),
        };
        if let Some(line) = line {
            // A run that has just ended obeys nothing any more.
            let _ = line.send(Signal::Ordered { token, order });
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom an envelope orders what; `None` for anything else on a control topic, such as a ruling.
fn order_of(envelope: &Envelope) -> Option<(Target, Order)> {
    let order = match envelope.body.kind.as_str() {
        ControlPaused::TYPE => Order::Pause,
        ControlResumed::TYPE => Order::Resume,
        ControlCancelled::TYPE => Order::Cancel {
            because: envelope
                .decode::<ControlCancelled>()
                .ok()
                .and_then(|order| order.because),
        },
        _ => return None,
    };
    let segments: Vec<&str> = envelope.topic.segments().collect();
    let target = match segments[..] {
        ["orchestration", run, "control"] => Target::Run(RunId::new(run).ok()?),
        ["agent", token, "control"] => Target::Token(TokenId::new(token).ok()?),
        _ => return None,
    };
    Some((target, order))
}
