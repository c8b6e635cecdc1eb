use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use tokio::sync::oneshot;

use super::{
    Finding, Manner, Rehearsal, Runtime, Scope, Stop, continued::again, drive::contain, idle::Idle, rehearsal::THREAD,
};
use crate::{Error, Json, Millis, Result, def::Entry, limits};

/// Drives a body over its recorded answers and no further: nothing is appended and no step runs. What it would do then
/// otherwise than the log says is what is found; nothing is found if it would go on as recorded.
///
/// What the body does itself, between its calls, it does: that is what a replay is. The body of an `agent` that has begun
/// again is driven from its last beginning on, with what it began again with.
pub async fn rehearse(
    runtime: &Arc<Runtime>,
    rehearsal: &Arc<Rehearsal>,
    id: &str,
    birth: Millis,
    body: impl FnOnce(Arc<Scope>) -> Result<BoxFuture<'static, Result<Json, Error>>, Error>,
    agent: Option<&'static Entry>,
) -> Vec<Finding> {
    let begun = agent.and_then(|agent| Some((agent, runtime.take_continued()?)));
    let (scope, body) = match begun {
        None => {
            let scope = Scope::root(runtime, id, birth, Manner::Replayed);
            let body = body(scope.clone());
            (scope, body)
        }
        Some((agent, last)) => {
            let scope = Scope::root(runtime, &last.scope, last.at, Manner::Replayed);
            let body = again(runtime, agent, &last, &scope);
            (scope, body)
        }
    };
    if let Some(agent) = agent {
        scope.is_body_of(agent.meta().name);
    }
    let driven = match body {
        Ok(body) => async move { contain(&scope, body).await.map(drop) },
        Err(error) => return vec![Finding::Stopped(error)],
    };
    let mut bodies: FuturesUnordered<BoxFuture<'static, Result<(), Stop>>> = FuturesUnordered::new();
    bodies.push(Box::pin(driven));
    let rung = Arc::new(Rung(AtomicBool::new(false)));
    let waker = Waker::from(rung.clone());
    let (mut turns, mut quiet) = (0_u64, 0_u32);
    let mut stopped = None;
    let mut restless = false;
    while quiet < QUIET_TURNS {
        for thread in rehearsal.threads() {
            bodies.push(Box::pin(async move {
                thread.await;
                Ok(())
            }));
            quiet = 0;
        }
        let polled = poll_fn(|_| Poll::Ready(bodies.poll_next_unpin(&mut Context::from_waker(&waker)))).await;
        match polled {
            Poll::Ready(None) => break,
            Poll::Ready(Some(ended)) => {
                quiet = 0;
                if let Err(stop) = ended {
                    stopped = stopped.or(Some(stop));
                }
            }
            Poll::Pending if rung.0.swap(false, Ordering::AcqRel) => quiet = 0,
            // What a body awaits beside the log may need a turn of the runtime to wake it.
            Poll::Pending => {
                quiet += 1;
                tokio::task::yield_now().await;
            }
        }
        turns += 1;
        if turns >= limits::REHEARSAL_TURNS_MAX {
            restless = true;
            break;
        }
    }
    let mut findings = rehearsal.findings();
    if let Some(stop) = stopped.or_else(|| runtime.stopped()) {
        findings.push(Finding::Stopped(stop.into_error()));
    }
    if restless && !findings.contains(&Finding::Unrecorded) {
        findings.push(Finding::Unrecorded);
    }
    findings
}

/// So many turns in a row without a wake, and nothing more comes of itself.
const QUIET_TURNS: u32 = 4;

struct Rung(AtomicBool);

impl Wake for Rung {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl Scope {
    /// Notes what would begin now. Bodies of threads are driven too: they only make calls.
    pub(super) fn rehearse(self: &Arc<Self>, rehearsal: &Rehearsal) -> Idle {
        let mut gate = self.gate();
        for (key, start) in gate.take_starts() {
            let called = rehearsal.call(&key);
            if called.name == THREAD {
                let (hold, letting_go) = oneshot::channel();
                rehearsal.thread(start(letting_go));
                gate.began(key, hold, None, true);
                continue;
            }
            let on_log = gate.past.get(&key).is_some();
            rehearsal.stands(&self.id, |stood| {
                let calls = if on_log { &mut stood.going_on } else { &mut stood.fresh };
                calls.insert(key.clone(), called.name.clone());
            });
            if on_log {
                continue;
            }
            if let Some(was) = called.once {
                drop(gate);
                let recorded = self.unclaimed_once(&called.name, was);
                rehearsal.stands(&self.id, |stood| {
                    stood.held.extend(recorded.map(|recorded| (key, recorded)));
                });
                gate = self.gate();
            }
        }
        let unrecorded = gate.is_unrecorded();
        drop(gate);
        self.stands(rehearsal, false);
        if unrecorded {
            self.report_unrecorded();
        }
        Idle::Nothing
    }

    /// Notes what of its log the body has not asked for.
    pub(super) fn stands(&self, rehearsal: &Rehearsal, ended: bool) {
        let gate = self.gate();
        let (unasked, told) = (gate.unclaimed(), gate.told);
        drop(gate);
        rehearsal.stands(&self.id, |stood| {
            stood.ended = ended;
            stood.unasked = unasked;
            stood.told = told;
        });
    }
}
