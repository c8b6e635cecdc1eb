use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use crate::{Contract, Envelope, Pattern, Topic, limits};

/// The last values of topics that retain one.
#[derive(Debug, Default)]
pub(super) struct Retained {
    kept: HashMap<Topic, Kept>,
    /// Their topics, the one that was published to longest ago first.
    order: BTreeMap<u64, Topic>,
    next_place: u64,
    bytes: usize,
    /// No value expires earlier.
    due: Option<Instant>,
    has_warned: bool,
}

#[derive(Debug)]
struct Kept {
    envelope: Arc<Envelope>,
    bytes: usize,
    place: u64,
    /// Published here, not by another process.
    is_own: bool,
    ttl: Option<Duration>,
    /// Since when nobody subscribes; the ttl runs only then.
    alone: Option<Instant>,
}

impl Kept {
    fn expires(&self) -> Option<Instant> {
        self.ttl.zip(self.alone).map(|(ttl, since)| since + ttl)
    }
}

/// A value that may be kept.
pub(super) struct Value<'a> {
    pub(super) envelope: &'a Arc<Envelope>,
    pub(super) bytes: usize,
    pub(super) is_own: bool,
}

impl Retained {
    /// Keeps the value if its contract says so, in the place of an older one.
    pub(super) fn keep(&mut self, contract: Contract, value: &Value<'_>, is_heard: impl FnOnce() -> bool) {
        let Contract::Ephemeral {
            retain_last: true,
            ttl_ms,
        } = contract
        else {
            return;
        };
        self.prune();
        let ttl = ttl_ms.map(|ttl| Duration::from_millis(u64::try_from(ttl.0).unwrap_or(0)));
        let kept = Kept {
            envelope: value.envelope.clone(),
            bytes: value.bytes,
            place: self.next_place,
            is_own: value.is_own,
            ttl,
            alone: (ttl.is_some() && !is_heard()).then(Instant::now),
        };
        self.expect(kept.expires());
        self.next_place += 1;
        self.bytes += kept.bytes;
        let topic = &value.envelope.topic;
        self.order.insert(kept.place, topic.clone());
        if let Some(before) = self.kept.insert(topic.clone(), kept) {
            self.bytes -= before.bytes;
            self.order.remove(&before.place);
        }
        self.bound();
    }

    /// Whether this one is later than what is known of its topic.
    pub(super) fn is_news(&self, envelope: &Envelope) -> bool {
        self.kept
            .get(&envelope.topic)
            .is_none_or(|kept| kept.envelope.at < envelope.at)
    }

    /// What a new subscriber gets first; from now on somebody listens to it.
    pub(super) fn matching(&mut self, pattern: &Pattern) -> Vec<(Arc<Envelope>, usize)> {
        self.prune();
        let heard = self.kept.iter_mut().filter(|(topic, _)| pattern.matches(topic));
        let mut heard: Vec<&mut Kept> = heard.map(|(_, kept)| kept).collect();
        heard.sort_unstable_by_key(|kept| kept.place);
        let values = heard.into_iter().map(|kept| {
            kept.alone = None;
            (kept.envelope.clone(), kept.bytes)
        });
        values.collect()
    }

    /// What was published here, oldest first.
    pub(super) fn own(&mut self) -> Vec<Arc<Envelope>> {
        self.prune();
        let values = self.order.values().filter_map(|topic| self.kept.get(topic));
        values
            .filter(|kept| kept.is_own)
            .map(|kept| kept.envelope.clone())
            .collect()
    }

    /// Some subscriber of `pattern` left: the ttl of what nobody hears any more begins.
    pub(super) fn left(&mut self, pattern: &Pattern, is_heard: impl Fn(&Topic) -> bool) {
        let now = Instant::now();
        let mut due = None;
        for (topic, kept) in self
            .kept
            .iter_mut()
            .filter(|(topic, kept)| kept.ttl.is_some() && kept.alone.is_none() && pattern.matches(topic))
        {
            kept.alone = (!is_heard(topic)).then_some(now);
            due = [due, kept.expires()].into_iter().flatten().min();
        }
        self.expect(due);
        self.prune();
    }

    fn expect(&mut self, expires: Option<Instant>) {
        self.due = [self.due, expires].into_iter().flatten().min();
    }

    /// Lets go of what has expired.
    fn prune(&mut self) {
        let now = Instant::now();
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let gone: Vec<Topic> = {
            let expired = self
                .kept
                .iter()
                .filter(|(_, kept)| kept.expires().is_some_and(|at| at <= now));
            expired.map(|(topic, _)| topic.clone()).collect()
        };
        for topic in &gone {
            self.forget(topic);
        }
        self.due = self.kept.values().filter_map(Kept::expires).min();
    }

    fn forget(&mut self, topic: &Topic) {
        if let Some(kept) = self.kept.remove(topic) {
            self.bytes -= kept.bytes;
            self.order.remove(&kept.place);
        }
    }

    fn bound(&mut self) {
        while self.kept.len() > limits::RETAINED_MAX || (self.bytes > limits::RETAINED_BYTES_MAX && self.kept.len() > 1)
        {
            let Some((_, topic)) = self.order.pop_first() else {
                return;
            };
            self.forget(&topic);
            if std::mem::replace(&mut self.has_warned, true) {
                tracing::debug!(%topic, "its retained value is let go of");
            } else {
                let (values, bytes) = (limits::RETAINED_MAX, limits::RETAINED_BYTES_MAX);
                tracing::warn!(%topic, "more than {values} values or {bytes} bytes are retained: the oldest are let go of");
            }
        }
    }
}
