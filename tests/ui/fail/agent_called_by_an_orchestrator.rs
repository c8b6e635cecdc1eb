use neuron::{Cx, Result, agent, orchestrator};
use orchestrator::Board;

#[agent]
async fn scout(_cx: &Cx, url: String) -> Result<String> {
    Ok(url)
}

#[orchestrator]
async fn digest(board: &Board, url: String) -> Result<String> {
    Ok(scout(board, url).await?)
}

fn main() {}
