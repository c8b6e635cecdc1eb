//! What an annotated function is made of: one type that says everything about it, behind the function's own name.

mod args;
mod entry;
mod form;
mod meta;
mod registry;

use std::{future::Future, pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::{BoxError, Cx, Error, Result, scope::Scope};

pub use args::{Args, Callable, Encoded};
pub use entry::{Entry, Ran, Tool, tool};
pub use form::Form;
pub use meta::{Meta, Outliner, Param};
pub use registry::Registry;

/// A future on the heap that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A body that is about to run.
pub type Body<'a, T> = BoxFuture<'a, Result<T>>;

/// What may be an argument or an output: it is written to the log and read back.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot go on the log",
    label = "this is written to the log and read back",
    note = "derive `serde::Serialize`, `serde::Deserialize` and `schemars::JsonSchema` for it, and let it own all its data"
)]
pub trait Payload: Serialize + DeserializeOwned + JsonSchema + Send + 'static {}

impl<T: Serialize + DeserializeOwned + JsonSchema + Send + 'static> Payload for T {}

/// What a body may return: any `Result` whose error converts into a boxed one.
#[diagnostic::on_unimplemented(
    message = "a body returns a `Result`, not `{Self}`",
    note = "the error may be any `std::error::Error`, a string, a `neuron::Error` or an `anyhow::Error`"
)]
pub trait Outcome {
    /// What a success holds.
    type Value;

    /// The result with its error boxed.
    ///
    /// # Errors
    /// The body's own.
    fn into_result(self) -> Result<Self::Value>;
}

impl<T, E: Into<BoxError>> Outcome for Result<T, E> {
    type Value = T;

    fn into_result(self) -> Result<T> {
        self.map_err(Into::into)
    }
}

/// Puts the future of a body into the form in which it is driven.
pub fn body<'a, R: Outcome>(body: impl Future<Output = R> + Send + 'a) -> Body<'a, R::Value> {
    Box::pin(async move { body.await.into_result() })
}

/// The three kinds of functions that are driven.
pub mod kind {
    /// A `#[step]`: it acts; its answer is recorded once.
    #[derive(Debug)]
    pub struct Step;
    /// An `#[agent]`: its body is replayed, its steps are not.
    #[derive(Debug)]
    pub struct Agent;
    /// An `#[orchestrator]`: it alone assigns.
    #[derive(Debug)]
    pub struct Orchestrator;
}

/// One annotated function: its parameters, output, options and body. Attributes implement it; nobody else does.
#[diagnostic::on_unimplemented(
    message = "this is not a `#[step]`, an `#[agent]` or an `#[orchestrator]`",
    label = "annotate the function"
)]
pub trait Def: Sized + Send + Sync + 'static {
    /// What the first parameter refers to: [`Cx`](crate::Cx), or the board of an orchestrator.
    type Context: Context;
    /// Which of the three it is.
    type Kind;
    /// The parameters after the context, as a tuple.
    type Args: Args;
    /// What a success holds.
    type Output: Payload;
    /// What its attribute says.
    const META: Meta;

    /// Its body, not yet polled.
    fn body(cx: &Self::Context, args: Self::Args) -> Body<'_, Self::Output>;
}

/// A function with `#[step]`.
#[diagnostic::on_unimplemented(
    message = "a plan and a list of tools are made of steps, and this is not a `#[step]`",
    label = "not a `#[step]` that takes `&Cx`",
    note = "an `#[agent]` or an `#[orchestrator]` is assigned by an orchestrator: `board.assign(…)`"
)]
pub trait Step: Def<Kind = kind::Step, Context = Cx> {}

impl<D: Def<Kind = kind::Step, Context = Cx>> Step for D {}

/// A function with `#[agent]`.
#[diagnostic::on_unimplemented(
    message = "this is not an `#[agent]`",
    label = "not an `#[agent]` that takes `&Cx`",
    note = "an agent is an `async fn name(cx: &Cx, …) -> Result<…>` with `#[agent]`"
)]
pub trait Agent: Def<Kind = kind::Agent, Context = Cx> {}

impl<D: Def<Kind = kind::Agent, Context = Cx>> Agent for D {}

/// A function with `#[orchestrator]`.
#[diagnostic::on_unimplemented(
    message = "this is not an `#[orchestrator]`",
    label = "not an `#[orchestrator]`",
    note = "an orchestrator is an `async fn name(board: &Board, …) -> Result<…>` with `#[orchestrator]`"
)]
pub trait Orchestrator: Def<Kind = kind::Orchestrator> {}

impl<D: Def<Kind = kind::Orchestrator>> Orchestrator for D {}

/// What a body is given: the engine makes it from the scope of the body. Implemented by [`Cx`](crate::Cx) and by the
/// board of an orchestrator, and by nothing else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a context",
    label = "expected `&Cx`, or `&Board` for an orchestrator"
)]
pub trait Context: Send + Sync + Sized + 'static {
    /// The scope of the body that it was given to.
    #[doc(hidden)]
    fn scope(&self) -> &Arc<Scope>;

    /// The context of a body that is about to be driven in `scope`.
    #[doc(hidden)]
    fn of(scope: Arc<Scope>) -> Self;
}

/// The recorded form of a body's failure.
pub(crate) fn recorded<T>(result: Result<T>) -> Result<T, Error> {
    result.map_err(Error::record)
}
