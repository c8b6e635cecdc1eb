//! What a handler has in hand as its build is drained: it may end it, and what it does not end is another build's.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use orchestrator::{
    builds::{BuildOrder, order_build},
    neuron::{
        Author, ConsumerId, Contract, Draft, Ledger, Pattern, SystemClock, Topic, consumer::Progress, limits,
        pipeline::Pipeline, store::Memory,
    },
    prelude::*,
};
use tokio::sync::Notify;

/// How long a handler works, and how often one was given the message.
struct Desk {
    takes: Duration,
    given: AtomicU32,
    rings: Notify,
}

#[on("letters", from = start, retry(1))]
async fn send(event: &Event) -> Result<()> {
    let desk = event.state::<Arc<Desk>>()?;
    desk.given.fetch_add(1, Ordering::SeqCst);
    desk.rings.notify_one();
    tokio::time::sleep(desk.takes).await;
    Ok(())
}

/// How often a letter is handled whose handler takes so long, where the build is drained meanwhile and another one stands
/// by; and how often it was laid aside.
async fn handled(takes: Duration) -> (u32, usize) {
    let ledger = Ledger::over(
        Arc::new(Memory::new().unwrap()),
        Arc::new(SystemClock),
        Pipeline::default(),
    )
    .unwrap();
    let letters = Pattern::new("letters").unwrap();
    ledger
        .declare(&letters, Contract::Durable, &Author::cli())
        .await
        .unwrap();
    let draft = Draft::new(Topic::new("letters").unwrap(), Author::cli(), "letter").unwrap();
    ledger.publish(draft).await.unwrap();
    let desk = Arc::new(Desk {
        takes,
        given: AtomicU32::new(0),
        rings: Notify::new(),
    });
    for build in ["shop 1", "shop 2"] {
        let builder = Neuron::builder().build(build).state(desk.clone());
        let neuron = builder.over(ledger.clone()).await.unwrap();
        tokio::spawn(async move { neuron.serve().await });
        if build == "shop 1" {
            desk.rings.notified().await;
        }
    }
    order_build(&ledger, "shop 1", BuildOrder::Drain, None, Author::cli())
        .await
        .unwrap();
    tokio::time::sleep(4 * limits::DRAIN_GRACE).await;
    let progress = Progress::new(ConsumerId::new("send").unwrap());
    let parked = ledger.fold(&progress, None).unwrap().state.parked;
    (desk.given.load(Ordering::SeqCst), parked.len())
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_has_in_hand_as_its_build_is_drained_it_ends() {
    assert_eq!(handled(limits::DRAIN_GRACE / 2).await, (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_does_not_end_is_handed_to_another_build_uncounted() {
    assert_eq!(handled(10 * limits::DRAIN_GRACE).await, (2, 0));
}
