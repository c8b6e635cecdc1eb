use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;

use super::{Scope, Start, Stop, Taken, undecodable};
use crate::{Error, Payload, Result};

/// A call without its types: it has its identity already, and it runs when it is polled. Dropping it lets go of it.
pub struct Ask {
    scope: Arc<Scope>,
    key: Arc<str>,
    start: Option<Start>,
    /// The answer may be asked for again.
    keep: bool,
    /// Its work goes on when the handle is dropped.
    detached: bool,
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ask({})", self.key)
    }
}

impl Ask {
    /// A call whose work begins with `start` once it was polled and the body is idle.
    pub fn new(scope: &Arc<Scope>, key: Arc<str>, start: Start) -> Self {
        Self {
            scope: scope.clone(),
            key,
            start: Some(start),
            keep: false,
            detached: false,
        }
    }

    /// A call whose work begins when the body is idle, polled or not, and goes on when the handle is dropped.
    pub fn spawned(scope: &Arc<Scope>, key: Arc<str>, start: Start) -> Self {
        scope.enqueue(&key, start);
        Self {
            scope: scope.clone(),
            key,
            start: None,
            keep: false,
            detached: true,
        }
    }

    /// One of several handles of an answer that somebody else brings about.
    pub fn awaited(scope: &Arc<Scope>, key: Arc<str>) -> Self {
        Self {
            scope: scope.clone(),
            key,
            start: None,
            keep: true,
            detached: true,
        }
    }

    /// Its key.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// Drives its body no further, because of what its answer is: a person has to look.
    pub fn hold(&self, error: Error) {
        self.scope.runtime().stop(Stop::Held(error));
    }

    /// The scope of the body that made it.
    pub fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }
}

impl Future for Ask {
    type Output = Result<Taken, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.scope.poll(&this.key, &mut this.start, this.keep, cx)
    }
}

impl Drop for Ask {
    fn drop(&mut self) {
        if !self.detached {
            self.scope.forget(&self.key);
        }
    }
}

/// The answer of a call that the context itself offers: a timer, a thread.
#[must_use = "it is not waited for until it is awaited"]
pub struct Answer<'a, T> {
    from: Source<T>,
    context: PhantomData<&'a ()>,
}

enum Source<T> {
    /// A call of its own on the log.
    Ask(Ask),
    /// Work of the body itself.
    Work(BoxFuture<'static, Result<T, Error>>),
    /// It could not be made.
    Never(Error),
}

impl<T> fmt::Debug for Answer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.from {
            Source::Ask(ask) => ask.fmt(f),
            Source::Work(_) => f.write_str("Answer"),
            Source::Never(error) => error.fmt(f),
        }
    }
}

impl<T> Unpin for Answer<'_, T> {}

impl<T> Answer<'_, T> {
    /// The answer of a call; one that could not be made gives its error when awaited.
    #[doc(hidden)]
    pub fn new(ask: Result<Ask, Error>) -> Self {
        Self {
            from: ask.map_or_else(Source::Never, Source::Ask),
            context: PhantomData,
        }
    }

    /// What the body does itself, which is no call on the log.
    pub(crate) fn work(work: BoxFuture<'static, Result<T, Error>>) -> Self {
        Self {
            from: Source::Work(work),
            context: PhantomData,
        }
    }
}

/// The answer as the present type. One that does not decode is no failure of the call: the body is held, not told.
fn told<T: Payload>(ask: &Ask, taken: Taken) -> Poll<Result<T, Error>> {
    let recorded = taken.json.clone();
    match taken.decode() {
        Ok(value) => Poll::Ready(Ok(value)),
        Err(why) => {
            let name = ask.scope.known(&ask.key, |call| call.name.clone());
            ask.hold(undecodable::<T>(&name, &recorded, &why));
            Poll::Pending
        }
    }
}

impl<T: Payload> Future for Answer<'_, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.from {
            Source::Ask(ask) => match Pin::new(&mut *ask).poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(taken)) => told(ask, taken),
            },
            Source::Work(work) => work.as_mut().poll(cx),
            Source::Never(error) => Poll::Ready(Err(error.clone())),
        }
    }
}
