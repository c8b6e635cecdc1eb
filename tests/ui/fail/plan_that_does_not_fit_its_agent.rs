use neuron::{Cx, Node, Plan, Result, agent, plan, step};

#[step]
async fn length(cx: &Cx, text: String) -> Result<u32> {
    let _ = cx;
    Ok(text.len() as u32)
}

#[plan]
fn outline(plan: &Plan, text: Node<String>) -> Node<u32> {
    plan.step(length, text)
}

#[agent(plan = outline)]
async fn scout(cx: &Cx, number: u64) -> Result<u32> {
    let _ = (cx, number);
    Ok(1)
}

fn main() {}
