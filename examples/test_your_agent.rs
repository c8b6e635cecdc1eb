//! Tests of an agent of yours: time that stands until the test moves it, a step that fails when the test says so, what the
//! log is expected to say, a crash at every commit, and a recorded run played again. They would stand in `tests/`; here
//! they are a program, so that you see them pass.
//!
//! ```text
//! $ cargo run --example test_your_agent -- test_your_agent.db
//! it waits an hour and tries again: ok
//! a crash at any commit does no harm: ok
//! what was recorded is played again, and nothing is fetched: ok
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::time::Duration;

use orchestrator::{
    prelude::*,
    testing::{Kit, assert_log, crash_matrix},
};

#[step(retry(2, backoff = "1h"))]
async fn fetch(_cx: &Cx, url: String) -> Result<String> {
    Ok(format!("what {url} says"))
}

#[agent]
async fn reader(cx: &Cx, url: String) -> Result<usize> {
    Ok(fetch(cx, url).await?.len())
}

#[orchestrator]
async fn read(board: &Board, url: String) -> Result<usize> {
    Ok(board.assign(reader, url).await?)
}

/// Would be `#[tokio::test]`, as the others.
async fn it_waits_an_hour_and_tries_again() -> Result<()> {
    let kit = Kit::new().await?;
    kit.fail("fetch").on_attempt(1).with("busy");
    let running = kit.run(read, "a.b".into()).start().await?;
    kit.reached("step.attempted", "fetch").await?;
    kit.advance(Duration::from_hours(1)).await;
    assert_eq!(running.await?, 13);
    assert_log!(
        kit.ledger(),
        r#"
        step.started    fetch attempt=1 args={"url":"a.b"}
        step.attempted  fetch
        step.started    fetch attempt=2
        step.completed  fetch output="what a.b says"
        "#
    );
    Ok(())
}

async fn a_crash_at_any_commit_does_no_harm() -> Result<()> {
    let survived = crash_matrix(Neuron::builder, read, "a.b".into()).await?;
    assert!(survived.crashes > 10, "{survived:?}");
    Ok(())
}

/// `recorded` would be a copy of a store of yours, kept beside the test.
async fn what_was_recorded_is_played_again(recorded: &Neuron) -> Result<()> {
    let kit = Kit::new().await?;
    kit.play(recorded.ledger(), &RunId::new("monday")?)?;
    assert_eq!(kit.run(read, "a.b".into()).await?, 13);
    assert!(kit.faults().unplayed().is_empty());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "test_your_agent.db".into());
    let recorded = Neuron::open(store).await?;
    recorded.run(read, "a.b".into()).id("monday").await?;

    it_waits_an_hour_and_tries_again().await?;
    println!("it waits an hour and tries again: ok");
    a_crash_at_any_commit_does_no_harm().await?;
    println!("a crash at any commit does no harm: ok");
    what_was_recorded_is_played_again(&recorded).await?;
    println!("what was recorded is played again, and nothing is fetched: ok");
    Ok(())
}
