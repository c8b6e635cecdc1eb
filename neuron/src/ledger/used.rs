use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::{Envelope, EnvelopeRef, Topic};

/// Which envelopes have answered waits of one scope: each answers one at most.
#[derive(Clone)]
pub struct Used(Arc<Inner>);

struct Inner {
    places: Mutex<HashSet<(Topic, u64)>>,
    /// Changes when an envelope that was held for a wait is free again: others have passed it over meanwhile.
    freed: watch::Sender<()>,
}

impl Used {
    /// Those that the log names already, by topic and seq.
    pub(crate) fn of(places: impl IntoIterator<Item = (Topic, u64)>) -> Self {
        Self(Arc::new(Inner {
            places: Mutex::new(places.into_iter().collect()),
            freed: watch::Sender::new(()),
        }))
    }

    /// Holds an envelope for one wait; `None` if it is another's.
    pub(super) fn hold(&self, envelope: &Envelope) -> Option<Hold> {
        let place = (envelope.topic.clone(), envelope.seq);
        self.places().insert(place.clone()).then(|| Hold {
            used: self.clone(),
            place: Some(place),
        })
    }

    /// The answer that names an envelope was given to nobody: it is free for another wait.
    pub(crate) fn free(&self, came: &EnvelopeRef) {
        self.places().remove(&(came.topic.clone(), came.seq));
        self.0.freed.send_replace(());
    }

    pub(super) fn freed(&self) -> watch::Receiver<()> {
        self.0.freed.subscribe()
    }

    fn places(&self) -> MutexGuard<'_, HashSet<(Topic, u64)>> {
        self.0.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Used({} envelopes)", self.places().len())
    }
}

/// An envelope that is held for one wait. Dropped before the answer stands, it is free for another.
#[derive(Debug)]
pub(super) struct Hold {
    used: Used,
    place: Option<(Topic, u64)>,
}

impl Hold {
    /// The answer stands.
    pub(super) fn keep(mut self) {
        self.place = None;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.used.places().remove(&place);
            self.used.0.freed.send_replace(());
        }
    }
}
