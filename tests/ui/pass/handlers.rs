//! Handlers of every shape, under names that mean something else to an expansion.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, missing_debug_implementations, unreachable_pub, unused)]

use neuron::{Append, Event as Happening, on};

#[allow(dead_code)]
mod core {}
#[allow(dead_code)]
mod std {}

/// What is read; it need not be written.
#[derive(Debug, serde::Deserialize)]
pub struct Order {
    cents: u64,
}

type Reply = ::std::result::Result<(), ::std::string::String>;

#[on("orders.placed")]
async fn body(_: &Happening, Order { cents }: Order) -> Reply {
    let _ = cents;
    Ok(())
}

/// Bills.
#[on("orders.*", name = "bill-all", kind("order.placed"), from = start, retry(3, backoff = "1s"), timeout = "5m", in_flight = 1)]
pub async fn r#match(_event: &Happening, _order: Order) -> ::neuron::Result<Append> {
    Ok(Append::default())
}

#[on("**")]
async fn inventory(event: &neuron::Event) -> ::std::io::Result<()> {
    let _ = event.attempt();
    Ok(())
}

#[deprecated]
#[on("/input/**")]
async fn old(_: &Happening) -> Reply {
    Ok(())
}

#[cfg(any())]
#[on("gone")]
async fn never(_: &Happening, gone: Gone) -> Reply {
    Ok(())
}

fn main() {
    #[on("inside")]
    async fn nested(_: &Happening, __0: ::std::vec::Vec<u8>) -> Reply {
        let _ = __0;
        Ok(())
    }
}
