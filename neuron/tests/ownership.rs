//! Ownership between incarnations of one process, on the store in memory; processes really killed are tested elsewhere.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::{sync::Arc, time::Duration};

use neuron::{
    Append, Author, Contract, Draft, ErrorKind, Ledger, Pattern, SystemClock, Topic,
    ownership::{Ownership, Takeover},
    pipeline::Pipeline,
    store::Memory,
};

fn ledger() -> Ledger {
    Ledger::over(
        Arc::new(Memory::new().unwrap()),
        Arc::new(SystemClock),
        Pipeline::default(),
    )
    .unwrap()
}

fn join(ledger: &Ledger) -> Ownership {
    Ownership::join(ledger.clone(), Duration::from_secs(9)).unwrap()
}

#[tokio::test]
async fn a_name_has_one_living_owner() {
    let ledger = ledger();
    let (first, second) = (join(&ledger), join(&ledger));
    assert_eq!(first.claim("run:a").await.unwrap().epoch, 1);
    assert_eq!(first.claim("run:a").await.unwrap().from, Takeover::Own);
    let error = second.claim("run:a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(error.detail::<u32>(), Some(std::process::id()));
    first.release("run:a").await.unwrap();
    assert_eq!(second.claim("run:a").await.unwrap().epoch, 2);
}

#[tokio::test]
async fn a_dead_owner_is_taken_over_at_once_and_can_append_nothing() {
    let ledger = ledger();
    ledger
        .declare(&Pattern::new("notes").unwrap(), Contract::Durable, &Author::cli())
        .await
        .unwrap();
    let note = || Draft::new(Topic::new("notes").unwrap(), Author::cli(), "note").unwrap();
    let first = join(&ledger);
    let old = first.claim("run:a").await.unwrap();
    drop(first);
    let new = join(&ledger).claim("run:a").await.unwrap();
    assert_eq!((new.epoch, new.from), (2, Takeover::Dead));
    let stale = ledger
        .append(Append::of([note()]).owner("run:a", old.epoch))
        .await
        .unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Fenced);
    assert!(stale.to_string().contains("epoch 2"), "{stale}");
    ledger
        .append(Append::of([note()]).owner("run:a", new.epoch))
        .await
        .unwrap();
}

#[tokio::test]
async fn of_many_that_claim_at_once_one_wins() {
    let ledger = ledger();
    let owners: Vec<Ownership> = (0..20).map(|_| join(&ledger)).collect();
    let claims = futures::future::join_all(owners.iter().map(|owner| owner.claim("run:a"))).await;
    assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hung_owner_is_taken_over_after_its_heartbeat_stood_still_for_three_polls() {
    let ledger = ledger();
    let (hung, other) = (join(&ledger), join(&ledger));
    hung.claim("run:a").await.unwrap();
    let claimed = other.claim_when_free("run:a").await.unwrap();
    assert_eq!((claimed.epoch, claimed.from), (2, Takeover::Hung));
    assert_eq!(hung.release("run:a").await.unwrap_err().kind(), ErrorKind::Fenced);
}
