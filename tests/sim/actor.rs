//! Somebody who works on the store, and remembers only what a process remembers.

use std::sync::Arc;

use neuron::{Digest, Pattern, Receipt, Topic, consumer::Consumer, ledger::Subscription, ownership::Ownership};

/// The name that all of them want to own.
pub(crate) const OWNED: &str = "run:sim";

/// The topics they write to.
pub(crate) const TOPICS: [&str; 3] = ["sim.a", "sim.b", "sim.c"];

/// The topic of the registers that they compare and set, and its keys.
pub(crate) const REGISTERS: &str = "sim.registers";
pub(crate) const KEYS: [&str; 2] = ["red", "blue"];

/// The consumer that one of them at a time has open, what it consumes, and where its effects stand: one for each message.
pub(crate) const CONSUMER: &str = "sim";
pub(crate) const CONSUMED: &str = TOPICS[0];
pub(crate) const EFFECTS: &str = "sim.effects";

/// A batch that was named, to be sent again.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) key: String,
    pub(crate) word: String,
    pub(crate) first: Receipt,
}

/// What was read of a register: its value, and where it stood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) key: &'static str,
    pub(crate) value: u64,
    pub(crate) seq: Option<u64>,
}

/// One of them. What dies with its process is an option.
pub(crate) struct Actor {
    /// Which of the two processes it lives in.
    pub(crate) process: usize,
    pub(crate) pattern: Pattern,
    pub(crate) subscription: Option<Subscription>,
    /// What its subscriptions have delivered, over all its lives.
    pub(crate) delivered: Vec<(u64, Topic, Digest)>,
    pub(crate) owner: Option<Ownership>,
    pub(crate) consumer: Option<Consumer>,
    /// The epoch it believes to own under. It outlives its process, as a stale owner does.
    pub(crate) epoch: u64,
    pub(crate) read: Option<Read>,
    pub(crate) named: Vec<Named>,
}

impl Actor {
    pub(crate) fn new(process: usize, pattern: &str) -> Self {
        Self {
            process,
            pattern: Pattern::new(pattern).unwrap(),
            subscription: None,
            delivered: Vec::new(),
            owner: None,
            consumer: None,
            epoch: 0,
            read: None,
            named: Vec::new(),
        }
    }

    /// The last `pos` that was delivered to it.
    pub(crate) fn after(&self) -> u64 {
        self.delivered.last().map_or(0, |(pos, ..)| *pos)
    }

    /// Its process is gone.
    pub(crate) fn dies(&mut self) {
        self.subscription = None;
        self.owner = None;
        self.consumer = None;
        self.read = None;
    }

    /// Everything of its pattern was delivered, in order and once, as far as it goes.
    pub(crate) fn assert_in_order(&self, log: &[(Topic, Digest)], whole: bool) {
        let wanted = (1..).zip(log).filter(|(_, (topic, _))| self.pattern.matches(topic));
        let wanted: Vec<(u64, Topic, Digest)> = wanted.map(|(pos, (topic, id))| (pos, topic.clone(), *id)).collect();
        let count = self.delivered.len();
        assert!(
            wanted.starts_with(&self.delivered),
            "{}: {count} were delivered, not the first {count} of {}",
            self.pattern,
            wanted.len()
        );
        assert!(
            !whole || count == wanted.len(),
            "{}: {count} of {}",
            self.pattern,
            wanted.len()
        );
    }
}

/// What the observers of one process have shown.
pub(crate) type Shown = Arc<std::sync::Mutex<Vec<(u64, Digest)>>>;
