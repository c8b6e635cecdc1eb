use neuron::{Cx, step};

#[step]
async fn name(cx: &Cx) -> String {
    let _ = cx;
    String::new()
}

fn main() {}
