use neuron::{Event, Result, on};

struct Order;

#[on("orders.placed")]
async fn ship(event: &Event, order: Order) -> Result<()> {
    let _ = (event, order);
    Ok(())
}

fn main() {}
