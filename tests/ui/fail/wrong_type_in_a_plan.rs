use neuron::{Cx, Node, Plan, Result, plan, step};

#[step]
async fn length(cx: &Cx, text: String) -> Result<u32> {
    let _ = cx;
    Ok(text.len() as u32)
}

#[plan]
fn outline(plan: &Plan, text: Node<String>) -> Node<u32> {
    plan.step(length, plan.step(length, text))
}

fn main() {}
