use futures::future::BoxFuture;

use crate::{
    Error, Result,
    def::{Entry, Ran},
    scope::{Boundary, Entering},
};

/// The attempt that a test makes of a body. What it gives is held to the step's own type.
pub(super) fn cross(
    boundary: &dyn Boundary,
    call: Entering,
    entry: &'static Entry,
    body: BoxFuture<'static, Result<Ran, Error>>,
) -> BoxFuture<'static, Result<Ran, Error>> {
    let around = boundary.around(call, Box::pin(async { body.await.map(|ran| ran.json) }));
    Box::pin(async move {
        let json = around.await?;
        entry
            .check(&json)
            .map_err(|error| error.context(format!("what a test gave as the output of `{}`", entry.meta().name)))?;
        // Nothing typed: the caller decodes what is recorded, as in a replay.
        Ok(Ran {
            json,
            typed: Box::new(()),
        })
    })
}
