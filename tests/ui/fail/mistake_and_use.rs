use neuron::{Cx, Node, Plan, Result, plan, step};

#[step(colour = "red")]
fn fetch(cx: &Cx, url: String) -> Result<String> {
    let _ = cx;
    Ok(url)
}

// One mistake is one message: uses of the step say nothing more.
#[step]
async fn twice(cx: &Cx, url: String) -> Result<String> {
    Ok(fetch(cx, fetch(cx, url).await?).await?)
}

#[plan]
fn outline(plan: &Plan, url: Node<String>) -> Node<String> {
    plan.step(twice, plan.step(fetch, url))
}

fn main() {}
