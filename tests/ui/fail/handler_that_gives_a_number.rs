use neuron::{Event, Result, on};

#[on("orders.placed")]
async fn ship(event: &Event, order: String) -> Result<usize> {
    let _ = event;
    Ok(order.len())
}

fn main() {}
