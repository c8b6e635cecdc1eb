use neuron::{Cx, Node, Plan, Result, plan, step};

#[step]
async fn fetch(_cx: &Cx, url: String) -> Result<String> {
    Ok(url)
}

#[plan]
fn outline(plan: &Plan, url: Node<String>) {
    plan.step(fetch, url);
}

#[plan]
fn number(_plan: &Plan, url: Node<String>) -> u32 {
    drop(url);
    7
}

fn main() {
    let _ = (outline, number);
}
