use neuron::{Event, Result, on, step};

// Several mistakes, several messages.
#[on("orders..placed", inflight = 8, from = yesterday, once)]
async fn ship(event: &mut Event, order: &str) -> Result<()> {
    let _ = (event, order);
    Ok(())
}

#[on("orders.*")]
async fn bill(event: &Event, order: String, cents: u64) -> Result<()> {
    let _ = (event, order, cents);
    Ok(())
}

#[on(name = "packer")]
async fn pack(event: &Event) -> Result<()> {
    let _ = event;
    Ok(())
}

#[on("orders.*")]
#[step]
async fn both(event: &Event) -> Result<()> {
    let _ = event;
    Ok(())
}

#[on("orders.*")]
struct Orders;

fn main() {
    let _ = (ship, bill, pack, both, Orders);
}
