use neuron::{Cx, Result, agent, orchestrator};
use orchestrator::Board;

#[agent]
async fn count(_cx: &Cx, url: String) -> Result<usize> {
    Ok(url.len())
}

#[agent]
async fn print(_cx: &Cx, page: String) -> Result<()> {
    drop(page);
    Ok(())
}

#[orchestrator]
async fn passed_on(board: &Board, url: String) -> Result<()> {
    let counted = board.assign(count, url);
    Ok(board.assign(print, counted).await?)
}

#[orchestrator]
async fn awaited(board: &Board, url: String) -> Result<String> {
    Ok(board.assign(count, url).await?)
}

fn main() {}
