use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::ask;
use crate::{
    Error, Payload, Result,
    def::{Context as _, Def, Encoded, Entry, encode, present},
    scope::{Ask, Scope, Taken},
};

/// A call that was made. It has its identity already; its work begins when it is awaited, and dropping it lets go of it.
///
/// It borrows the context, so a call cannot leave the body that made it:
///
/// ```compile_fail,E0521
/// # use neuron::{Cx, Result, step};
/// #[step]
/// async fn ping(_cx: &Cx) -> Result<()> { Ok(()) }
/// async fn elsewhere(cx: &Cx) {
///     tokio::spawn(ping(cx)); // `cx` escapes the function; `cx.spawn_thread` gives a task its own context
/// }
/// ```
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<'a, D: Def> {
    ask: Result<Ask, Error>,
    context: PhantomData<&'a D::Context>,
    def: PhantomData<fn() -> D>,
}

impl<D: Def> fmt::Debug for Call<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({} {:?})", D::META.name, self.ask)
    }
}

impl<D: Def> Unpin for Call<'_, D> {}

impl<'a, D: Def> Call<'a, D> {
    /// Makes a call: takes its place among equal calls of the scope, and starts nothing.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "an argument is handed over, as in any call"
    )]
    pub fn new(cx: &'a D::Context, args: D::Args) -> Self {
        let entry = const { &Entry::of::<D>() };
        Self {
            ask: made(cx.scope(), entry, encode::<D>(&args)),
            context: PhantomData,
            def: PhantomData,
        }
    }
}

impl<D: Def> Future for Call<'_, D> {
    type Output = Result<D::Output, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll(&mut self.ask, const { &D::META }.name, cx)
    }
}

// What follows knows no definition, so that the compiler makes it once for all that have the same types.

fn made(scope: &Arc<Scope>, entry: &'static Entry, args: Result<Encoded, Error>) -> Result<Ask, Error> {
    ask(scope, entry, args?)
}

fn poll<T: Payload>(ask: &mut Result<Ask, Error>, name: &str, cx: &mut Context<'_>) -> Poll<Result<T, Error>> {
    let ask = match ask {
        Ok(ask) => ask,
        Err(error) => return Poll::Ready(Err(error.clone())),
    };
    match Pin::new(&mut *ask).poll(cx) {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Ready(Ok(taken)) => decoded(ask, name, taken),
    }
}

/// The output as the present type. One that does not decode is no failure of the step: the body is held, not told.
fn decoded<T: Payload>(ask: &Ask, name: &str, taken: Taken) -> Poll<Result<T, Error>> {
    match present(name, taken, ask.scope().runtime().journal().as_ref()) {
        Ok(output) => Poll::Ready(Ok(output)),
        Err(error) => {
            ask.hold(error);
            Poll::Pending
        }
    }
}
