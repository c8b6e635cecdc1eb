use neuron::{Cx, Result, agent, orchestrator};
use orchestrator::Board;

#[agent]
async fn scout(_cx: &Cx, url: String) -> Result<String> {
    Ok(url)
}

#[orchestrator]
async fn digest(board: &Board, number: u32) -> Result<String> {
    Ok(board.assign(scout, number).await?)
}

fn main() {}
