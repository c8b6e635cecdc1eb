use neuron::{Cx, Result, step};

struct Page;

#[step]
async fn fetch(cx: &Cx) -> Result<Page> {
    let _ = cx;
    Ok(Page)
}

fn main() {}
