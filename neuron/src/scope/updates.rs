//! Up to where the requests of each name were taken: all bodies of one package take from one queue.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Mutex as Turn, MutexGuard as Turned, Notify};

/// How far the requests of one name were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    upto: u64,
    /// Those that were taken and that no body was told of.
    returned: BTreeSet<u64>,
}

impl Reach {
    /// As the log says that a body began again with.
    pub(super) fn new(upto: u64, returned: impl IntoIterator<Item = u64>) -> Self {
        Self {
            upto,
            returned: returned.into_iter().collect(),
        }
    }

    /// A request was taken, or refused.
    pub(crate) fn take(&mut self, asked: u64) {
        if !self.returned.remove(&asked) {
            self.upto = self.upto.max(asked);
        }
    }

    /// A request that was taken is there for another.
    pub(super) fn give_back(&mut self, asked: u64) {
        self.returned.insert(asked);
    }

    /// The next request is the first after this `pos`.
    pub(crate) fn after(&self) -> u64 {
        self.returned.first().map_or(self.upto, |first| first - 1)
    }
}

/// The requests of one name.
#[derive(Default)]
pub(crate) struct Queue {
    turn: Turn<()>,
    reach: Mutex<Reach>,
    returned: Notify,
}

impl Queue {
    /// Waits until nobody else takes.
    pub(crate) async fn turn(&self) -> Turned<'_, ()> {
        self.turn.lock().await
    }

    /// Ends when a request is given back.
    pub(crate) async fn returned(&self) {
        self.returned.notified().await;
    }

    /// How far they were taken.
    pub(crate) fn reach(&self) -> MutexGuard<'_, Reach> {
        self.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn give_back(&self, asked: u64) {
        self.reach().give_back(asked);
        // Kept for whoever has its turn and is not waiting yet.
        self.returned.notify_one();
    }
}

/// The queues of one package, by name.
#[derive(Default)]
pub(crate) struct Queues(Mutex<HashMap<Arc<str>, Arc<Queue>>>);

/// What the next body has to know: by name, up to where requests were taken, and which of these were given back.
pub(super) type Handed = (BTreeMap<String, u64>, BTreeMap<String, Vec<u64>>);

impl Queues {
    /// As the log has it.
    pub(super) fn of(taken: HashMap<Arc<str>, Reach>) -> Self {
        let queue = |(name, reach)| {
            let queue = Queue {
                reach: Mutex::new(reach),
                ..Queue::default()
            };
            (name, Arc::new(queue))
        };
        Self(Mutex::new(taken.into_iter().map(queue).collect()))
    }

    /// The queue of one name.
    pub(crate) fn queue(&self, name: &Arc<str>) -> Arc<Queue> {
        self.queues().entry(name.clone()).or_default().clone()
    }

    /// How far each was taken, once nobody takes any more.
    pub(super) fn handed(&self) -> Handed {
        let (mut upto, mut returned) = Handed::default();
        for (name, queue) in &*self.queues() {
            let reach = queue.reach();
            upto.insert(name.to_string(), reach.upto);
            if !reach.returned.is_empty() {
                returned.insert(name.to_string(), reach.returned.iter().copied().collect());
            }
        }
        (upto, returned)
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Queue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
