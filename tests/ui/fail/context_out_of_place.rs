use neuron::{Cx, Node, Plan, Result, plan, step};
use orchestrator::Board;

#[step]
async fn last(url: String, cx: &Cx) -> Result<String> {
    let _ = cx;
    Ok(url)
}

#[step]
async fn owned(cx: Cx, url: String) -> Result<String> {
    let _ = cx;
    Ok(url)
}

#[step]
async fn two(cx: &Cx, board: &Board, url: String) -> Result<String> {
    let _ = (cx, board);
    Ok(url)
}

#[plan]
fn outline(url: Node<String>) -> Node<String> {
    url
}

#[plan]
fn by_value(plan: Plan, url: Node<String>) -> Node<String> {
    drop(plan);
    url
}

fn main() {
    let _ = (last, owned, two, outline, by_value);
}
