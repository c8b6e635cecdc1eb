use std::sync::Arc;

use neuron::{Context, Cx, Result, orchestrator, scope::Scope, step};

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

#[step]
async fn fetch(cx: &Cx, url: String) -> Result<String> {
    let _ = cx;
    Ok(url)
}

#[orchestrator]
async fn digest(board: &Board, url: String) -> Result<String> {
    Ok(fetch(board, url).await?)
}

fn main() {}
