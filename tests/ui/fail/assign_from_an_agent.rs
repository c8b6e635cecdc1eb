use neuron::{Cx, Result, agent};

#[agent]
async fn scout(cx: &Cx, url: String) -> Result<String> {
    let _ = cx;
    Ok(url)
}

#[agent]
async fn lead(cx: &Cx, url: String) -> Result<String> {
    Ok(cx.assign(scout, url).await?)
}

fn main() {}
