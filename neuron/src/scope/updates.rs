//! Up to where the requests of each name were taken: all bodies of one package take from one queue.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

/// How far the requests of one name were taken. Whoever takes the next one holds it.
pub(crate) type Queue = Arc<tokio::sync::Mutex<u64>>;

/// The queues of one package, by name.
#[derive(Default)]
pub(crate) struct Queues(Mutex<HashMap<Arc<str>, Queue>>);

impl Queues {
    /// As the log has it.
    pub(super) fn of(taken: HashMap<Arc<str>, u64>) -> Self {
        let queue = |(name, upto)| (name, Arc::new(tokio::sync::Mutex::new(upto)));
        Self(Mutex::new(taken.into_iter().map(queue).collect()))
    }

    /// The queue of one name.
    pub(crate) fn queue(&self, name: &Arc<str>) -> Queue {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(name.clone()).or_default().clone()
    }

    /// How far each was taken, once nobody takes any more.
    pub(super) async fn upto(&self) -> BTreeMap<String, u64> {
        let queues = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut upto = BTreeMap::new();
        for (name, queue) in queues {
            upto.insert(name.to_string(), *queue.lock().await);
        }
        upto
    }
}
