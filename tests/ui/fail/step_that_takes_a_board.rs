use std::sync::Arc;

use neuron::{Context, Result, scope::Scope, step};

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
async fn fetch(board: &Board, url: String) -> Result<String> {
    let _ = board;
    Ok(url)
}

fn main() {}
