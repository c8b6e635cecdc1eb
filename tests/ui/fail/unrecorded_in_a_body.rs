// A stable compiler shows warnings where it is told to deny them.
#![deny(deprecated)]

use std::time::{Duration, Instant, SystemTime};

use neuron::{Cx, Result, agent, step};
use orchestrator::Board;

#[step]
async fn read(_cx: &Cx, path: String) -> Result<String> {
    Ok(std::fs::read_to_string(path)?)
}

#[agent]
async fn scout(cx: &Cx, path: String) -> Result<String> {
    let began = SystemTime::now();
    let task = tokio::spawn(async { std::fs::read_to_string("here") });
    println!("{began:?} {:?}", Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    drop(task.await);
    Ok(read(cx, path).await?)
}

#[neuron::orchestrator]
async fn lead(board: &Board) -> Result<()> {
    let _ = board;
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

#[agent]
#[allow(deprecated)]
async fn reckless(cx: &Cx) -> Result<()> {
    let _ = (cx, Instant::now());
    Ok(())
}

#[agent(allow(unrecorded))]
async fn deliberate(cx: &Cx) -> Result<()> {
    let _ = (cx, Instant::now());
    Ok(())
}

fn main() {}
