use neuron::{Cx, Node, Plan, Result, plan};

async fn fetch(cx: &Cx, url: String) -> Result<String> {
    let _ = cx;
    Ok(url)
}

#[plan]
fn outline(plan: &Plan, url: Node<String>) -> Node<String> {
    plan.step(fetch, url)
}

fn main() {}
