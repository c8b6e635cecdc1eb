//! One agent with two steps. What a step gave is recorded, so the second run of the same id answers without running any.
//!
//! ```text
//! $ cargo run --example agent -- agent.db
//! reading “the whole log”
//! counting 13 letters
//! 13
//! again: 13
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use orchestrator::prelude::*;

#[step]
async fn read(_cx: &Cx, title: String) -> Result<String> {
    println!("reading “{title}”");
    Ok(title)
}

#[step]
async fn count(_cx: &Cx, text: String) -> Result<usize> {
    println!("counting {} letters", text.len());
    Ok(text.len())
}

/// Its body runs again after a crash; its steps do not.
#[agent]
async fn reader(cx: &Cx, title: String) -> Result<usize> {
    let text = read(cx, title).await?;
    Ok(count(cx, text).await?)
}

#[orchestrator]
async fn work(board: &Board, title: String) -> Result<usize> {
    Ok(board.assign(reader, title).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "agent.db".into());
    let neuron = Neuron::open(store).await?;
    let title = || "the whole log".to_owned();
    println!("{}", neuron.run(work, title()).id("first").await?);
    println!("again: {}", neuron.run(work, title()).id("first").await?);
    Ok(())
}
