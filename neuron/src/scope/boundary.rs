use std::{fmt, sync::Arc};

use futures::future::BoxFuture;

use crate::{Error, Json, Result};

/// A step's body that is about to be entered: one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Entering {
    /// The step.
    pub name: &'static str,
    /// Its key on the log: the same in all attempts of one call.
    pub key: Arc<str>,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Its arguments as they are recorded, by parameter.
    pub args: Json,
}

/// Stands between the engine and the bodies of steps. Tests fail, delay, stop or replace bodies here; a program has none.
///
/// Whatever it gives is treated as the body's own outcome: an output goes on the log, an error is retried as the step says.
pub trait Boundary: Send + Sync + fmt::Debug + 'static {
    /// The attempt that is driven in place of `body`, which need not be polled.
    fn around(
        &self,
        call: Entering,
        body: BoxFuture<'static, Result<Json, Error>>,
    ) -> BoxFuture<'static, Result<Json, Error>>;
}
