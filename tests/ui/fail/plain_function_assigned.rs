use neuron::{Cx, Result, orchestrator};
use orchestrator::Board;

async fn scout(_cx: &Cx, url: String) -> Result<String> {
    Ok(url)
}

#[orchestrator]
async fn digest(board: &Board, url: String) -> Result<String> {
    Ok(board.assign(scout, url).await?)
}

fn main() {}
