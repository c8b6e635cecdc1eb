//! What happens to envelopes once they are durable: they go over the bus, into the ring, and wake who waits for them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::{
    Bus, Error, Pattern, Result,
    bus::{Contracts, Ring, TopicDeclared},
    limits,
    store::{Observer, Page, Range, Row},
    topic::{Index, catalog},
};

/// Told of every commit of the store, as long as the ledger lives.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) bus: Bus,
    pub(super) ring: Ring,
    contracts: Arc<Contracts>,
    waiting: Mutex<Waiting>,
}

/// Who waits for durable topics: the index by which a commit wakes only those that match.
#[derive(Debug, Default)]
struct Waiting {
    /// Each holds the `pos` of the newest envelope that it may want.
    index: Index<watch::Sender<u64>>,
    next_key: u64,
    /// Everything up to here was looked at, and whoever wants something of it was woken.
    seen: u64,
    /// The newest envelope that was looked at; between `seen` and it stand envelopes of other processes.
    newest: u64,
}

/// Those that want something of some rows, each with the newest of it.
type Wanted = BTreeMap<u64, (watch::Sender<u64>, u64)>;

impl Waiting {
    /// Takes rows in, and gives those that they wake.
    fn look_at(&mut self, rows: &[Arc<Row>]) -> Wanted {
        self.newest = self.newest.max(rows.last().map_or(0, |row| row.pos));
        let mut wanted = Wanted::new();
        if self.index.is_empty() {
            return wanted;
        }
        let mut later = None;
        // From the newest back, so that what is found first of each is its newest.
        for row in rows.iter().rev() {
            if later.replace(&row.topic) != Some(&row.topic) {
                self.index.each(&row.topic, |key, due| {
                    wanted.entry(key).or_insert_with(|| (due.clone(), row.pos));
                });
            }
        }
        wanted
    }
}

/// Says that there is something up to `pos`, never less than before.
fn mark(due: &watch::Sender<u64>, pos: u64) {
    due.send_if_modified(|due| {
        let newer = pos > *due;
        *due = pos.max(*due);
        newer
    });
}

impl Live {
    pub(super) fn new(bus: Bus, contracts: Arc<Contracts>) -> Self {
        Self {
            bus,
            ring: Ring::new(),
            contracts,
            waiting: Mutex::default(),
        }
    }

    /// Begins after the last envelope that stands. Nobody waits yet, so nobody misses what came meanwhile.
    pub(super) fn begin(&self, last: u64) {
        let mut waiting = self.waiting();
        let begin = last.max(waiting.newest);
        (waiting.seen, waiting.newest) = (begin, begin);
    }

    /// Registers one that waits; `tail` may be read already.
    pub(super) fn wait_for(self: &Arc<Self>, pattern: &Pattern, tail: u64) -> Wait {
        let mut waiting = self.waiting();
        let key = waiting.next_key;
        waiting.next_key += 1;
        // What was looked at before it came is due: it was not woken for that.
        let (sender, due) = watch::channel(tail.max(waiting.newest));
        waiting.index.insert(pattern, key, sender);
        drop(waiting);
        Wait {
            live: self.clone(),
            pattern: pattern.clone(),
            key,
            due,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those that want something of these rows, each once, and no other. Without the lock: whatever waking does may
    /// end a subscription.
    fn wake(&self, rows: &[Arc<Row>]) {
        let wanted = self.waiting().look_at(rows);
        for (due, pos) in wanted.into_values() {
            mark(&due, pos);
        }
    }

    /// Everything from `from` to `upto` was looked at and is marked.
    fn advance(&self, from: u64, upto: u64) {
        let mut waiting = self.waiting();
        // Otherwise others committed in between: they are read when the store notices them.
        if from <= waiting.seen + 1 {
            waiting.seen = waiting.seen.max(upto);
        }
    }

    fn learn(&self, rows: &[Arc<Row>]) {
        for row in rows.iter().filter(|row| row.topic == catalog::topics()) {
            // A row that was just committed decodes; one that does not is found by `verify`.
            if let Ok(declared) = row.envelope().and_then(|envelope| envelope.decode::<TopicDeclared>()) {
                self.contracts.learn(row.pos, declared);
            }
        }
    }

    /// Reads what other processes wrote between what was looked at and `last`.
    fn catch_up(&self, seen: u64, last: u64, page: &dyn Fn(Range) -> Result<Page, Error>) -> Result<(), Error> {
        let mut next = Some(seen + 1);
        while let Some(from) = next.filter(|from| *from <= last) {
            let read = page(Range {
                from,
                to: last,
                ..Range::ALL
            })?;
            let rows: Vec<Arc<Row>> = read.rows.into_iter().map(Arc::new).collect();
            self.learn(&rows);
            self.ring.put(&rows);
            self.wake(&rows);
            self.advance(from, read.next.map_or(last, |next| next - 1));
            next = read.next;
        }
        Ok(())
    }
}

impl Observer for Live {
    fn committed(&self, rows: &[Arc<Row>]) {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return;
        };
        self.learn(rows);
        self.ring.put(rows);
        self.wake(rows);
        self.advance(first.pos, last.pos);
        self.bus.deliver_rows(rows);
    }

    fn noticed(&self, last: u64, page: &dyn Fn(Range) -> Result<Page, Error>) {
        let (seen, nobody) = {
            let waiting = self.waiting();
            (waiting.seen, waiting.index.is_empty())
        };
        if last <= seen {
            return;
        }
        // More than the ring holds is left to whoever waits.
        if !nobody && last - seen <= limits::RING_MAX as u64 {
            match self.catch_up(seen, last, page) {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, "what another process committed cannot be read; all that wait are woken");
                }
            }
        }
        let all: Vec<watch::Sender<u64>> = {
            let mut waiting = self.waiting();
            waiting.newest = waiting.newest.max(last);
            waiting.index.iter().cloned().collect()
        };
        for due in &all {
            mark(due, last);
        }
        self.advance(seen + 1, last);
    }
}

/// One that waits for envelopes of a pattern. Dropping it ends that.
#[derive(Debug)]
pub(super) struct Wait {
    live: Arc<Live>,
    pattern: Pattern,
    key: u64,
    due: watch::Receiver<u64>,
}

impl Wait {
    /// The newest envelope that it may want.
    pub(super) fn due(&mut self) -> u64 {
        *self.due.borrow_and_update()
    }

    /// Waits until there is a newer one.
    pub(super) async fn changed(&mut self) {
        // The sender stands in the index until this is dropped.
        let _ = self.due.changed().await;
    }

    /// Up to where nothing is wanted, if nothing is wanted from `next` on.
    pub(super) fn passed(&self, next: u64) -> Option<u64> {
        // Both under one guard: what was looked at has been marked.
        let waiting = self.live.waiting();
        (*self.due.borrow() < next).then_some(waiting.seen)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.live.waiting().index.remove(&self.pattern, self.key);
    }
}
