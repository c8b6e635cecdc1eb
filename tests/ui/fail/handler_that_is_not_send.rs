use std::rc::Rc;

use neuron::{Event, Result, on};

#[on("orders.placed")]
async fn ship(event: &Event) -> Result<()> {
    let held = Rc::new(event.attempt());
    std::future::ready(()).await;
    drop(held);
    Ok(())
}

fn main() {}
