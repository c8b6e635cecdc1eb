//! What a bus holds under its one lock: who listens, what is retained, which `seq` is next.

use std::{sync::Arc, task::Waker};

use tokio::sync::oneshot;

use super::{
    listener::{Item, Slot},
    retain::{Retained, Value},
    routes::Routes,
};
use crate::{Contract, Envelope, topic::Index};

#[derive(Default)]
pub(super) struct State {
    pub(super) slots: Index<Arc<Slot>>,
    pub(super) next_key: u64,
    pub(super) routes: Routes,
    pub(super) retained: Retained,
}

/// Readers to be woken once no lock is held: what waking does may end a subscription.
#[derive(Default)]
pub(super) struct Readers {
    /// Mostly there is one.
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Readers {
    pub(super) fn add(&mut self, reader: Option<Waker>) {
        match self.first {
            None => self.first = reader,
            Some(_) => self.more.extend(reader),
        }
    }

    pub(super) fn wake(self) {
        self.first.into_iter().chain(self.more).for_each(Waker::wake);
    }
}

/// An envelope on its way to those who listen.
pub(super) struct Delivery<'a> {
    pub(super) envelope: &'a Arc<Envelope>,
    pub(super) bytes: usize,
    /// Somebody waits until it was handled.
    pub(super) is_awaited: bool,
}

impl State {
    pub(super) fn keep_and_deliver(
        &mut self,
        contract: Contract,
        delivery: &Delivery<'_>,
        is_own: bool,
    ) -> (Vec<oneshot::Receiver<()>>, Readers) {
        let Self { slots, retained, .. } = self;
        let value = Value {
            envelope: delivery.envelope,
            bytes: delivery.bytes,
            is_own,
        };
        retained.keep(contract, &value, || slots.selects(&delivery.envelope.topic));
        let mut readers = Readers::default();
        (self.deliver(delivery, &mut readers), readers)
    }

    pub(super) fn deliver(&self, delivery: &Delivery<'_>, readers: &mut Readers) -> Vec<oneshot::Receiver<()>> {
        let mut handled = Vec::new();
        self.slots.each(&delivery.envelope.topic, |_, slot| {
            let waited = (delivery.is_awaited && slot.is_handler).then(oneshot::channel);
            let (done, waits) = waited.unzip();
            handled.extend(waits);
            let item = Item {
                envelope: delivery.envelope.clone(),
                handled: done,
            };
            readers.add(slot.push(item, delivery.bytes));
        });
        handled
    }
}
