//! Folds that go on from snapshots, and views that stay current.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use neuron::{
    Append, Author, Contract, Draft, Envelope, Error, ErrorKind, Fold, Kind, Ledger, ManualClock, Millis, Pattern,
    Topic,
    fold::Codec,
    limits,
    pipeline::Pipeline,
    store::{Durability, Memory, Options, Select, Snapshot, Sqlite, Store},
};

/// How often each thing was said. It counts what it is given, and fails or panics when it is told to.
#[derive(Clone, Debug)]
struct Said {
    select: Select,
    version: u32,
    seen: Arc<AtomicU64>,
}

impl Said {
    fn of(select: Select) -> Self {
        Self {
            select,
            version: 1,
            seen: Arc::default(),
        }
    }

    fn everything() -> Self {
        Self::of(Select::Pattern(Pattern::new("talk.*").unwrap()))
    }

    /// How many it was given since it was asked last.
    fn seen(&self) -> u64 {
        self.seen.swap(0, Ordering::SeqCst)
    }
}

impl Fold for Said {
    type State = BTreeMap<String, u64>;

    fn init(&self) -> Self::State {
        BTreeMap::new()
    }

    fn apply(&self, said: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        self.seen.fetch_add(1, Ordering::SeqCst);
        let text: String = envelope.decode()?;
        if text == "fail" {
            return Err(Error::terminal("told to fail"));
        }
        assert!(text != "panic", "told to panic");
        *said.entry(text).or_default() += 1;
        Ok(())
    }

    fn select(&self) -> Select {
        self.select.clone()
    }

    fn snapshot(&self) -> Option<Codec<Self::State>> {
        Some(Codec::new("said", self.version).of(format!("{:?}", self.select)))
    }
}

fn talk(name: &str) -> Topic {
    Topic::new(format!("talk.{name}")).unwrap()
}

fn word(name: &str, text: &str) -> Draft {
    let draft = Draft::new(talk(name), Author::cli(), "said").unwrap();
    draft.payload(&text.to_owned()).unwrap()
}

fn on(store: Arc<dyn Store>) -> Ledger {
    Ledger::over(store, Arc::new(ManualClock::at(Millis(1_000))), Pipeline::default()).unwrap()
}

async fn declared(ledger: Ledger) -> Ledger {
    let family = Pattern::new("talk.*").unwrap();
    ledger
        .declare(&family, Contract::Durable, &Author::cli())
        .await
        .unwrap();
    ledger
}

async fn in_memory() -> Ledger {
    declared(on(Arc::new(Memory::new().unwrap()))).await
}

/// As another process opens it.
fn apart(path: &Path) -> Ledger {
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    on(Arc::new(Sqlite::open_apart(path, options).unwrap()))
}

async fn say(ledger: &Ledger, name: &str, text: &str) -> neuron::Receipt {
    ledger.publish(word(name, text)).await.unwrap()
}

/// So much that a snapshot is put aside after it.
async fn chatter(ledger: &Ledger) {
    let many = (0..limits::SNAPSHOT_EVERY).map(|n| if n % 2 == 0 { word("a", "x") } else { word("b", "y") });
    ledger.append(Append::of(many)).await.unwrap();
}

#[tokio::test]
async fn a_fold_goes_on_from_its_snapshot_and_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for ledger in [in_memory().await, declared(apart(&folder.path().join("said.db"))).await] {
        let fold = Said::everything();
        say(&ledger, "a", "early").await;
        ledger.fold(&fold, None).unwrap();
        ledger.fold(&fold, None).unwrap();
        assert_eq!(fold.seen(), 2, "a short log is folded again");
        chatter(&ledger).await;
        let first = ledger.fold(&fold, None).unwrap();
        assert_eq!(fold.seen(), limits::SNAPSHOT_EVERY + 1);
        assert_eq!(
            (first.state["early"], first.state["x"]),
            (1, limits::SNAPSHOT_EVERY / 2)
        );
        assert_eq!(ledger.fold(&fold, None).unwrap(), first);
        assert_eq!(fold.seen(), 0, "it stands in the snapshot");
        let late = say(&ledger, "b", "late").await;
        let now = ledger.fold(&fold, None).unwrap();
        assert_eq!((fold.seen(), now.upto), (1, late.pos));
        assert_eq!(ledger.fold_at(&fold, late.at).unwrap(), now);
        assert_eq!(fold.seen(), 1);
        // Before the snapshot it is of no use.
        let earlier = ledger.fold(&fold, Some(2)).unwrap();
        assert_eq!((fold.seen(), earlier.state.len(), earlier.upto), (1, 1, 2));
        // Neither is it to a newer version of the fold, nor to one that selects otherwise.
        let other = Said {
            version: 2,
            ..Said::everything()
        };
        assert_eq!(ledger.fold(&other, None).unwrap(), now);
        assert_eq!(other.seen(), limits::SNAPSHOT_EVERY + 2);
        let one = Said::of(Select::Topic(talk("a")));
        assert_eq!(ledger.fold(&one, None).unwrap().state.get("y"), None);
    }
}

#[tokio::test]
async fn a_snapshot_of_another_log_or_place_is_not_taken_up() {
    let ledger = in_memory().await;
    let (first, second) = (say(&ledger, "a", "one").await, say(&ledger, "a", "two").await);
    let fold = Said::everything();
    let codec = fold.snapshot().unwrap();
    let right = ledger.fold(&fold, None).unwrap();
    let wrong: BTreeMap<String, u64> = [("never said".to_owned(), 7)].into();
    let state = codec.encode(&wrong).unwrap();
    let snapshot = |pos, id, state: &[u8]| Snapshot {
        pos,
        id,
        state: state.to_vec(),
    };
    for odd in [
        snapshot(first.pos, second.id, &state),
        snapshot(second.pos + 1, second.id, &state),
        snapshot(u64::MAX, second.id, &state),
        snapshot(0, second.id, &state),
        snapshot(second.pos, second.id, b"no json"),
        snapshot(second.pos, second.id, b"[1]"),
        snapshot(second.pos, second.id, b""),
    ] {
        ledger.store().put_snapshot(&codec.key(), &odd).unwrap();
        assert_eq!(ledger.fold(&fold, None).unwrap(), right, "{odd:?}");
        let view = ledger.view(fold.clone()).await.unwrap();
        assert_eq!(view.read(Clone::clone).unwrap(), right.state);
    }
    // One that is right in all of that is believed, which shows that the others were looked at.
    let believed = snapshot(second.pos, second.id, &state);
    ledger.store().put_snapshot(&codec.key(), &believed).unwrap();
    assert_eq!(ledger.fold(&fold, None).unwrap().state, wrong);
}

#[tokio::test]
async fn a_store_that_shrank_and_grew_again_is_not_folded_from_the_snapshot_of_what_it_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("back.db");
    let fold = Said::everything();
    drop(declared(apart(&path)).await);
    let early = std::fs::read(&path).unwrap();
    let ledger = apart(&path);
    chatter(&ledger).await;
    say(&ledger, "a", "lost").await;
    assert_eq!(ledger.fold(&fold, None).unwrap().state["lost"], 1);
    drop(ledger);
    std::fs::write(&path, early).unwrap();
    let ledger = apart(&path);
    let fewer = ledger.fold(&fold, None).unwrap();
    assert_eq!(fewer.state, BTreeMap::new());
    say(&ledger, "b", "other").await;
    chatter(&ledger).await;
    let said = ledger.fold(&fold, None).unwrap().state;
    assert_eq!((said.get("lost"), said["other"]), (None, 1));
}

#[tokio::test]
async fn a_view_holds_what_a_receipt_stands_for_once_it_was_waited_for() {
    let ledger = in_memory().await;
    say(&ledger, "a", "before").await;
    let view = ledger.view(Said::everything()).await.unwrap();
    assert_eq!(view.read(|said| said["before"]).unwrap(), 1);
    for n in 0..50_u64 {
        let receipt = ledger.publish(word("a", "now")).await.unwrap();
        let view = view.at(&receipt).await.unwrap();
        assert_eq!(view.read(|said| said["now"]).unwrap(), n + 1);
        assert!(view.upto() >= receipt.pos);
    }
}

#[tokio::test]
async fn a_view_follows_the_log_while_nobody_asks_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("view.db");
    let (ledger, other) = (declared(apart(&path)).await, apart(&path));
    let view = ledger.view(Said::everything()).await.unwrap();
    let mut last = say(&ledger, "a", "own").await.pos;
    for round in 0..3 {
        // Neither what this process commits nor what another does is waited for by name.
        last = say(if round % 2 == 0 { &other } else { &ledger }, "a", "more")
            .await
            .pos
            .max(last);
        until(|| view.upto() >= last).await;
    }
    assert_eq!(view.read(|said| (said["own"], said["more"])).unwrap(), (1, 3));
    // Another process's receipt is waited for as well.
    let receipt = say(&other, "b", "theirs").await;
    assert_eq!(view.at(&receipt).await.unwrap().read(|said| said["theirs"]).unwrap(), 1);
}

/// Lets other tasks and other processes go on until something holds.
async fn until(holds: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "it does not come about");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn many_wait_for_one_view_each_for_its_own_receipt() {
    let ledger = in_memory().await;
    let view = ledger.view(Said::everything()).await.unwrap();
    let future = neuron::Receipt {
        pos: 1_000,
        ..say(&ledger, "a", "one").await
    };
    let waits = {
        let view = view.clone();
        tokio::spawn(async move { view.at(&future).await.unwrap().upto() })
    };
    tokio::task::yield_now().await;
    // Whoever waits for what is not there yet holds up nobody.
    let receipt = ledger.publish(word("a", "two")).await.unwrap();
    view.at(&receipt).await.unwrap();
    assert!(!waits.is_finished());
    ledger
        .append(Append::of((0..1_000).map(|_| word("b", "x"))))
        .await
        .unwrap();
    assert!(waits.await.unwrap() >= 1_000);
}

#[tokio::test]
async fn a_view_of_any_selection_equals_the_fold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("select.db");
    let ledger = declared(apart(&path)).await;
    let cause = say(&ledger, "a", "cause").await;
    let selects = [
        Select::Topic(talk("a")),
        Select::Pattern(Pattern::new("talk.*").unwrap()),
        Select::Kind(Kind::new("said").unwrap()),
        Select::Key(talk("a"), "k".into()),
        Select::CausedBy(cause.pos),
    ];
    let mut views = Vec::new();
    for select in &selects {
        views.push(ledger.view(Said::of(select.clone())).await.unwrap());
    }
    let reference = neuron::EnvelopeRef {
        topic: cause.topic.clone(),
        seq: cause.seq,
        id: cause.id,
    };
    let mut last = cause;
    // More than one page, and more than the ring holds at the end.
    for round in 0..2 {
        let drafts = (0..limits::PAGE_MAX + 7 + round * limits::RING_MAX).map(|n| {
            let draft = word(["a", "b"][n % 2], &format!("{}", n % 5));
            match n % 3 {
                0 => draft.key("k").unwrap(),
                1 => draft.cause(neuron::Cause::Envelope(reference.clone())),
                _ => draft,
            }
        });
        last = ledger.append(Append::of(drafts)).await.unwrap().pop().unwrap();
        for (view, select) in views.iter().zip(&selects) {
            let there = view.at(&last).await.unwrap().read(Clone::clone).unwrap();
            assert_eq!(
                there,
                ledger.fold(&Said::of(select.clone()), None).unwrap().state,
                "{select:?}"
            );
            assert!(!there.is_empty(), "{select:?}");
        }
    }
    // Opened now they say the same, from a snapshot or not.
    for (view, select) in views.iter().zip(&selects) {
        let fresh = ledger.view(Said::of(select.clone())).await.unwrap();
        assert_eq!(fresh.read(Clone::clone).unwrap(), view.read(Clone::clone).unwrap());
        assert_eq!(fresh.upto(), last.pos);
    }
}

#[tokio::test]
async fn a_view_puts_its_state_aside_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("aside.db");
    let ledger = declared(apart(&path)).await;
    let view = ledger.view(Said::everything()).await.unwrap();
    chatter(&ledger).await;
    chatter(&ledger).await;
    let key = Said::everything().snapshot().unwrap().key();
    until(|| ledger.store().snapshot(&key).unwrap().is_some()).await;
    let next = Said::everything();
    assert_eq!(
        ledger.fold(&next, None).unwrap().state,
        view.read(Clone::clone).unwrap()
    );
    assert!(next.seen() < limits::SNAPSHOT_EVERY * 2);
}

#[tokio::test]
async fn a_view_whose_fold_fails_says_so_to_whoever_reads_it() {
    let ledger = in_memory().await;
    let view = ledger.view(Said::everything()).await.unwrap();
    let good = say(&ledger, "a", "good").await;
    let bad = say(&ledger, "a", "fail").await;
    view.at(&good).await.unwrap();
    let error = view.at(&bad).await.unwrap_err();
    assert_eq!(error.to_string(), "talk.a seq 2: told to fail");
    assert_eq!(view.read(|_| ()).unwrap_err(), error);
    assert_eq!(view.upto(), good.pos);
    let opened = ledger.view(Said::everything()).await.unwrap_err();
    assert_eq!(opened, error);
}

#[tokio::test]
async fn a_view_whose_fold_panics_gives_no_state_any_more() {
    let ledger = in_memory().await;
    let view = ledger.view(Said::everything()).await.unwrap();
    let bad = say(&ledger, "a", "panic").await;
    // The task that follows the log meets it first.
    until(|| view.read(|_| ()).is_err()).await;
    assert_eq!(view.read(|_| ()).unwrap_err().kind(), ErrorKind::Panicked);
    assert_eq!(view.at(&bad).await.unwrap_err().kind(), ErrorKind::Panicked);
    assert_eq!(
        ledger.view(Said::everything()).await.unwrap_err().kind(),
        ErrorKind::Panicked
    );
}

#[tokio::test]
async fn a_view_that_goes_lets_go_of_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("go.db");
    let ledger = declared(apart(&path)).await;
    let view = ledger.view(Said::everything()).await.unwrap();
    let copy = view.clone();
    drop(view);
    let receipt = say(&ledger, "a", "still there").await;
    assert_eq!(copy.at(&receipt).await.unwrap().read(BTreeMap::len).unwrap(), 1);
    let mut tail = ledger.store().tail();
    drop((copy, ledger));
    // The last handle of a store closes it, and with it its tail.
    tokio::time::timeout(std::time::Duration::from_mins(1), async {
        while tail.changed().await.is_ok() {}
    })
    .await
    .unwrap();
}
