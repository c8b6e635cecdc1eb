//! Everything that a body can do, in one run: a fan-out of a plan, steps below steps, a thread, a timer, an artifact, and
//! a payment that must happen once.

use std::time::Duration;

use orchestrator::prelude::*;

use crate::marks::{is_marked, mark};

#[step]
async fn saw(cx: &Cx, log: u32) -> Result<u32> {
    mark(cx, "saw")?;
    Ok(log * 2)
}

#[step]
async fn stack(cx: &Cx, boards: Vec<u32>) -> Result<u32> {
    mark(cx, "stack")?;
    Ok(boards.into_iter().sum())
}

#[plan]
fn sawmill(plan: &Plan, logs: Node<Vec<u32>>) -> Node<u32> {
    plan.step(stack, plan.each(saw, logs))
}

#[step]
async fn sand(cx: &Cx, board: u32) -> Result<u32> {
    mark(cx, "sand")?;
    let first = polish(cx, board).await?;
    Ok(polish(cx, first).await?)
}

#[step]
async fn polish(cx: &Cx, board: u32) -> Result<u32> {
    mark(cx, "polish")?;
    cx.artifact("shine.txt", "shine", board.to_string()).await?;
    Ok(board + 1)
}

#[step]
async fn glue(cx: &Cx, drops: u32) -> Result<u32> {
    mark(cx, "glue")?;
    Ok(drops)
}

#[step(once, resolve = was_paid)]
async fn pay(cx: &Cx, cents: u32) -> Result<u32> {
    mark(cx, "pay")?;
    Ok(cents)
}

/// Asks the world whether the payment was made.
#[step]
async fn was_paid(cx: &Cx, cents: u32) -> Result<Option<u32>> {
    Ok(is_marked(cx, "pay")?.then_some(cents))
}

#[agent]
async fn joiner(cx: &Cx, boards: u32) -> Result<String> {
    let glued = cx.spawn_thread("glue", |cx| async move {
        let glued = glue(&cx, 7).await? + glue(&cx, 7).await?;
        cx.sleep(Duration::from_millis(1)).await?;
        Ok::<_, Error>(glued)
    });
    let (sanded, dry) = futures::join!(sand(cx, boards), cx.sleep(Duration::from_millis(2)));
    dry?;
    let sanded = sanded?;
    let drawing = cx
        .artifact("drawing.txt", "drawing", format!("{sanded} boards"))
        .await?;
    let paid = pay(cx, sanded * 10).await?;
    Ok(format!(
        "{sanded} sanded, {} glued, {paid} paid, drawing {}",
        glued.await?,
        drawing.0
    ))
}

#[orchestrator]
pub(crate) async fn workshop(board: &Board, logs: Vec<u32>) -> Result<String> {
    let boards = board.assign(sawmill, logs);
    Ok(board.assign(joiner, boards).await?)
}
