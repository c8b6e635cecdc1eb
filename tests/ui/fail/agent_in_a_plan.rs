use neuron::{Cx, Node, Plan, Result, agent, plan};

#[agent]
async fn scout(cx: &Cx, url: String) -> Result<String> {
    let _ = cx;
    Ok(url)
}

#[plan]
fn outline(plan: &Plan, url: Node<String>) -> Node<String> {
    plan.step(scout, url)
}

fn main() {}
