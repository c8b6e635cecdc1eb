//! The bus: a dumb wire. It delivers live, in this process, as well as it can; it stores nothing but the last value of a
//! topic that retains one. Durability belongs to the [`Ledger`](crate::Ledger), which publishes what it has committed.

mod contracts;
mod listener;
mod retain;
mod ring;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::oneshot, task::AbortHandle};

use crate::{
    Clock, Contract, Draft, Envelope, Error, ErrorKind, Pattern, Result, Topic, envelope::Prepared, store::Row,
};

pub use contracts::TopicDeclared;
pub(crate) use contracts::{Contracts, declarable, unknown};
use listener::{Item, Slot};
pub use listener::{Lagged, Listener};
use retain::Retained;
pub(crate) use ring::Ring;

/// The live wire of a process. Cheap to clone.
#[derive(Clone)]
pub struct Bus(Arc<Inner>);

struct Inner {
    contracts: Arc<Contracts>,
    clock: Arc<dyn Clock>,
    slots: Mutex<Vec<Arc<Slot>>>,
    retained: Retained,
    seqs: Mutex<HashMap<Topic, u64>>,
}

impl Bus {
    pub(crate) fn new(contracts: Arc<Contracts>, clock: Arc<dyn Clock>) -> Self {
        let (slots, seqs) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner {
            contracts,
            clock,
            slots,
            retained: Retained::default(),
            seqs,
        }))
    }

    /// Delivers to whoever listens now; nobody is waited for.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTopic`] if the topic was never declared; [`ErrorKind::Contract`] if it is durable: that goes
    /// through the ledger.
    pub fn publish(&self, draft: Draft) -> Result<Arc<Envelope>, Error> {
        let (envelope, _) = self.send(draft, false)?;
        Ok(envelope)
    }

    /// Delivers and waits until every handler has handled it.
    ///
    /// # Errors
    /// As [`Bus::publish`].
    pub async fn emit(&self, draft: Draft) -> Result<Arc<Envelope>, Error> {
        let (envelope, handled) = self.send(draft, true)?;
        for handled in handled {
            // A handler that was unsubscribed meanwhile has nothing left to handle.
            let _ = handled.await;
        }
        Ok(envelope)
    }

    /// Calls `handler` for every envelope that matches, one at a time, until the guard is dropped. What a handler is too
    /// slow for is dropped, and a warning says how much.
    pub fn subscribe<F, H>(&self, pattern: Pattern, handler: H) -> Unsubscribe
    where
        H: Fn(Arc<Envelope>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut listener = self.attach(pattern, true);
        let task = tokio::spawn(async move {
            loop {
                match listener.item().await {
                    Ok(item) => {
                        handler(item.envelope).await;
                        if let Some(handled) = item.handled {
                            let _ = handled.send(());
                        }
                    }
                    Err(lagged) => tracing::warn!(pattern = %listener.pattern(), %lagged, "a handler is too slow"),
                }
            }
        });
        Unsubscribe(task.abort_handle())
    }

    /// A bounded buffer of what is delivered from now on; retained values come first.
    pub fn listen(&self, pattern: Pattern) -> Listener {
        self.attach(pattern, false)
    }

    /// The next envelope that matches and passes `filter`, from now on. It closes no gap: that is
    /// [`Ledger::subscribe`](crate::Ledger::subscribe).
    ///
    /// # Errors
    /// [`Lagged`] if envelopes were lost that may have been the one.
    pub async fn next(&self, pattern: Pattern, filter: impl Fn(&Envelope) -> bool) -> Result<Arc<Envelope>, Lagged> {
        let mut listener = self.listen(pattern);
        loop {
            let envelope = listener.next().await?;
            if filter(&envelope) {
                return Ok(envelope);
            }
        }
    }

    /// Delivers what the ledger has committed.
    pub(crate) fn deliver_rows(&self, rows: &[Arc<Row>]) {
        for row in rows {
            let slots = self.slots();
            // A row that was just committed reads; one that does not is found by `verify`.
            if let Some(envelope) = heard(&slots, &row.topic).then(|| row.envelope().ok()).flatten() {
                deliver(&slots, &Arc::new(envelope), false);
            }
        }
    }

    fn seal(&self, draft: Draft) -> Result<(Contract, Arc<Envelope>), Error> {
        let topic = draft.topic.clone();
        let contract = self.0.contracts.get(&topic).ok_or_else(|| unknown(&topic))?;
        if contract.is_durable() {
            let why =
                format!("topic {topic} is durable: append to it through the ledger, which publishes after the commit");
            return Err(Error::new(ErrorKind::Contract, why));
        }
        if draft.cause.is_some() || draft.parent.is_some() {
            let why = format!(
                "draft `{}` for topic {topic}: what is not stored has no place in causality",
                draft.kind
            );
            return Err(Error::new(ErrorKind::Contract, why));
        }
        let now = self.0.clock.now();
        let seq = {
            let mut seqs = self.0.seqs.lock().unwrap_or_else(PoisonError::into_inner);
            let seq = seqs.entry(topic.clone()).or_default();
            *seq += 1;
            *seq
        };
        let (record, id) = Prepared::new(draft, None, None, now)?.seal(now, seq, None, None)?;
        Ok((contract, Arc::new(Envelope::from_record(0, id, &record)?)))
    }

    /// Keeps and delivers in one go, so that whoever attaches meanwhile gets it either kept or live.
    fn send(&self, draft: Draft, wait: bool) -> Result<(Arc<Envelope>, Vec<oneshot::Receiver<()>>), Error> {
        let (contract, envelope) = self.seal(draft)?;
        let slots = self.slots();
        self.0
            .retained
            .keep(contract, &envelope, || heard(&slots, &envelope.topic));
        let handled = deliver(&slots, &envelope, wait);
        Ok((envelope, handled))
    }

    /// Those who listen now; nobody attaches or leaves while the guard is held.
    fn slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        let mut slots = self.0.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let before = slots.len();
        slots.retain(|slot| !slot.is_closed());
        if slots.len() != before {
            let open: Vec<Pattern> = slots.iter().map(|slot| slot.pattern.clone()).collect();
            self.0
                .retained
                .left(|topic| open.iter().any(|pattern| pattern.matches(topic)));
        }
        slots
    }

    fn attach(&self, pattern: Pattern, is_handler: bool) -> Listener {
        let slot = Arc::new(Slot::new(pattern, is_handler));
        let mut slots = self.slots();
        for envelope in self.0.retained.matching(&slot.pattern) {
            slot.push(Item {
                envelope,
                handled: None,
            });
        }
        slots.push(slot.clone());
        Listener::new(slot)
    }
}

fn heard(slots: &[Arc<Slot>], topic: &Topic) -> bool {
    slots.iter().any(|slot| slot.pattern.matches(topic))
}

fn deliver(slots: &[Arc<Slot>], envelope: &Arc<Envelope>, wait: bool) -> Vec<oneshot::Receiver<()>> {
    let mut handled = Vec::new();
    for slot in slots.iter().filter(|slot| slot.pattern.matches(&envelope.topic)) {
        let (done, waits) = oneshot::channel();
        let waited = wait && slot.is_handler;
        slot.push(Item {
            envelope: envelope.clone(),
            handled: waited.then_some(done),
        });
        handled.extend(waited.then_some(waits));
    }
    handled
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus")
            .field("slots", &self.slots().len())
            .finish_non_exhaustive()
    }
}

/// Ends a subscription when dropped.
#[derive(Debug)]
#[must_use = "dropping it unsubscribes"]
pub struct Unsubscribe(AbortHandle);

impl Drop for Unsubscribe {
    fn drop(&mut self) {
        self.0.abort();
    }
}
