use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::{FutureExt as _, task::AtomicWaker};

use super::{
    Scope, Stop,
    idle::Idle,
    inside::{Deeper, Inside, panicked},
};
use crate::{Error, Result, limits};

/// Tells what was woken from what is idle.
struct Bell {
    rung: AtomicBool,
    driver: Arc<AtomicWaker>,
}

impl Bell {
    fn of(scope: &Scope, rung: bool) -> Arc<Self> {
        Arc::new(Self {
            rung: AtomicBool::new(rung),
            driver: scope.driver.clone(),
        })
    }

    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
    }

    fn rang(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
        self.driver.wake();
    }
}

/// Drives a body: polls it until it is idle, delivers one answer, polls again. The same code is live and replay.
///
/// # Errors
/// Why the body was left without an end: no answer may be written then.
pub async fn drive<T>(scope: &Arc<Scope>, body: impl Future<Output = T>) -> Result<T, Stop> {
    let _parting = Parting(scope);
    let ended = {
        let mut driver = Driver {
            scope,
            body: pin!(body),
            woken: Bell::of(scope, true),
            lone: Bell::of(scope, false),
        };
        poll_fn(|cx| driver.turn(cx.waker())).await
    };
    scope.settle().await;
    let value = ended?;
    // The log may have refused what was still to be written when the body ended. A step that cleaned up says itself
    // whether it is done.
    if let Some(stop) = scope.runtime.stopped().filter(|_| !scope.cleans_up()) {
        return Err(stop);
    }
    scope.diverged()?;
    scope.leave_open();
    Ok(value)
}

/// A driver that is dropped before its body ended leaves no step half polled.
struct Parting<'a>(&'a Scope);

impl Drop for Parting<'_> {
    fn drop(&mut self) {
        self.0.part();
    }
}

struct Driver<'a, B> {
    scope: &'a Arc<Scope>,
    body: Pin<&'a mut B>,
    /// Rung when the body is to be polled.
    woken: Arc<Bell>,
    /// Rung when the lone step is to be polled.
    lone: Arc<Bell>,
}

impl<B: Future> Driver<'_, B> {
    fn turn(&mut self, task: &Waker) -> Poll<Result<B::Output, Stop>> {
        self.scope.driver.register(task);
        for _ in 0..limits::BODY_POLLS_MAX {
            // A body that woke itself while it was polled is not idle.
            if self.woken.rang() {
                if let Poll::Ready(value) = self.poll_body() {
                    return Poll::Ready(Ok(value));
                }
            } else if self.lone.rang() {
                self.poll_lone();
            } else {
                match self.scope.idle(task) {
                    Idle::Delivered => self.woken.ring(),
                    Idle::Nothing => return Poll::Pending,
                    Idle::Stopped(stop) => return Poll::Ready(Err(stop)),
                    Idle::Alone(step) => {
                        *self.scope.lone() = Some(step);
                        self.lone.ring();
                    }
                }
            }
        }
        task.wake_by_ref();
        Poll::Pending
    }

    fn poll_body(&mut self) -> Poll<B::Output> {
        let waker = Waker::from(self.woken.clone());
        let _inside = Inside::enter(self.scope.tag);
        self.body.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn poll_lone(&self) {
        // Taken out meanwhile: what it does may let go of it.
        let Some(mut step) = self.scope.lone().take() else {
            return;
        };
        let waker = Waker::from(self.lone.clone());
        let polled = {
            let _deeper = Deeper::enter();
            step.as_mut().poll(&mut Context::from_waker(&waker))
        };
        if polled.is_pending() {
            *self.scope.lone() = Some(step);
        }
    }
}

/// Drives a body whose panic is its failure.
///
/// # Errors
/// As [`drive`].
pub async fn contain<T>(
    scope: &Arc<Scope>,
    body: impl Future<Output = Result<T, Error>>,
) -> Result<Result<T, Error>, Stop> {
    let driven = AssertUnwindSafe(drive(scope, body)).catch_unwind().await;
    match driven {
        Ok(driven) => driven,
        Err(panic) => {
            scope.settle().await;
            if let Some(rehearsal) = scope.runtime.rehearsal() {
                scope.stands(rehearsal, true);
            }
            scope.leave_open();
            Ok(Err(panicked(panic.as_ref())))
        }
    }
}
