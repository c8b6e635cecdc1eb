//! A saga: when a later step fails for good, the earlier ones are undone, last first. Each undoing is a step, so a crash
//! in the middle repeats none of them.
//!
//! ```text
//! $ cargo run --example saga -- saga.db
//! flight booked
//! hotel booked
//! no car left
//! hotel given back
//! flight given back
//! the trip is off: no car left
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use orchestrator::prelude::*;

/// It must not happen twice: if nobody knows whether it did, it waits for a ruling.
#[step(once)]
async fn book(_cx: &Cx, what: String) -> Result<String> {
    if what == "car" {
        println!("no car left");
        // Whoever fails before anything has happened says so, and the step is not in doubt.
        return Err(Error::not_done("no car left").into());
    }
    println!("{what} booked");
    Ok(what)
}

#[step(retry(5))]
async fn give_back(_cx: &Cx, what: String) -> Result<()> {
    println!("{what} given back");
    Ok(())
}

#[agent]
async fn traveller(cx: &Cx, wishes: Vec<String>) -> Result<String> {
    let mut booked = Vec::new();
    for wish in wishes {
        match book(cx, wish).await {
            Ok(what) => booked.push(what),
            Err(error) => {
                for what in booked.into_iter().rev() {
                    give_back(cx, what).await?;
                }
                return Ok(format!("the trip is off: {}", error.message()));
            }
        }
    }
    Ok("have a good trip".into())
}

#[orchestrator]
async fn trip(board: &Board, wishes: Vec<String>) -> Result<String> {
    Ok(board.assign(traveller, wishes).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "saga.db".into());
    let neuron = Neuron::open(store).await?;
    let wishes = ["flight", "hotel", "car"].map(str::to_owned).to_vec();
    println!("{}", neuron.run(trip, wishes).await?);
    Ok(())
}
