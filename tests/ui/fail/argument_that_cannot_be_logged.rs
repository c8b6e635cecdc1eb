use neuron::{Cx, Result, step};

struct Page;

#[step]
async fn show(cx: &Cx, times: u32, page: Page) -> Result<u32> {
    let _ = (cx, page);
    Ok(times)
}

fn main() {}
