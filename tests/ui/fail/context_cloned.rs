use neuron::{Cx, Result, step};

#[step]
async fn keep(cx: &Cx) -> Result<u32> {
    let mine: Cx = cx.clone();
    let _ = mine;
    Ok(1)
}

fn main() {}
