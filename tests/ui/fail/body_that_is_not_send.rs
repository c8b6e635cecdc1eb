use std::rc::Rc;

use neuron::{Cx, Result, step};

#[step]
async fn ping(_: &Cx) -> Result<()> {
    Ok(())
}

#[step]
async fn shared(cx: &Cx) -> Result<u32> {
    let count = Rc::new(1);
    ping(cx).await?;
    Ok(*count)
}

fn main() {}
