use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Contract, Envelope, Pattern, Topic};

/// The last values of topics that retain one.
#[derive(Debug, Default)]
pub(super) struct Retained(Mutex<BTreeMap<Topic, Kept>>);

#[derive(Debug)]
struct Kept {
    envelope: Arc<Envelope>,
    ttl: Option<Duration>,
    /// Since when nobody subscribes; the ttl runs only then.
    alone: Option<Instant>,
}

impl Kept {
    fn is_expired(&self, now: Instant) -> bool {
        self.ttl
            .zip(self.alone)
            .is_some_and(|(ttl, since)| now.saturating_duration_since(since) >= ttl)
    }
}

impl Retained {
    fn kept(&self) -> MutexGuard<'_, BTreeMap<Topic, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep(&self, contract: Contract, envelope: &Arc<Envelope>, is_heard: impl Fn() -> bool) {
        let Contract::Ephemeral {
            retain_last: true,
            ttl_ms,
        } = contract
        else {
            return;
        };
        let ttl = ttl_ms.map(|ttl| Duration::from_millis(u64::try_from(ttl.0).unwrap_or(0)));
        let alone = (ttl.is_some() && !is_heard()).then(Instant::now);
        self.kept().insert(
            envelope.topic.clone(),
            Kept {
                envelope: envelope.clone(),
                ttl,
                alone,
            },
        );
    }

    /// What a new subscriber gets first; from now on somebody listens to it.
    pub(super) fn matching(&self, pattern: &Pattern) -> Vec<Arc<Envelope>> {
        let mut kept = self.kept();
        if kept.values().any(|kept| kept.ttl.is_some()) {
            let now = Instant::now();
            kept.retain(|_, kept| !kept.is_expired(now));
        }
        let heard = kept.iter_mut().filter(|(topic, _)| pattern.matches(topic));
        heard
            .map(|(_, kept)| {
                kept.alone = None;
                kept.envelope.clone()
            })
            .collect()
    }

    /// Some subscriber left: the ttl of what nobody hears any more begins.
    pub(super) fn left(&self, is_heard: impl Fn(&Topic) -> bool) {
        for (topic, kept) in self
            .kept()
            .iter_mut()
            .filter(|(_, kept)| kept.ttl.is_some() && kept.alone.is_none())
        {
            kept.alone = (!is_heard(topic)).then(Instant::now);
        }
    }
}
