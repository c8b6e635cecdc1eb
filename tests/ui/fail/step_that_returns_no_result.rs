use neuron::{Cx, step};

#[step]
async fn count(cx: &Cx) -> u32 {
    let _ = cx;
    1
}

fn main() {}
