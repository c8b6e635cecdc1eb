use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use neuron::{Error, ErrorKind, Payload, Result, def::present, scope::Ask};

use super::body::Body;
use crate::package::Key;

/// A package on the board: an edge when it is passed on, its output when it is awaited.
///
/// Clones stand for the same package. One that is never awaited runs all the same.
#[must_use = "pass it on or await it, or `drop` it if only its effects matter"]
pub struct Package<T> {
    body: Arc<Body>,
    laid: Result<(usize, Key), Error>,
    ask: Result<Ask, Error>,
    output: PhantomData<fn() -> T>,
}

impl<T> Package<T> {
    pub(crate) fn new(body: &Arc<Body>, laid: Result<(usize, Key), Error>) -> Self {
        let ask = laid.clone().map(|(_, key)| Ask::awaited(&body.scope, key));
        Self {
            body: body.clone(),
            laid,
            ask,
            output: PhantomData,
        }
    }

    /// An edge without a value: this package starts after `first` has ended well.
    ///
    /// It is said before the orchestrator next awaits something; later, awaiting the package gives
    /// [`ErrorKind::Misuse`].
    pub fn after<U>(self, first: &Package<U>) -> Self {
        let edge = self.place().and_then(|place| {
            let first = first.place_on(&self.body)?;
            self.body.after(place, first)
        });
        match edge {
            Ok(()) => self,
            Err(error) => Self::new(&self.body, Err(error)),
        }
    }

    /// Its key on the log.
    ///
    /// # Errors
    /// Why it could not be laid on the board; awaiting it gives the same.
    pub fn key(&self) -> Result<&str, Error> {
        self.laid.as_ref().map(|(_, key)| &**key).map_err(Clone::clone)
    }

    fn place(&self) -> Result<usize, Error> {
        self.laid.as_ref().map(|(place, _)| *place).map_err(Clone::clone)
    }

    /// Its place among the packages of a body.
    pub(crate) fn place_on(&self, body: &Arc<Body>) -> Result<usize, Error> {
        if !Arc::ptr_eq(&self.body, body) {
            let why = "a package of one board was given to another; pass on its output instead";
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        self.place()
    }
}

impl<T> Clone for Package<T> {
    fn clone(&self) -> Self {
        Self::new(&self.body, self.laid.clone())
    }
}

impl<T> fmt::Debug for Package<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Package({:?})", self.key())
    }
}

impl<T: Payload> Future for Package<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let ask = match &mut this.ask {
            Ok(ask) => ask,
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        let taken = match Pin::new(&mut *ask).poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Ready(Ok(taken)) => taken,
        };
        let name = this.laid.as_ref().map_or("", |(place, _)| this.body.name(*place));
        match present(name, taken, ask.scope().runtime().journal().as_ref()) {
            Ok(output) => Poll::Ready(Ok(output)),
            // No failure of the package: the run is held, its body is not told.
            Err(error) => {
                ask.hold(error);
                Poll::Pending
            }
        }
    }
}
