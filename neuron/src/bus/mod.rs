//! The bus: a dumb wire. It delivers live, in this process, as well as it can; it stores nothing but the last value of a
//! topic that retains one. Durability belongs to the [`Ledger`](crate::Ledger), which publishes what it has committed.

mod contracts;
mod listener;
mod retain;
mod ring;
mod routes;
mod state;

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use tokio::{sync::oneshot, task::AbortHandle};

use crate::{
    Clock, Contract, Draft, Envelope, Error, ErrorKind, Pattern, Result, Topic,
    envelope::Passing,
    store::Row,
    transport::{Inbox, Link, Lost, Transport},
};

pub use contracts::TopicDeclared;
pub(crate) use contracts::{Contracts, declarable};
use listener::{Desk, Item, Slot};
pub use listener::{Lagged, Listener};
pub(crate) use ring::Ring;
use state::{Delivery, Readers, State};

/// The live wire of a process. Cheap to clone.
///
/// Ephemeral topics also reach the other processes that have the store open, if the ledger has a
/// [`Transport`](crate::transport::Transport) for them. The `seq` of an ephemeral envelope counts those that its own
/// process has published to the topic.
#[derive(Clone)]
pub struct Bus(Arc<Inner>);

struct Inner {
    contracts: Arc<Contracts>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Joined when the first ephemeral envelope is published or listened for.
    transport: Option<Arc<dyn Transport>>,
    link: OnceLock<Option<Box<dyn Link>>>,
}

impl Bus {
    pub(crate) fn new(contracts: Arc<Contracts>, clock: Arc<dyn Clock>, transport: Option<Arc<dyn Transport>>) -> Self {
        Self(Arc::new(Inner {
            contracts,
            clock,
            state: Mutex::default(),
            transport,
            link: OnceLock::new(),
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
        if self.0.state().slots.is_empty() {
            return;
        }
        for row in rows {
            if !self.0.state().slots.selects(&row.topic) {
                continue;
            }
            // A row that was just committed reads; one that does not is found by `verify`.
            let Ok(envelope) = row.envelope() else { continue };
            let mut readers = Readers::default();
            let delivery = Delivery {
                envelope: &Arc::new(envelope),
                bytes: row.record.len(),
                is_awaited: false,
            };
            self.0.state().deliver(&delivery, &mut readers);
            readers.wake();
        }
    }

    /// Keeps and delivers in one go, so that whoever attaches meanwhile gets it either kept or live.
    fn send(&self, draft: Draft, is_awaited: bool) -> Result<(Arc<Envelope>, Vec<oneshot::Receiver<()>>), Error> {
        let passing = self.checked(draft)?;
        let link = self.link();
        let mut state = self.0.state();
        let (contract, seq) = loop {
            let version = self.0.contracts.version();
            if let Some(known) = state.routes.next(&passing.topic, version) {
                break known;
            }
            // Looking for it may read the store.
            drop(state);
            let contract = self.0.ephemeral(&passing.topic)?;
            state = self.0.state();
            state.routes.learn(&passing.topic, contract, version);
        };
        let bytes = passing.bytes;
        let envelope = Arc::new(passing.at(seq));
        let delivery = Delivery {
            envelope: &envelope,
            bytes,
            is_awaited,
        };
        let (handled, readers) = state.keep_and_deliver(contract, &delivery, true);
        if let Some(link) = link {
            link.send(&envelope, bytes);
        }
        drop(state);
        readers.wake();
        if let Some(link) = link {
            link.sent();
        }
        Ok((envelope, handled))
    }

    /// A draft that may be delivered, as far as that can be said without its topic's contract.
    fn checked(&self, draft: Draft) -> Result<Passing, Error> {
        let topic = &draft.topic;
        if draft.cause.is_some() || draft.parent.is_some() {
            self.0.ephemeral(topic)?;
            let kind = &draft.kind;
            let why = format!("draft `{kind}` for topic {topic}: what is not stored has no place in causality");
            return Err(Error::new(ErrorKind::Contract, why));
        }
        Passing::new(draft, self.0.clock.now())
    }

    /// The way to other processes, joined when it is first needed.
    fn link(&self) -> Option<&dyn Link> {
        let transport = self.0.transport.as_ref()?;
        let link = self.0.link.get_or_init(|| {
            let inbox: Weak<Inner> = Arc::downgrade(&self.0);
            let joined = transport.join(inbox);
            joined
                .inspect_err(|error| tracing::warn!(%error, "ephemeral topics stay in this process"))
                .ok()
        });
        link.as_deref()
    }

    fn attach(&self, pattern: Pattern, is_handler: bool) -> Listener {
        let contract = pattern.literal().and_then(|topic| self.0.contracts.get(&topic));
        if !contract.is_some_and(|contract| contract.is_durable()) {
            self.link();
        }
        let slot = Arc::new(Slot::new(is_handler));
        let mut state = self.0.state();
        for (envelope, bytes) in state.retained.matching(&pattern) {
            let item = Item {
                envelope,
                handled: None,
            };
            // Nobody reads yet.
            slot.push(item, bytes);
        }
        let key = state.next_key;
        state.next_key += 1;
        state.slots.insert(&pattern, key, slot.clone());
        drop(state);
        let desk: Weak<Inner> = Arc::downgrade(&self.0);
        Listener::new(slot, pattern, key, desk)
    }
}

impl Inner {
    /// Nobody attaches or leaves while the guard is held.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The contract of a topic that may go over the bus.
    fn ephemeral(&self, topic: &Topic) -> Result<Contract, Error> {
        let contract = self.contracts.find(topic)?;
        if contract.is_durable() {
            let why =
                format!("topic {topic} is durable: append to it through the ledger, which publishes after the commit");
            return Err(Error::new(ErrorKind::Contract, why));
        }
        Ok(contract)
    }

    fn take(&self, envelope: &Arc<Envelope>, is_retained: bool) -> Result<(), Error> {
        let contract = self.ephemeral(&envelope.topic)?;
        let mut state = self.state();
        if is_retained && !state.retained.is_news(envelope) {
            return Ok(());
        }
        let delivery = Delivery {
            envelope,
            bytes: Passing::most_bytes(envelope),
            is_awaited: false,
        };
        let (_, readers) = state.keep_and_deliver(contract, &delivery, false);
        drop(state);
        readers.wake();
        Ok(())
    }
}

impl Inbox for Inner {
    fn receive(&self, envelope: Arc<Envelope>) -> Result<(), Error> {
        self.take(&envelope, false)
    }

    fn receive_retained(&self, envelope: Arc<Envelope>) -> Result<(), Error> {
        self.take(&envelope, true)
    }

    fn lost(&self, lost: &Lost) {
        let mut readers = Readers::default();
        let state = self.state();
        for (topic, count) in lost.topics() {
            state.slots.each(topic, |_, slot| readers.add(slot.lose(count)));
        }
        if lost.others() > 0 {
            state
                .slots
                .iter()
                .for_each(|slot| readers.add(slot.lose(lost.others())));
        }
        drop(state);
        readers.wake();
    }

    fn welcome(&self, admit: &mut dyn FnMut(Vec<Arc<Envelope>>)) {
        let mut state = self.state();
        let own = state.retained.own();
        admit(own);
    }
}

impl Desk for Inner {
    fn leave(&self, pattern: &Pattern, key: u64) {
        let mut state = self.state();
        let State { slots, retained, .. } = &mut *state;
        slots.remove(pattern, key);
        retained.left(pattern, |topic| slots.selects(topic));
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus")
            .field("transport", &self.0.transport)
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
