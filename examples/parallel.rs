//! Agents work beside one another, and one of them waits for the others because their outputs are its arguments. Who is
//! first in a race is on the log, so it is first in every replay.
//!
//! ```text
//! $ cargo run --example parallel -- parallel.db
//! 1 + 4 + 9 = 14
//! the quick one won
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::time::Duration;

use orchestrator::prelude::*;

#[step]
async fn square(_cx: &Cx, number: u64) -> Result<u64> {
    Ok(number * number)
}

#[agent]
async fn squarer(cx: &Cx, number: u64) -> Result<u64> {
    Ok(square(cx, number).await?)
}

#[agent]
async fn adder(_cx: &Cx, numbers: Vec<u64>) -> Result<String> {
    let words: Vec<_> = numbers.iter().map(u64::to_string).collect();
    Ok(format!("{} = {}", words.join(" + "), numbers.iter().sum::<u64>()))
}

/// Two timers, and the first that fires.
#[agent]
async fn racer(cx: &Cx) -> Result<String> {
    let timers = [Duration::from_hours(1), Duration::from_millis(1)];
    let (first, ()) = cx.race(timers.map(|time| cx.sleep(time))).await?;
    let names = ["patient", "quick"];
    Ok(format!("the {} one won", names[first]))
}

#[orchestrator]
async fn work(board: &Board) -> Result<(String, String)> {
    let squares: Vec<_> = (1..=3).map(|number| board.assign(squarer, number)).collect();
    let mut numbers = Vec::new();
    let race = board.assign(racer, ());
    for one in squares {
        numbers.push(one.await?);
    }
    let sum = board.assign(adder, numbers).await?;
    Ok((sum, race.await?))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "parallel.db".into());
    let neuron = Neuron::open(store).await?;
    let (sum, race) = neuron.run(work, ()).await?;
    println!("{sum}\n{race}");
    Ok(())
}
