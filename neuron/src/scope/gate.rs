use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    sync::Arc,
    task::Waker,
};

use futures::future::BoxFuture;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    identity::Aliases,
    journal::Committed,
    known::{Known, Past},
    recorded::{Answer, Taken},
    runtime::Runtime,
};
use crate::{Error, Json, Millis, Result};

/// Begins a call's work; the receiver ends when the body lets go of the call.
pub type Start = Box<dyn FnOnce(oneshot::Receiver<()>) -> BoxFuture<'static, ()> + Send>;

/// Everything about a scope that changes. It knows what was asked for and what is answered; it runs nothing.
pub(super) struct Gate {
    pub(super) past: Past,
    pub(super) now: Millis,
    /// How often each content was called.
    counts: HashMap<String, u64>,
    aliases: Aliases,
    /// Calls that were made, numbered from 1 in the order of the program.
    claimed: HashMap<Arc<str>, u64>,
    /// Recorded answers that were not asked for, by `pos`.
    unasked: BTreeMap<u64, Arc<str>>,
    /// The last `pos` of an answer that stood when the scope was opened.
    horizon: u64,
    /// The `pos` of the last answer that was delivered.
    pub(super) told: u64,
    /// How many of these were not delivered.
    undelivered: usize,
    /// Calls that were polled and whose answer was not delivered.
    waiting: HashMap<Arc<str>, Vec<Waker>>,
    /// Of these, the ones with an answer, by `pos`.
    ready: BTreeMap<u64, Arc<str>>,
    /// Calls whose answer was delivered, and whether the body has taken it.
    delivered: HashMap<Arc<str>, bool>,
    starts: VecDeque<(Arc<str>, Start)>,
    running: HashMap<Arc<str>, Running>,
    /// Work that was let go of and has not ended.
    ending: Vec<JoinHandle<()>>,
    /// Calls that ran while recorded answers were left, and how many calls had been made by then.
    fresh: Vec<(Arc<str>, u64)>,
    /// Whether the body has come to where its log ends: what it does from here on has not been done before.
    pub(super) live: bool,
    /// Whether an await that is not on the log was reported.
    unrecorded: bool,
}

struct Running {
    /// Dropped when the body lets go.
    _hold: oneshot::Sender<()>,
    /// `None` for work that the driver of the body polls itself.
    task: Option<JoinHandle<()>>,
}

/// An answer on its way to the body.
pub(super) struct Delivery {
    pub(super) call: Place,
    pub(super) wakers: Vec<Waker>,
    /// Calls that ran before this answer was used, though the log held it already.
    pub(super) reordered: Vec<Place>,
}

/// A call and where its answer stands; 0 if it has none.
pub(super) struct Place {
    pub(super) key: Arc<str>,
    pub(super) name: String,
    pub(super) pos: u64,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gate = f.debug_struct("Gate");
        gate.field("waiting", &self.waiting.len())
            .field("running", &self.running.len());
        gate.finish_non_exhaustive()
    }
}

impl Gate {
    pub(super) fn new(scope: &str, past: Past, runtime: &Runtime, now: Millis) -> Self {
        let answers = past
            .iter()
            .filter_map(|(key, call)| Some((call.answered()?.pos, key.clone())));
        let unasked: BTreeMap<_, _> = answers.collect();
        let aliases = Aliases::new(scope, &past, runtime);
        let mut past = past;
        past.forget_args();
        Self {
            now,
            counts: HashMap::new(),
            aliases,
            past,
            claimed: HashMap::new(),
            told: 0,
            undelivered: unasked.len(),
            horizon: unasked.last_key_value().map_or(0, |(pos, _)| *pos),
            live: unasked.is_empty(),
            unasked,
            waiting: HashMap::new(),
            ready: BTreeMap::new(),
            delivered: HashMap::new(),
            starts: VecDeque::new(),
            running: HashMap::new(),
            ending: Vec::new(),
            fresh: Vec::new(),
            unrecorded: false,
        }
    }

    /// The key of a call that is made now. Its occurrence is taken in the order of the program, not of polling.
    /// `former` is what its content was under the names that it had before.
    pub(super) fn claim(&mut self, content: &str, former: &[String]) -> Arc<str> {
        let count = self.counts.entry(content.to_owned()).or_insert(0);
        *count += 1;
        let known = self.aliases.find(content, former, *count, &self.past);
        let key = known.unwrap_or_else(|| format!("{content}#{count}").into());
        if let Some(place) = self.past.get(&key).and_then(Known::answered) {
            self.unasked.remove(&place.pos);
        }
        let number = self.claimed.len() as u64 + 1;
        self.claimed.insert(key.clone(), number);
        key
    }

    /// The oldest `once` call after `floor` that is on the log under one of these names and was not made.
    pub(super) fn unclaimed_once(&self, is_named: impl Fn(&str) -> bool, floor: u64) -> Option<Arc<str>> {
        let since = |call: &Known| call.answered().map_or(0, |place| place.pos).max(call.born);
        let unclaimed = |key: &Arc<str>, call: &Known| {
            call.once && is_named(&call.name) && since(call) > floor && !self.claimed.contains_key(key)
        };
        let found = self.past.iter().filter(|(key, call)| unclaimed(key, call));
        found.min_by_key(|(_, call)| since(call)).map(|(key, _)| key.clone())
    }

    /// Notes that a call is waited for; it starts at the next idle moment unless it has an answer.
    pub(super) fn ask(&mut self, key: &Arc<str>, start: &mut Option<Start>, waker: &Waker) {
        let wakers = self.waiting.entry(key.clone()).or_default();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
        let answered = self.past.get(key).and_then(Known::answered);
        match (answered, start.take()) {
            (Some(place), _) => drop(self.ready.insert(place.pos, key.clone())),
            (None, Some(start)) => self.starts.push_back((key.clone(), start)),
            (None, None) => {}
        }
    }

    /// Makes a call start at the next idle moment, waited for or not.
    pub(super) fn enqueue(&mut self, key: &Arc<str>, start: Start) {
        if self.past.get(key).and_then(Known::answered).is_none() {
            self.starts.push_back((key.clone(), start));
        }
    }

    /// The answer of a call, if it was delivered. It is kept only where it may be asked for again.
    pub(super) fn take(&mut self, key: &Arc<str>, keep: bool) -> Option<Result<Taken, Error>> {
        *self.delivered.get_mut(key)? = true;
        let call = self.past.call(key);
        call.untold = false;
        let answer = call.answer.as_mut()?;
        let typed = answer.typed.take();
        let outcome = if keep {
            answer.outcome.clone()
        } else {
            std::mem::replace(&mut answer.outcome, Ok(Json::null()))
        };
        let schema = answer.schema;
        Some(outcome.map(|json| Taken { json, typed, schema }))
    }

    /// The body let go of a call: it neither starts nor goes on, and what it gives wakes nobody. Whether it was told no
    /// answer, and nothing is under way that is about to end.
    pub(super) fn forget(&mut self, key: &str) -> bool {
        self.waiting.remove(key);
        if let Some(place) = self.past.get(key).and_then(Known::answered) {
            self.ready.remove(&place.pos);
        }
        self.starts.retain(|(started, _)| **started != *key);
        if let Some(running) = self.running.remove(key) {
            self.ending.retain(|task| !task.is_finished());
            self.ending.extend(running.task);
            return false;
        }
        self.is_untold(key)
    }

    /// Whether the body was told no answer of a call.
    fn is_untold(&self, key: &str) -> bool {
        self.delivered.get(key) != Some(&true)
    }

    /// Whether the body has let go of a call that had begun, without having been told its answer.
    pub(super) fn is_let_go(&self, key: &str) -> bool {
        !self.waiting.contains_key(key) && !self.delivered.contains_key(key)
    }

    /// Takes the next answer in the order of the log, one: what the body does with it may change what is next.
    pub(super) fn deliver(&mut self) -> Option<Delivery> {
        while let Some((pos, key)) = self.ready.pop_first() {
            let place = self.past.get(&key).and_then(Known::answered);
            let (Some(wakers), Some(place)) = (self.waiting.remove(&key), place) else {
                continue;
            };
            self.now = self.now.max(place.at);
            self.delivered.insert(key.clone(), false);
            self.told = self.told.max(pos);
            self.live |= pos >= self.horizon;
            let reordered = if pos <= self.horizon {
                self.reordered(&key)
            } else {
                Vec::new()
            };
            let call = self.place(key, pos);
            return Some(Delivery {
                call,
                wakers,
                reordered,
            });
        }
        None
    }

    /// The calls that ran before this recorded one was even made.
    fn reordered(&mut self, used: &str) -> Vec<Place> {
        self.undelivered = self.undelivered.saturating_sub(1);
        let made = self.claimed.get(used).copied().unwrap_or(0);
        let (before, others) = std::mem::take(&mut self.fresh)
            .into_iter()
            .partition(|(_, by_then)| *by_then < made);
        self.fresh = if self.undelivered == 0 { Vec::new() } else { others };
        let before: Vec<(Arc<str>, u64)> = before;
        before.into_iter().map(|(key, _)| self.place(key, 0)).collect()
    }

    /// What was asked for since the last idle moment, in the order it was asked for.
    pub(super) fn take_starts(&mut self) -> VecDeque<(Arc<str>, Start)> {
        std::mem::take(&mut self.starts)
    }

    /// Whether no work is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.running.is_empty()
    }

    /// Work that was let go of and has not ended.
    pub(super) fn ends(&mut self, tasks: impl IntoIterator<Item = JoinHandle<()>>) {
        self.ending.extend(tasks);
    }

    /// A call began. `replayed`: its place among recorded answers matters.
    pub(super) fn began(
        &mut self,
        key: Arc<str>,
        hold: oneshot::Sender<()>,
        task: Option<JoinHandle<()>>,
        replayed: bool,
    ) {
        if replayed && self.undelivered > 0 {
            self.fresh.push((key.clone(), self.claimed.len() as u64));
        }
        self.live = true;
        self.running.insert(key, Running { _hold: hold, task });
    }

    /// Whether, for the first time, nothing is waited for that will be on the log.
    pub(super) fn is_unrecorded(&mut self) -> bool {
        self.waiting.is_empty() && !std::mem::replace(&mut self.unrecorded, true)
    }

    /// Takes an answer up: whom it concerns, or `None` if nobody waits for it. The first answer of a call stands.
    pub(super) fn answer(&mut self, key: &Arc<str>, name: &str, answer: Answer) -> Option<Vec<Waker>> {
        let call = self.past.call(key);
        if call.answer.is_some() {
            return None;
        }
        let Committed { pos, .. } = answer.place;
        call.answers(name, answer);
        call.untold = true;
        self.running.remove(key);
        let wakers = self.waiting.get(key)?;
        self.ready.insert(pos, key.clone());
        Some(wakers.clone())
    }

    /// Lets go of all work; what has not ended yet.
    pub(super) fn let_go(&mut self) -> Vec<JoinHandle<()>> {
        self.starts.clear();
        let running = std::mem::take(&mut self.running);
        let mut ending = std::mem::take(&mut self.ending);
        ending.extend(running.into_values().filter_map(|running| running.task));
        ending
    }

    /// The recorded answers that were not asked for, in the order of the log.
    pub(super) fn unasked(&self) -> Vec<Place> {
        self.unasked
            .iter()
            .map(|(pos, key)| self.place(key.clone(), *pos))
            .collect()
    }

    /// Recorded answers that were not asked for, and packages on the board that were not assigned: key, name, place.
    pub(super) fn unclaimed(&self) -> Vec<(Arc<str>, String, u64)> {
        let open = self
            .past
            .iter()
            .filter(|(key, call)| call.assigned && call.answered().is_none() && !self.claimed.contains_key(*key));
        let answered = self
            .unasked()
            .into_iter()
            .map(|place| (place.key, place.name, place.pos));
        answered
            .chain(open.map(|(key, call)| (key.clone(), call.name.clone(), call.born)))
            .collect()
    }

    fn place(&self, key: Arc<str>, pos: u64) -> Place {
        let name = self.past.get(&key).map(|call| call.name.clone()).unwrap_or_default();
        Place { key, name, pos }
    }
}
