use neuron::{Cx, Result, on};

#[on("orders.placed")]
async fn ship(cx: &Cx, order: String) -> Result<()> {
    let _ = (cx, order);
    Ok(())
}

fn main() {}
