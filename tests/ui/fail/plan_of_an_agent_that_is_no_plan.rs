use neuron::{Cx, Result, agent, step};

#[step]
async fn fetch(cx: &Cx, url: String) -> Result<String> {
    let _ = cx;
    Ok(url)
}

#[agent(plan = fetch)]
async fn scout(cx: &Cx, url: String) -> Result<String> {
    Ok(fetch(cx, url).await?)
}

fn main() {}
