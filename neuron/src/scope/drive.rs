use std::{
    any::Any,
    cell::Cell,
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

use super::{Scope, Stop, gate::Idle};
use crate::{Error, ErrorKind, Result, limits};

thread_local! {
    /// The scope whose body this thread is polling; 0 if none.
    pub(super) static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// Whether this thread is polling a body. A body starts no run: agents spawn threads, never agents.
pub fn inside() -> bool {
    CURRENT.get() != 0
}

/// While it lives, this thread polls the body of a scope.
struct Inside(u64);

impl Inside {
    fn enter(tag: u64) -> Self {
        Self(CURRENT.replace(tag))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

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
            let polled = turn(scope, body.as_mut(), &bell, &waker, cx.waker());
            if polled.is_ready() {
                scope.runtime.leaves(cx.waker());
            }
            polled
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

/// What a panic says, as an error.
pub fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::new(
        ErrorKind::Panicked,
        format!("panicked: {}", text.unwrap_or("(no message)")),
    )
}
