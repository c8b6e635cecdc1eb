//! A step may call itself, and two may call each other, without a box.

use neuron::{Cx, Result, step};

#[step]
async fn count_down(cx: &Cx, from: u32) -> Result<u32> {
    if from == 0 {
        Ok(0)
    } else {
        Ok(count_down(cx, from - 1).await? + 1)
    }
}

#[step]
async fn even(cx: &Cx, n: u32) -> Result<bool> {
    if n == 0 { Ok(true) } else { Ok(odd(cx, n - 1).await?) }
}

#[step]
async fn odd(cx: &Cx, n: u32) -> Result<bool> {
    if n == 0 { Ok(false) } else { Ok(even(cx, n - 1).await?) }
}

fn main() {}
