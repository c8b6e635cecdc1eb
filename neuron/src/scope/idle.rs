use std::{
    sync::{Arc, PoisonError},
    task::{Context, Poll, Waker},
};

use futures::future::BoxFuture;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    Manner, Scope,
    gate::Start,
    inside::{current, depth},
    journal::{Committed, Record},
    known::{Known, Past},
    parting::too_late,
    recorded::{Answer, Taken},
    runtime::{Leave, Stop},
};
use crate::{
    Error, ErrorKind, Json, Result, limits,
    vocabulary::{
        Message,
        step::{ReplayDiverged, ReplayReordered, ReplayUnrecorded},
    },
};

/// What became of an idle moment.
pub(super) enum Idle {
    /// An answer was delivered: the body goes on.
    Delivered,
    /// There is nothing to deliver.
    Nothing,
    /// There is nothing to deliver, and one step began, which the driver polls.
    Alone(BoxFuture<'static, ()>),
    /// The body is driven no further.
    Stopped(Stop),
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
        if current() != self.tag && self.manner != Manner::Undriven {
            return Poll::Ready(Err(misuse()));
        }
        if self.cleans_up() {
            return Poll::Ready(Err(too_late()));
        }
        // A step's answers hold for its next attempt too.
        let keep = keep || self.manner != Manner::Replayed;
        let mut gate = self.gate();
        if let Some(taken) = gate.take(key, keep) {
            return Poll::Ready(taken);
        }
        gate.ask(key, start, cx.waker());
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
                Idle::Nothing | Idle::Alone(_) => return Poll::Pending,
                Idle::Delivered => {
                    if let Some(taken) = self.gate().take(key, keep) {
                        return Poll::Ready(taken);
                    }
                }
            }
        }
    }

    /// Makes a call start at the next idle moment, waited for or not.
    pub(super) fn enqueue(&self, key: &Arc<str>, start: Start) {
        self.gate().enqueue(key, start);
    }

    /// The one moment at which a body learns something and at which work begins: it is pending, and nothing woke it.
    ///
    /// The gate is never held while the journal is called: the journal calls [`answer`](Self::answer).
    pub(super) fn idle(self: &Arc<Self>, waker: &Waker) -> Idle {
        self.driver.register(waker);
        if self.cleans_up() {
            return Idle::Nothing;
        }
        match self.runtime.leave(self.manner == Manner::Replayed, &self.threads) {
            Leave::Go => {}
            Leave::Wait => return Idle::Nothing,
            Leave::Stop(stop) => return Idle::Stopped(stop),
        }
        if self.goes_onward() {
            return Idle::Stopped(Stop::Continued);
        }
        let mut gate = self.gate();
        let Some(delivery) = gate.deliver() else {
            drop(gate);
            return self.begin();
        };
        drop(gate);
        delivery.wakers.into_iter().for_each(Waker::wake);
        for fresh in &delivery.reordered {
            self.report(&ReplayReordered {
                scope: self.id.to_string(),
                key: fresh.key.to_string(),
                name: fresh.name.clone(),
                used: delivery.call.key.to_string(),
                used_name: delivery.call.name.clone(),
                pos: delivery.call.pos,
            });
        }
        match delivery.reordered.first().filter(|_| self.runtime.strict) {
            None => Idle::Delivered,
            Some(fresh) => self.hold(format!(
                "`{}` ran before `{}` was asked for, whose answer is on the log at {}",
                fresh.name, delivery.call.name, delivery.call.pos
            )),
        }
    }

    /// Starts what was asked for since the last idle moment.
    fn begin(self: &Arc<Self>) -> Idle {
        let hook = self.on_idle.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(hook) = hook {
            hook(self);
        }
        if let Some(rehearsal) = self.runtime.rehearsal() {
            return self.rehearse(&rehearsal.clone());
        }
        let replayed = self.manner == Manner::Replayed;
        let mut gate = self.gate();
        let mut starts = gate.take_starts();
        // A lone step is polled by whoever polls the body: it costs no task and no change of thread.
        let lone = starts.len() == 1 && gate.is_quiet() && self.may_be_alone();
        let mut alone = None;
        for (key, start) in starts.drain(..) {
            let (hold, letting_go) = oneshot::channel();
            let work = start(letting_go);
            // Under the lock, so that the work cannot end before it counts as running.
            let task = if lone {
                alone = Some(work);
                None
            } else {
                Some(tokio::spawn(work))
            };
            gate.began(key, hold, task, replayed);
        }
        let unrecorded = replayed && gate.is_unrecorded();
        drop(gate);
        if unrecorded {
            self.report_unrecorded();
            if self.runtime.strict {
                return self.hold("the body awaits what is not on the log; await calls of its context only".into());
            }
        }
        alone.map_or(Idle::Nothing, Idle::Alone)
    }

    fn may_be_alone(&self) -> bool {
        self.manner != Manner::Undriven && self.lone().is_none() && depth() < limits::LONE_DEPTH_MAX
    }

    /// Gives the lone step a task after all: the driver polls it no more.
    pub(super) fn part(&self) {
        let lone = self.lone().take();
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(lone), Ok(runtime)) = (lone, runtime) {
            let task = runtime.spawn(lone);
            self.gate().ends([task]);
        }
    }

    /// Hands an answer over. The journal does it in commit order.
    pub fn answer(&self, key: &Arc<str>, name: &str, place: Committed, outcome: Result<Json, Error>) {
        self.answered(key, name, Answer::new(place, outcome));
    }

    pub(crate) fn answered(&self, key: &Arc<str>, name: &str, answer: Answer) {
        let Some(waiting) = self.gate().answer(key, name, answer) else {
            return;
        };
        if self.manner == Manner::Undriven {
            waiting.into_iter().for_each(Waker::wake);
        } else {
            self.driver.wake();
        }
    }

    /// Whether it is the body that lets go of a call now, and not whoever drives it that lets go of the body.
    pub(super) fn is_let_go_by_its_body(&self) -> bool {
        let is_inside = current() == self.tag || self.manner == Manner::Undriven;
        (is_inside || self.goes_onward()) && self.runtime.stopped().is_none()
    }

    /// Whether the body has let go of a call whose answer stands by now.
    pub(crate) fn is_let_go(&self, key: &str) -> bool {
        self.gate().is_let_go(key)
    }

    /// Whether the log says of a call that it listens for what is given from outside.
    pub(crate) fn is_heard(&self, key: &str) -> bool {
        self.gate().past.get(key).is_some_and(|call| call.heard.is_some())
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
        self.part();
        let mut ending = Ending {
            scope: self,
            tasks: self.gate().let_go(),
        };
        while let Some(task) = ending.tasks.last_mut() {
            // What a task panicked with, its own body has recorded.
            let _ended = task.await;
            ending.tasks.pop();
        }
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
        if let Some(rehearsal) = self.runtime.rehearsal() {
            self.stands(rehearsal, true);
            return Ok(());
        }
        let unasked = self.gate().unasked();
        for answer in &unasked {
            self.report(&ReplayDiverged {
                scope: self.id.to_string(),
                key: answer.key.to_string(),
                name: answer.name.clone(),
                pos: answer.pos,
            });
        }
        let Some(first) = unasked.first().filter(|_| self.runtime.strict) else {
            return Ok(());
        };
        let message = format!(
            "the log holds an answer of `{}` at {} that the code no longer asks for",
            first.name, first.pos
        );
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

    /// Says that the body awaits what is not on the log.
    pub(super) fn report_unrecorded(&self) {
        self.report(&ReplayUnrecorded {
            scope: self.id.to_string(),
        });
    }

    /// Puts a finding on the log, without waiting for it.
    fn report<M: Message>(&self, message: &M) {
        match Record::of(&self.id, &Arc::from(""), message) {
            Ok(record) => self.runtime.journal.defer(record),
            Err(error) => self.runtime.stop(Stop::Refused(error)),
        }
    }
}

/// Work that ends. Who waits for it may be dropped; then the next one waits.
struct Ending<'a> {
    scope: &'a Scope,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if !self.tasks.is_empty() {
            self.scope.gate().ends(self.tasks.drain(..));
        }
    }
}

fn misuse() -> Error {
    let message = "a call is awaited by the body that made it; use `cx.spawn_thread` for a task of its own";
    Error::new(ErrorKind::Misuse, message)
}
