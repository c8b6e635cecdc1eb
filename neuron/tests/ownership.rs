//! Ownership between incarnations of one process, on the store in memory; processes really killed are tested elsewhere.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    sync::Arc,
    time::Duration,
};

use neuron::{
    Append, Author, Contract, Draft, ErrorKind, Ledger, Pattern, SystemClock, Topic,
    ownership::{LeaseClaimed, Ownership, Takeover},
    pipeline::Pipeline,
    store::{Memory, Options, conformance::Breaker},
    topic::catalog,
    vocabulary::Message as _,
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
    assert_eq!(error.kind(), ErrorKind::Owned);
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

/// Another process as it looks when it hangs: its slot is locked, and its heartbeat stands still.
fn hang(store: &Path, incarnation: &str) -> File {
    let folder = store.with_extension("db.owners");
    fs::create_dir_all(&folder).unwrap();
    let mut slot = File::create_new(folder.join(incarnation)).unwrap();
    slot.lock().unwrap();
    slot.write_all(b"0000000001 00000000000000000007\n").unwrap();
    slot
}

#[tokio::test]
async fn a_hung_owner_is_taken_over_after_its_heartbeat_stood_still_for_three_polls() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("owned.db");
    let ledger = Ledger::open(&store, Options::default()).unwrap();
    let slot = hang(&store, "1-hung");
    let claim = LeaseClaimed {
        name: "run:a".into(),
        incarnation: "1-hung".into(),
        epoch: 1,
        from: Takeover::Free,
    };
    let claim = claim
        .draft(catalog::leases(), Author::engine())
        .unwrap()
        .key("run:a")
        .unwrap();
    ledger.publish(claim).await.unwrap();
    let other = Ownership::join(ledger, Duration::from_millis(30)).unwrap();
    let claimed = other.claim_when_free("run:a").await.unwrap();
    assert_eq!((claimed.epoch, claimed.from), (2, Takeover::Hung));
    drop(slot);
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_the_same_process_never_counts_as_hung() {
    let ledger = ledger();
    let (first, second) = (join(&ledger), join(&ledger));
    first.claim("run:a").await.unwrap();
    let waits = tokio::time::timeout(Duration::from_mins(15), second.claim_when_free("run:a")).await;
    assert!(waits.is_err());
    first.release("run:a").await.unwrap();
    assert_eq!(second.claim_when_free("run:a").await.unwrap().from, Takeover::Free);
}

#[tokio::test]
async fn a_name_whose_release_failed_is_claimed_again_under_a_new_epoch() {
    let fault = Arc::new(Breaker::default());
    let store = Memory::with(Arc::new(SystemClock), Some(fault.clone())).unwrap();
    let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
    let owner = join(&ledger);
    owner.claim("run:a").await.unwrap();
    fault.arm();
    assert_eq!(owner.release("run:a").await.unwrap_err().kind(), ErrorKind::Full);
    let again = owner.claim("run:a").await.unwrap();
    assert_eq!((again.epoch, again.from), (2, Takeover::Own));
    assert_eq!(owner.claim("run:a").await.unwrap(), again);
}

#[tokio::test]
async fn a_name_that_is_handed_over_has_its_new_owner_at_once_and_nobody_comes_between() {
    let ledger = ledger();
    ledger
        .declare(&Pattern::new("notes").unwrap(), Contract::Durable, &Author::cli())
        .await
        .unwrap();
    let note = || Draft::new(Topic::new("notes").unwrap(), Author::cli(), "note").unwrap();
    let (first, second, third) = (join(&ledger), join(&ledger), join(&ledger));
    let old = first.claim("run:a").await.unwrap();
    assert_eq!(first.hand_over("run:a", second.incarnation()).await.unwrap(), 2);
    let stale = ledger.append(Append::of([note()]).owner("run:a", old.epoch)).await;
    assert_eq!(stale.unwrap_err().kind(), ErrorKind::Fenced);
    for other in [&first, &third] {
        assert_eq!(other.claim("run:a").await.unwrap_err().kind(), ErrorKind::Owned);
    }
    let claimed = second.claim("run:a").await.unwrap();
    assert_eq!((claimed.epoch, claimed.from), (2, Takeover::HandedOver));
    assert_eq!(second.claim("run:a").await.unwrap().from, Takeover::Own);
    ledger.append(Append::of([note()]).owner("run:a", 2)).await.unwrap();
    second.release("run:a").await.unwrap();
    assert_eq!(third.claim("run:a").await.unwrap().epoch, 3);
}

#[tokio::test]
async fn a_name_is_handed_over_only_by_its_owner_and_only_to_the_living() {
    let ledger = ledger();
    let (first, second, dead) = (join(&ledger), join(&ledger), join(&ledger));
    let gone = dead.incarnation().to_owned();
    drop(dead);
    let error = first.hand_over("run:a", second.incarnation()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    first.claim("run:a").await.unwrap();
    let error = first.hand_over("run:a", &gone).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().contains(&gone) && error.to_string().contains("run:a"),
        "{error}"
    );
    assert_eq!(first.hand_over("run:a", first.incarnation()).await.unwrap(), 1);
    // One that dies before it takes what it was given is taken over like any other.
    first.hand_over("run:a", second.incarnation()).await.unwrap();
    drop(second);
    let claimed = first.claim("run:a").await.unwrap();
    assert_eq!((claimed.epoch, claimed.from), (3, Takeover::Dead));
}

#[tokio::test]
async fn a_name_that_was_abandoned_is_claimed_again_under_a_new_epoch() {
    let ledger = ledger();
    let owner = join(&ledger);
    owner.claim("run:a").await.unwrap();
    owner.abandon("run:a");
    let again = owner.claim("run:a").await.unwrap();
    assert_eq!((again.epoch, again.from), (2, Takeover::Own));
    assert_eq!(join(&ledger).claim("run:a").await.unwrap_err().kind(), ErrorKind::Owned);
}

/// Descriptors of this process that lead into a folder.
fn descriptors(folder: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|path| path.starts_with(folder)))
        .count()
}

#[test]
fn slots_of_the_dead_are_removed_by_who_joins_and_no_descriptor_outlives_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("slots.db");
    let slots = folder.path().join("slots.db.owners");
    let ledger = Ledger::open(&store, Options::default()).unwrap();
    fs::create_dir_all(&slots).unwrap();
    // What a killed process leaves: a slot that nobody holds.
    fs::write(slots.join("1-00112233445566aa"), "0000000001 00000000000000000007\n").unwrap();
    let living = hang(&store, "1-ffeeddccbbaa9988");
    fs::write(slots.join("notes.txt"), "not a slot").unwrap();
    for _ in 0..50 {
        let owner = join(&ledger);
        let peers = owner.peers();
        assert_eq!(peers.len(), 2, "{peers:?}");
        assert!(
            peers
                .iter()
                .any(|peer| peer.incarnation == "1-ffeeddccbbaa9988" && peer.pid == 1)
        );
        assert!(descriptors(&slots) <= 2 + 1);
    }
    drop(living);
    let owner = join(&ledger);
    let left: Vec<_> = fs::read_dir(&slots)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.len() == 2 && left.contains(&"notes.txt".into()), "{left:?}");
    drop(owner);
}
