use neuron::{Cx, Result, agent};

#[agent]
async fn scout(cx: &Cx, url: String) -> Result<String> {
    let _ = cx;
    Ok(url)
}

fn main() {
    let _ = neuron::tool(scout);
}
