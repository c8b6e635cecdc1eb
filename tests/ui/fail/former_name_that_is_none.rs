use neuron::{Cx, Result, step};

#[step(was = "fetch", was = "get page", was = "load", was = "load")]
async fn fetch(_cx: &Cx, url: String) -> Result<String> {
    Ok(url)
}

#[step(was("load"))]
async fn load(_cx: &Cx) -> Result<()> {
    Ok(())
}

fn main() {}
