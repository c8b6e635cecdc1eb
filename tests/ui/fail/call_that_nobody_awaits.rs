#![deny(unused_must_use)]

use neuron::{Cx, Result, step};

#[step]
async fn ping(_: &Cx) -> Result<u32> {
    Ok(1)
}

#[step]
async fn forget(cx: &Cx) -> Result<u32> {
    ping(cx);
    Ok(1)
}

fn main() {}
