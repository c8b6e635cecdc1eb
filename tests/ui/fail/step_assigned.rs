use neuron::{Cx, Result, orchestrator, step};
use orchestrator::Board;

#[step]
async fn fetch(_cx: &Cx, url: String) -> Result<String> {
    Ok(url)
}

#[orchestrator]
async fn digest(board: &Board, url: String) -> Result<String> {
    Ok(board.assign(fetch, url).await?)
}

fn main() {}
