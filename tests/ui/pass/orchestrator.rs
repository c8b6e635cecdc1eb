//! An orchestrator is a value like a step is: what it is called with and what it gives can be read from its name.

use std::sync::Arc;

use neuron::{Callable, Context, Orchestrator, Result, def::Def, orchestrator, scope::Scope};

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
async fn digest(board: &Board, urls: Vec<String>) -> Result<usize> {
    let _ = board;
    Ok(urls.len())
}

#[orchestrator(name = "twice")]
async fn digest_twice(board: &Board, urls: Vec<String>) -> Result<usize> {
    Ok(digest(board, urls.clone()).await? + digest(board, urls).await?)
}

fn run<M, F: Callable<M>>(_: F)
where
    F::Def: Orchestrator + Def<Args = (Vec<String>,), Output = usize, Context = Board>,
{
}

fn main() {
    run(digest);
    run(digest_twice);
}
