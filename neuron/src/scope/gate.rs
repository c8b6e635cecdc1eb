use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fmt,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use futures::future::BoxFuture;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    Manner, Recorded, Runtime, Scope, Stop, Taken, aliases,
    drive::CURRENT,
    past::{Known, Past},
    runtime::Leave,
};
use crate::{
    Error, ErrorKind, Json, Millis, Result,
    scope::{Record, journal::Committed},
    vocabulary::{
        Message,
        step::{ReplayDiverged, ReplayReordered, ReplayUnrecorded},
    },
};

/// Begins a call's work; the receiver ends when the body lets go of the call.
pub type Start = Box<dyn FnOnce(oneshot::Receiver<()>) -> BoxFuture<'static, ()> + Send>;

/// Everything about a scope that changes.
pub(super) struct Gate {
    pub(super) past: Past,
    pub(super) now: Millis,
    /// How often each content was called.
    counts: HashMap<String, u64>,
    aliases: HashMap<String, Vec<Arc<str>>>,
    /// Calls that were made.
    claimed: HashSet<Arc<str>>,
    /// Recorded answers that were not asked for, by `pos`.
    unasked: BTreeMap<u64, Arc<str>>,
    /// The last `pos` of an answer that stood when the scope was opened.
    horizon: u64,
    /// Calls that were polled and have no answer yet, or one that was not delivered.
    waiting: HashMap<Arc<str>, Vec<Waker>>,
    /// Of these, the ones with an answer, by `pos`.
    ready: BTreeMap<u64, Arc<str>>,
    delivered: HashSet<Arc<str>>,
    starts: VecDeque<(Arc<str>, Start)>,
    running: HashMap<Arc<str>, Running>,
    /// Work that was let go of and has not ended.
    ending: Vec<JoinHandle<()>>,
    /// Calls that ran fresh while recorded answers were left.
    fresh: Vec<Arc<str>>,
    driver: Option<Waker>,
    /// Whether an await that is not on the log was reported.
    unrecorded: bool,
    closed: bool,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gate = f.debug_struct("Gate");
        gate.field("waiting", &self.waiting.len())
            .field("running", &self.running.len());
        gate.finish_non_exhaustive()
    }
}

struct Running {
    /// Dropped when the body lets go.
    _hold: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// What became of an idle moment.
pub(super) enum Idle {
    /// An answer was delivered: the body goes on.
    Delivered,
    /// There is nothing to deliver.
    Nothing,
    /// The body is driven no further.
    Stopped(Stop),
}

impl Gate {
    pub(super) fn new(scope: &str, past: Past, runtime: &Runtime, now: Millis) -> Self {
        let answers = past
            .iter()
            .filter_map(|(key, call)| Some((call.answer.as_ref()?.place.pos, key.clone())));
        let unasked: BTreeMap<_, _> = answers.collect();
        Self {
            now,
            counts: HashMap::new(),
            aliases: aliases(scope, &past, runtime),
            past,
            claimed: HashSet::new(),
            horizon: unasked.last_key_value().map_or(0, |(pos, _)| *pos),
            unasked,
            waiting: HashMap::new(),
            ready: BTreeMap::new(),
            delivered: HashSet::new(),
            starts: VecDeque::new(),
            running: HashMap::new(),
            ending: Vec::new(),
            fresh: Vec::new(),
            driver: None,
            unrecorded: false,
            closed: false,
        }
    }

    /// The occurrence is taken when the call is made, in the order of the program, not when it is polled.
    pub(super) fn claim(&mut self, content: String) -> Arc<str> {
        let count = self.counts.entry(content.clone()).or_insert(0);
        *count += 1;
        let known = self
            .aliases
            .get(&content)
            .and_then(|keys| keys.get(usize::try_from(*count - 1).ok()?));
        let key = known.cloned().unwrap_or_else(|| format!("{content}#{count}").into());
        if let Some(answer) = self.past.get(&key).and_then(|call| call.answer.as_ref()) {
            self.unasked.remove(&answer.place.pos);
        }
        self.claimed.insert(key.clone());
        key
    }

    pub(super) fn unclaimed_once(&self, name: &str, floor: u64) -> Option<Arc<str>> {
        let standing = |call: &Known| {
            call.answer
                .as_ref()
                .map_or(call.born, |answer| answer.place.pos.max(call.born))
        };
        let unclaimed = |key: &Arc<str>, call: &Known| {
            call.once && call.name == name && standing(call) > floor && !self.claimed.contains(key)
        };
        let mut found: Vec<_> = self.past.iter().filter(|(key, call)| unclaimed(key, call)).collect();
        found.sort_by_key(|(_, call)| standing(call));
        found.first().map(|(key, _)| (*key).clone())
    }

    /// The next answer in the order of the log, and whom it wakes.
    fn deliver(&mut self) -> Option<(Arc<str>, Committed, Vec<Waker>)> {
        while let Some((_, key)) = self.ready.pop_first() {
            let Some(wakers) = self.waiting.remove(&key) else {
                continue;
            };
            let Some(place) = self.past.get(&key).and_then(|call| Some(call.answer.as_ref()?.place)) else {
                continue;
            };
            self.now = self.now.max(place.at);
            self.delivered.insert(key.clone());
            return Some((key, place, wakers));
        }
        None
    }

    /// Waiting calls are woken by the driver, which is woken by answers.
    fn set_driver(&mut self, waker: &Waker) {
        if !self.driver.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.driver = Some(waker.clone());
        }
    }

    fn name_of(&self, key: &str) -> String {
        self.past.get(key).map(|call| call.name.clone()).unwrap_or_default()
    }
}

impl Scope {
    /// Whether the call has its answer; if not, it is remembered, and its work starts when the body is idle.
    pub(super) fn poll(
        self: &Arc<Self>,
        key: &Arc<str>,
        start: &mut Option<Start>,
        keep: bool,
        cx: &Context<'_>,
    ) -> Poll<Result<Taken, Error>> {
        if CURRENT.get() != self.tag && self.manner != Manner::Undriven {
            return Poll::Ready(Err(misuse()));
        }
        let mut gate = self.gate();
        let keep = keep || self.manner != Manner::Replayed;
        if let Some(taken) = gate.take(key, keep) {
            return Poll::Ready(taken);
        }
        let wakers = gate.waiting.entry(key.clone()).or_default();
        if !wakers.iter().any(|known| known.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        let answered = gate
            .past
            .get(key)
            .and_then(|call| Some(call.answer.as_ref()?.place.pos));
        match (answered, start.take()) {
            (Some(pos), _) => {
                gate.ready.insert(pos, key.clone());
            }
            (None, Some(start)) => gate.starts.push_back((key.clone(), start)),
            (None, None) => {}
        }
        drop(gate);
        if self.manner == Manner::Undriven {
            return self.poll_undriven(key, keep, cx);
        }
        Poll::Pending
    }

    fn poll_undriven(self: &Arc<Self>, key: &Arc<str>, keep: bool, cx: &Context<'_>) -> Poll<Result<Taken, Error>> {
        loop {
            match self.idle(cx.waker()) {
                Idle::Stopped(stop) => return Poll::Ready(Err(stop.into_error())),
                Idle::Nothing => return Poll::Pending,
                Idle::Delivered => {
                    if let Some(taken) = self.gate().take(key, keep) {
                        return Poll::Ready(taken);
                    }
                }
            }
        }
    }

    /// Makes a call start at the next idle moment, awaited or not.
    pub(super) fn enqueue(&self, key: &Arc<str>, start: Start) {
        let mut gate = self.gate();
        if gate.past.get(key).is_none_or(|call| call.answer.is_none()) {
            gate.starts.push_back((key.clone(), start));
        }
    }

    /// The body let go of a call: it neither starts nor goes on, and what it gives wakes nobody.
    pub(super) fn forget(&self, key: &str) {
        let mut gate = self.gate();
        gate.waiting.remove(key);
        if let Some(pos) = gate
            .past
            .get(key)
            .and_then(|call| Some(call.answer.as_ref()?.place.pos))
        {
            gate.ready.remove(&pos);
        }
        gate.starts.retain(|(started, _)| **started != *key);
        if let Some(running) = gate.running.remove(key) {
            gate.ending.retain(|task| !task.is_finished());
            gate.ending.push(running.task);
        }
    }

    /// The one moment at which a body learns something and at which work begins: it is pending, and nothing woke it.
    pub(super) fn idle(self: &Arc<Self>, waker: &Waker) -> Idle {
        match self.runtime.leave(self.manner == Manner::Replayed, waker) {
            Leave::Go => {}
            Leave::Wait => return Idle::Nothing,
            Leave::Stop(stop) => return Idle::Stopped(stop),
        }
        let mut gate = self.gate();
        gate.set_driver(waker);
        if let Some((key, place, wakers)) = gate.deliver() {
            let reordered = if place.pos <= gate.horizon {
                std::mem::take(&mut gate.fresh)
            } else {
                Vec::new()
            };
            let names: Vec<_> = reordered.iter().map(|fresh| gate.name_of(fresh)).collect();
            let used = gate.name_of(&key);
            drop(gate);
            wakers.into_iter().for_each(Waker::wake);
            for (fresh, name) in reordered.iter().zip(names) {
                self.report(&ReplayReordered {
                    scope: self.id.to_string(),
                    key: fresh.to_string(),
                    name,
                    used: key.to_string(),
                    used_name: used.clone(),
                    pos: place.pos,
                });
            }
            return match reordered.first().filter(|_| self.runtime.strict) {
                None => Idle::Delivered,
                Some(_) => self.hold(format!(
                    "a step ran before `{used}`, which the log holds at {} already",
                    place.pos
                )),
            };
        }
        drop(gate);
        self.begin()
    }

    /// Starts what was asked for since the last idle moment, in the order it was asked for.
    fn begin(self: &Arc<Self>) -> Idle {
        let hook = self
            .on_idle
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        if let Some(hook) = hook {
            hook(self);
        }
        let mut gate = self.gate();
        let starts = std::mem::take(&mut gate.starts);
        for (key, start) in starts {
            if self.manner == Manner::Replayed && gate.horizon > 0 {
                gate.fresh.push(key.clone());
            }
            let (hold, letting_go) = oneshot::channel();
            // Under the lock, so that the work cannot end before it counts as running.
            let task = tokio::spawn(start(letting_go));
            gate.running.insert(key, Running { _hold: hold, task });
        }
        let foreign = self.manner == Manner::Replayed && gate.waiting.is_empty() && gate.ready.is_empty();
        if foreign && !std::mem::replace(&mut gate.unrecorded, true) {
            drop(gate);
            self.report(&ReplayUnrecorded {
                scope: self.id.to_string(),
            });
            if self.runtime.strict {
                return self
                    .hold("the body awaits something that is not on the log; await calls of its context only".into());
            }
        }
        Idle::Nothing
    }

    /// Hands an answer over. The journal calls this in commit order.
    pub fn answer(&self, key: &Arc<str>, name: &str, place: Committed, outcome: Result<Json, Error>) {
        self.answered(key, name, Recorded::new(place, outcome));
    }

    pub(crate) fn answered(&self, key: &Arc<str>, name: &str, answer: Recorded) {
        let mut gate = self.gate();
        let pos = answer.place.pos;
        let call = gate.past.call(key);
        if call.answer.is_some() {
            return;
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        call.open = 0;
        call.doubted = None;
        call.answer = Some(answer);
        gate.running.remove(key);
        let mut woken = Vec::new();
        if gate.waiting.contains_key(key) {
            gate.ready.insert(pos, key.clone());
            if self.manner == Manner::Undriven {
                woken.extend(gate.waiting[key].iter().cloned());
            }
        }
        woken.extend(gate.driver.clone());
        drop(gate);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Reads or changes what is known of a call.
    pub(crate) fn known<R>(&self, key: &str, change: impl FnOnce(&mut Known) -> R) -> R {
        change(self.gate().past.call(key))
    }

    /// The recorded answer of a call, delivered or not.
    pub fn recorded(&self, key: &str) -> Option<Result<Json, Error>> {
        let gate = self.gate();
        gate.past
            .get(key)
            .and_then(|call| Some(call.answer.as_ref()?.outcome.clone()))
    }

    /// Lets go of all work and waits until it has ended, so that nothing of this scope is committed after its answer.
    pub(crate) async fn settle(&self) {
        let ending = {
            let mut gate = self.gate();
            gate.closed = true;
            gate.starts.clear();
            let running = std::mem::take(&mut gate.running);
            let mut ending = std::mem::take(&mut gate.ending);
            ending.extend(running.into_values().map(|running| running.task));
            ending
        };
        // What a task panicked with, its own body has recorded.
        futures::future::join_all(ending).await;
    }

    /// Takes what is on the log of the scope, for the next attempt.
    pub(crate) fn take_past(&self) -> Past {
        std::mem::take(&mut self.gate().past)
    }

    /// Reports the answers that a body which has ended never asked for.
    pub(super) fn diverged(&self) -> Result<(), Stop> {
        if self.manner != Manner::Replayed {
            return Ok(());
        }
        let gate = self.gate();
        let unasked: Vec<_> = gate
            .unasked
            .iter()
            .map(|(pos, key)| (*pos, key.clone(), gate.name_of(key)))
            .collect();
        drop(gate);
        for (pos, key, name) in &unasked {
            self.report(&ReplayDiverged {
                scope: self.id.to_string(),
                key: key.to_string(),
                name: name.clone(),
                pos: *pos,
            });
        }
        let Some((pos, _, name)) = unasked.first().filter(|_| self.runtime.strict) else {
            return Ok(());
        };
        let message = format!("the log holds an answer of `{name}` at {pos} that the code no longer asks for");
        match self.hold(message) {
            Idle::Stopped(stop) => Err(stop),
            _ => Ok(()),
        }
    }

    fn hold(&self, message: String) -> Idle {
        let stop = Stop::Held(Error::new(ErrorKind::Diverged, message));
        self.runtime.stop(stop.clone());
        Idle::Stopped(stop)
    }

    /// Puts a finding on the log, without waiting for it.
    fn report<W: Message>(&self, word: &W) {
        match Record::of(&self.id, &Arc::from(""), word) {
            Ok(record) => self.runtime.journal.defer(record),
            Err(error) => self.runtime.stop(Stop::Refused(error)),
        }
    }
}

impl Gate {
    /// The answer of a call, if it was delivered. Its text is kept only where it may be asked for again.
    fn take(&mut self, key: &Arc<str>, keep: bool) -> Option<Result<Taken, Error>> {
        if !self.delivered.contains(key) {
            return None;
        }
        let answer = self.past.call(key).answer.as_mut()?;
        let typed = answer.typed.take();
        let outcome = if keep {
            answer.outcome.clone()
        } else {
            std::mem::replace(&mut answer.outcome, Ok(Json::null()))
        };
        let schema = answer.schema;
        Some(outcome.map(|json| Taken { json, typed, schema }))
    }
}

fn misuse() -> Error {
    let message = "a call is awaited by the body that made it; use `cx.spawn_thread` for a task of its own";
    Error::new(ErrorKind::Misuse, message)
}
