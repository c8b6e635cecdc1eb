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
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use tokio::{sync::oneshot, task::AbortHandle};

use crate::{Clock, Draft, Envelope, Error, ErrorKind, Pattern, Result, Topic, envelope::Prepared, store::Row};

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
    slots: RwLock<Vec<Arc<Slot>>>,
    retained: Retained,
    seqs: Mutex<HashMap<Topic, u64>>,
}

impl Bus {
    pub(crate) fn new(contracts: Arc<Contracts>, clock: Arc<dyn Clock>) -> Self {
        let (slots, seqs) = (RwLock::default(), Mutex::default());
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
        let envelope = self.seal(draft)?;
        self.deliver(&envelope, false);
        Ok(envelope)
    }

    /// Delivers and waits until every handler has handled it.
    ///
    /// # Errors
    /// As [`Bus::publish`].
    pub async fn emit(&self, draft: Draft) -> Result<Arc<Envelope>, Error> {
        let envelope = self.seal(draft)?;
        for handled in self.deliver(&envelope, true) {
            // A handler that was unsubscribed meanwhile has nothing left to handle.
            let _ = handled.await;
        }
        Ok(envelope)
    }

    /// Calls `handler` for every envelope that matches, one at a time, until the guard is dropped.
    pub fn subscribe<F, H>(&self, pattern: Pattern, handler: H) -> Unsubscribe
    where
        H: Fn(Arc<Envelope>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut listener = self.attach(pattern, true);
        let task = tokio::spawn(async move {
            loop {
                let item = listener.item().await;
                handler(item.envelope).await;
                if let Some(handled) = item.handled {
                    let _ = handled.send(());
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
    pub async fn next(&self, pattern: Pattern, filter: impl Fn(&Envelope) -> bool) -> Arc<Envelope> {
        let mut listener = self.listen(pattern);
        loop {
            let envelope = listener.item().await.envelope;
            if filter(&envelope) {
                return envelope;
            }
        }
    }

    /// Delivers what the ledger has committed.
    pub(crate) fn deliver_rows(&self, rows: &[Arc<Row>]) {
        for row in rows {
            let wanted = self.slots().iter().any(|slot| slot.pattern.matches(&row.topic));
            // A row that was just committed reads; one that does not is found by `verify`.
            if let Some(envelope) = wanted.then(|| row.envelope().ok()).flatten() {
                self.deliver(&Arc::new(envelope), false);
            }
        }
    }

    fn seal(&self, draft: Draft) -> Result<Arc<Envelope>, Error> {
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
        let envelope = Arc::new(Envelope::from_record(0, id, &record)?);
        self.0.retained.keep(contract, &envelope, || self.is_heard(&topic));
        Ok(envelope)
    }

    fn is_heard(&self, topic: &Topic) -> bool {
        self.slots().iter().any(|slot| slot.pattern.matches(topic))
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        let mut slots = self.0.slots.write().unwrap_or_else(PoisonError::into_inner);
        let before = slots.len();
        slots.retain(|slot| !slot.is_closed());
        if slots.len() != before {
            let open: Vec<Pattern> = slots.iter().map(|slot| slot.pattern.clone()).collect();
            self.0
                .retained
                .left(|topic| open.iter().any(|pattern| pattern.matches(topic)));
        }
        slots.clone()
    }

    fn deliver(&self, envelope: &Arc<Envelope>, wait: bool) -> Vec<oneshot::Receiver<()>> {
        let mut handled = Vec::new();
        for slot in self.slots().iter().filter(|slot| slot.pattern.matches(&envelope.topic)) {
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

    fn attach(&self, pattern: Pattern, is_handler: bool) -> Listener {
        let slot = Arc::new(Slot::new(pattern, is_handler));
        for envelope in self.0.retained.matching(&slot.pattern) {
            slot.push(Item {
                envelope,
                handled: None,
            });
        }
        self.0
            .slots
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(slot.clone());
        Listener::new(slot)
    }
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
