use std::sync::Arc;

use neuron::{Context, Cx, Result, agent, orchestrator, scope::Scope};

/// Stands for the board, which is another context than that of a step.
struct Board(Arc<Scope>);

impl Context for Board {
    fn scope(&self) -> &Arc<Scope> {
        &self.0
    }

    fn of(scope: Arc<Scope>) -> Self {
        Self(scope)
    }
}

#[orchestrator]
async fn digest(board: &Board, url: String) -> Result<String> {
    let _ = board;
    Ok(url)
}

#[agent]
async fn scout(cx: &Cx, url: String) -> Result<String> {
    Ok(digest(cx, url).await?)
}

fn main() {}
