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
    inside::{Inside, panicked},
};
use crate::{Error, Result, limits};

/// Tells a body that was woken from one that is idle.
struct Bell {
    rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake();
    }
}

/// Drives a body: polls it until it is idle, delivers one answer, polls again. The same code is live and replay.
///
/// # Errors
/// Why the body was left without an end: no answer may be written then.
pub async fn drive<T>(scope: &Arc<Scope>, body: impl Future<Output = T>) -> Result<T, Stop> {
    let ended = {
        let mut body = pin!(body);
        let bell = Arc::new(Bell {
            rung: AtomicBool::new(true),
            task: AtomicWaker::new(),
        });
        let waker = Waker::from(bell.clone());
        poll_fn(|cx| {
            bell.task.register(cx.waker());
            turn(scope, body.as_mut(), &bell, &waker, cx.waker())
        })
        .await
    };
    scope.settle().await;
    let value = ended?;
    // The log may have refused what was still to be written when the body ended.
    if let Some(stop) = scope.runtime.stopped() {
        return Err(stop);
    }
    scope.diverged()?;
    Ok(value)
}

fn turn<T>(
    scope: &Arc<Scope>,
    mut body: Pin<&mut impl Future<Output = T>>,
    bell: &Arc<Bell>,
    waker: &Waker,
    task: &Waker,
) -> Poll<Result<T, Stop>> {
    let mut polls = 0;
    loop {
        if bell.rung.swap(false, Ordering::AcqRel) {
            if polls == limits::BODY_POLLS_MAX {
                bell.rung.store(true, Ordering::Release);
                task.wake_by_ref();
                return Poll::Pending;
            }
            polls += 1;
            let inside = Inside::enter(scope.tag);
            let polled = body.as_mut().poll(&mut Context::from_waker(waker));
            drop(inside);
            if let Poll::Ready(value) = polled {
                return Poll::Ready(Ok(value));
            }
            // A body that woke itself meanwhile is not idle.
            continue;
        }
        match scope.idle(task) {
            Idle::Delivered => bell.rung.store(true, Ordering::Release),
            Idle::Nothing => return Poll::Pending,
            Idle::Stopped(stop) => return Poll::Ready(Err(stop)),
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
            Ok(Err(panicked(panic.as_ref())))
        }
    }
}
