use neuron::{Cx, Result, plan};

#[plan]
#[neuron::step]
async fn fetch(cx: &Cx) -> Result<()> {
    let _ = cx;
    Ok(())
}

fn main() {}
