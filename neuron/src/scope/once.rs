//! The `once` steps that began and have no answer: a body that begins again leaves none behind.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::known::Open;

/// Which calls of `once` steps nobody knows the end of yet.
#[derive(Default)]
pub(crate) struct Unsettled {
    open: Mutex<BTreeMap<Arc<str>, Open>>,
    changed: Notify,
}

impl Unsettled {
    /// As the log has it.
    pub(super) fn of(open: impl Iterator<Item = (Arc<str>, Open)>) -> Self {
        Self {
            open: Mutex::new(open.collect()),
            changed: Notify::new(),
        }
    }

    pub(crate) fn began(&self, key: &Arc<str>, name: &str) {
        let open = Open {
            name: name.into(),
            let_go: false,
        };
        self.open().insert(key.clone(), open);
    }

    pub(crate) fn settled(&self, key: &str) {
        if self.open().remove(key).is_some() {
            self.changed.notify_waiters();
        }
    }

    pub(crate) fn let_go(&self, key: &str) {
        if let Some(open) = self.open().get_mut(key) {
            open.let_go = true;
            self.changed.notify_waiters();
        }
    }

    /// Waits until there is none. `Err` names one whose body let go of it: nobody will settle that.
    pub(crate) async fn none(&self) -> Result<(), (Arc<str>, String)> {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            {
                let open = self.open();
                if open.is_empty() {
                    return Ok(());
                }
                if let Some((key, lost)) = open.iter().find(|(_, open)| open.let_go) {
                    return Err((key.clone(), lost.name.clone()));
                }
            }
            changed.await;
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
