use neuron::{Cx, Node, Plan, Result, plan, step};

#[step]
async fn join(cx: &Cx, a: String, b: String) -> Result<String> {
    let _ = cx;
    Ok(a + &b)
}

#[plan]
fn outline(plan: &Plan, text: Node<String>) -> Node<String> {
    plan.step(join, text)
}

fn main() {}
