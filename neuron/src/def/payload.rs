use std::{any::Any, fmt, future::Future};

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::{BoxError, Error, Json, Result};

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

/// The recorded form of a body's failure.
pub(crate) fn recorded<T>(result: Result<T>) -> Result<T, Error> {
    result.map_err(Error::record)
}

/// What a body gave: its recorded form, and what that form decodes to, so that it is decoded once.
pub struct Ran {
    /// The recorded form.
    pub json: Json,
    /// What it decodes to.
    pub typed: Box<dyn Any + Send>,
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

impl Ran {
    /// Records a value. What is handed on is what was recorded, so that live and replay agree.
    pub(crate) fn of<T: Payload>(output: &T) -> Result<Self, Error> {
        let recorded = Json::of(output).and_then(|json| Ok((json.decode::<T>()?, json)));
        let (typed, json) = recorded.map_err(|error| error.context("the output cannot go on the log"))?;
        Ok(Self {
            json,
            typed: Box::new(typed),
        })
    }
}
