//! Values that are too large for a payload: the run's input, arguments, outputs.

use neuron::Digest;
use orchestrator::prelude::*;

use crate::{fatal, marks::mark};

/// What the run is given: more than a record may hold.
pub(crate) fn luggage() -> String {
    let line = |number: u32| format!("{number:07}\n");
    (0..140_000).map(line).collect()
}

#[step]
async fn lift(cx: &Cx, text: String) -> Result<String> {
    mark(cx, "lift")?;
    Ok(text[..text.len() / 2].into())
}

#[step]
async fn rest(_cx: &Cx) -> Result<()> {
    fatal("rest");
    Ok(())
}

#[agent]
async fn porter(cx: &Cx, text: String) -> Result<String> {
    let half = lift(cx, text).await?;
    let quarter = lift(cx, half.clone()).await?;
    rest(cx).await?;
    Ok(half + &quarter)
}

#[orchestrator]
pub(crate) async fn station(board: &Board, text: String) -> Result<String> {
    let carried = board.assign(porter, text.clone()).await?;
    Ok(format!(
        "{} then {}",
        Digest::content(text.as_bytes()),
        Digest::content(carried.as_bytes())
    ))
}
