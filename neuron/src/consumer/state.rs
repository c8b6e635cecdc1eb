//! What the log says of a consumer: a pure fold over its topic. What its process has in hand beyond that is the desk's.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::event::Event;
use crate::{
    ConsumerId, Envelope, Error, Fold, Millis, Result, fold::Codec, store::Select, topic::catalog,
    vocabulary::consumer::ConsumerConfigured,
};

/// How a consumer stands on the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// How it is set up; `None` if there is no such consumer, or no longer.
    pub config: Option<ConsumerConfigured>,
    /// Every message up to and with this `pos` is settled, but those of `pending`.
    pub upto: u64,
    /// Settled messages beyond `upto`.
    pub settled: BTreeSet<u64>,
    /// Messages that were handed out and are not settled, as far as that is recorded.
    pub pending: BTreeMap<u64, Pending>,
    /// Messages laid aside until somebody redrives them.
    pub parked: BTreeSet<u64>,
}

/// A message that was handed out and is not settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// Deliveries that are recorded.
    pub attempts: u32,
    /// What it waits for.
    pub waits: Waits,
}

/// What a message that is not settled waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "for", rename_all_fields = "camelCase")]
pub enum Waits {
    /// The end of the delivery that is recorded last.
    End,
    /// Its time, to be tried again.
    Time {
        /// How long it waits from the end of the last delivery on, in milliseconds.
        after_ms: u64,
        /// When that has passed, by the clock of the wall.
        due: Millis,
        /// Why the last delivery ended.
        because: String,
    },
    /// Its turn: it was parked, and is redriven.
    Turn,
}

impl State {
    /// Whether nothing is left to do about a message that the consumer is given.
    pub fn is_settled(&self, pos: u64) -> bool {
        !self.pending.contains_key(&pos) && (pos <= self.upto || self.settled.contains(&pos))
    }

    /// Takes in one more word. What contradicts an earlier one changes nothing: a settled message stays settled.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Configured(config) => {
                if self.config.is_none() {
                    *self = Self {
                        upto: config.after,
                        ..Self::default()
                    };
                }
                self.config = Some(config.clone());
            }
            Event::Advanced(it) => {
                if it.upto > self.upto {
                    self.upto = it.upto;
                    self.settled = self.settled.split_off(&(it.upto + 1));
                }
            }
            Event::Delivered(it) => self.wait(it.pos, it.attempt, Waits::End),
            Event::Retried(it) => {
                let waits = Waits::Time {
                    after_ms: it.after_ms,
                    due: it.due,
                    because: it.because.clone(),
                };
                self.wait(it.pos, it.attempt, waits);
            }
            Event::Acknowledged(it) => self.settle(it.pos),
            Event::Parked(it) => {
                if !self.is_settled(it.pos) {
                    self.settle(it.pos);
                    self.parked.insert(it.pos);
                }
            }
            Event::Redriven(it) => {
                if self.parked.remove(&it.pos) {
                    self.settled.remove(&it.pos);
                    let pending = Pending {
                        attempts: 0,
                        waits: Waits::Turn,
                    };
                    self.pending.insert(it.pos, pending);
                }
            }
            Event::Reset(it) => {
                self.upto = it.after;
                self.settled.clear();
                self.pending.clear();
                self.parked.retain(|pos| *pos <= it.after);
            }
            Event::Deleted(_) => *self = Self::default(),
        }
    }

    fn wait(&mut self, pos: u64, attempts: u32, waits: Waits) {
        if !self.is_settled(pos) {
            self.pending.insert(pos, Pending { attempts, waits });
        }
    }

    fn settle(&mut self, pos: u64) {
        self.pending.remove(&pos);
        if pos > self.upto {
            self.settled.insert(pos);
        }
    }
}

/// Folds the topic of one consumer into its [`State`].
///
/// ```
/// # use neuron::{ConsumerId, Ledger, consumer::Progress};
/// # fn show(ledger: &Ledger) -> Result<(), neuron::Error> {
/// let mailer = ConsumerId::new("mailer")?;
/// let state = ledger.fold(&Progress::new(mailer), None)?.state;
/// println!("{} messages are parked", state.parked.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Progress(ConsumerId);

impl Progress {
    /// The fold of the consumer of this name.
    pub fn new(name: ConsumerId) -> Self {
        Self(name)
    }
}

impl Fold for Progress {
    type State = State;

    fn init(&self) -> State {
        State::default()
    }

    fn apply(&self, state: &mut State, envelope: &Envelope) -> Result<(), Error> {
        if let Some(event) = Event::read(envelope)? {
            state.apply(&event);
        }
        Ok(())
    }

    fn select(&self) -> Select {
        Select::Topic(catalog::consumer(&self.0))
    }

    fn snapshot(&self) -> Option<Codec<State>> {
        Some(Codec::new("consumer", 1).of(&self.0))
    }
}
