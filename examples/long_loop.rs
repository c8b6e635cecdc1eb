//! A loop that may run for a year: every hundred rounds the agent begins again with what it knows, in one append, so that
//! a restart replays a hundred rounds at most.
//!
//! ```text
//! $ cargo run --example long_loop -- long_loop.db
//! 1000 rounds, 499500 in all; it began again 9 times
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use neuron::vocabulary::{Message as _, step::AgentContinued};
use neuron::{Kind, store::Select};
use orchestrator::prelude::*;

#[step]
async fn look(_cx: &Cx, round: u64) -> Result<u64> {
    Ok(round)
}

#[agent]
async fn watcher(cx: &Cx, first: u64, mut seen: u64) -> Result<u64> {
    for round in first..first + 100 {
        seen += look(cx, round).await?;
    }
    if first + 100 == 1000 {
        return Ok(seen);
    }
    Ok(cx.continue_with(watcher, (first + 100, seen)).await?)
}

#[orchestrator]
async fn watch(board: &Board) -> Result<u64> {
    Ok(board.assign(watcher, (0, 0)).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "long_loop.db".into());
    let neuron = Neuron::builder().durability(Durability::Process).open(store).await?;
    let seen = neuron.run(watch, ()).await?;
    let again = neuron
        .ledger()
        .read(Select::Kind(Kind::new(AgentContinued::TYPE)?))
        .envelopes();
    println!("1000 rounds, {seen} in all; it began again {} times", again.count());
    Ok(())
}
