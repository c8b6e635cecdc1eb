//! Who is woken by what, and what becomes of those that do not read.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{
    path::PathBuf,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use neuron::{
    Append, Author, Contract, Draft, Ledger, Pattern, RequestId, SystemClock, Topic,
    ledger::From,
    limits,
    pipeline::Pipeline,
    store::{Durability, Memory, Options, Sqlite, Store},
    topic::catalog,
};
use proptest::{collection::vec, prelude::*};

fn on(topic: &str) -> Draft {
    Draft::new(Topic::new(topic).unwrap(), Author::cli(), "said").unwrap()
}

fn memory() -> Ledger {
    let store = Arc::new(Memory::new().unwrap());
    declared(Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap())
}

fn declared(ledger: Ledger) -> Ledger {
    for (pattern, contract) in [("a.**", Contract::Durable), ("b.**", Contract::Durable)] {
        let pattern = Pattern::new(pattern).unwrap();
        futures::executor::block_on(ledger.declare(&pattern, contract, &Author::cli())).unwrap();
    }
    ledger
}

/// A ledger of its own on the file, as another process has one.
fn apart(path: &PathBuf) -> Ledger {
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    let store = Arc::new(Sqlite::open_apart(path, options).unwrap());
    Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap()
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_commit_wakes_only_those_that_want_something_of_it_and_the_others_know_how_far_it_went() {
    let ledger = memory();
    let begin = ledger.store().last().unwrap().0;
    let mut wants = ledger.subscribe(Pattern::new("a.*").unwrap(), From::Now).unwrap();
    let mut idle = ledger
        .subscribe(Pattern::exactly(&Topic::new("b.x").unwrap()), From::Now)
        .unwrap();
    let counts = [Arc::<Count>::default(), Arc::<Count>::default()];
    let wakers = counts.clone().map(Waker::from);
    for round in 1..=3 {
        {
            let (mut next, mut never) = (pin!(wants.next()), pin!(idle.next()));
            let (mut woken, mut quiet) = (Context::from_waker(&wakers[0]), Context::from_waker(&wakers[1]));
            assert!(next.as_mut().poll(&mut woken).is_pending());
            assert!(never.as_mut().poll(&mut quiet).is_pending());
            ledger
                .append_blocking(Append::of([on("a.x"), on("a.y"), on("b.y")]))
                .unwrap();
            assert_eq!(counts[0].0.load(Ordering::SeqCst), round, "once for the whole commit");
            assert_eq!(counts[1].0.load(Ordering::SeqCst), 0);
            assert!(next.poll(&mut woken).is_ready());
        }
        assert!(wants.try_next().unwrap().is_some());
        let last = begin + 3 * round as u64;
        assert_eq!((idle.position(), wants.position()), (last, last));
        assert!(idle.try_next().unwrap().is_none());
    }
    let mut next = pin!(idle.next());
    let mut context = Context::from_waker(&wakers[1]);
    assert!(next.as_mut().poll(&mut context).is_pending());
    ledger.append_blocking(Append::of([on("b.x")])).unwrap();
    assert_eq!(counts[1].0.load(Ordering::SeqCst), 1);
    assert!(next.poll(&mut context).is_ready());
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let text = prop_oneof![
        Just("a.x"),
        Just("b.y.z"),
        Just("a.*"),
        Just("*.x"),
        Just("a.**"),
        Just("b.>"),
        Just("**"),
        Just("*.*.z"),
    ];
    text.prop_map(|text| Pattern::new(text).unwrap())
}

fn topic() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a.x"), Just("a.y"), Just("b.x"), Just("b.y.z"), Just("a.y.z")]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn nobody_misses_anything_or_waits_in_vain_whichever_process_commits(
        patterns in vec(pattern(), 1..8), commits in vec((any::<bool>(), vec(topic(), 1..5)), 1..25),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let ledgers = [declared(apart(&path)), apart(&path)];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let wanted = |pattern: &Pattern| {
            let all = commits.iter().flat_map(|(_, topics)| topics);
            all.filter(|topic| pattern.matches(&Topic::new(topic).unwrap())).count()
        };
        let heard = runtime.block_on(async {
            let readers: Vec<_> = patterns.iter().enumerate().map(|(place, pattern)| {
                let mut subscription = ledgers[place % 2].subscribe(pattern.clone(), From::Now).unwrap();
                let count = wanted(pattern);
                tokio::spawn(async move {
                    let mut heard = Vec::new();
                    for _ in 0..count {
                        heard.push(subscription.next().await.unwrap().pos);
                    }
                    (heard, subscription)
                })
            }).collect();
            for (elsewhere, topics) in &commits {
                let ledger = &ledgers[usize::from(*elsewhere)];
                ledger.append(Append::of(topics.iter().map(|topic| on(topic)))).await.unwrap();
            }
            let all = futures::future::join_all(readers);
            tokio::time::timeout(Duration::from_mins(1), all).await.expect("somebody waits in vain")
        });
        for (pattern, heard) in patterns.iter().zip(heard) {
            let (heard, mut subscription) = heard.unwrap();
            let stands: Vec<u64> = ledgers[0]
                .read(neuron::store::Select::Pattern(pattern.clone()))
                .envelopes()
                .map(|envelope| envelope.unwrap().pos)
                .collect();
            prop_assert_eq!(heard, stands);
            prop_assert!(subscription.try_next().unwrap().is_none());
            prop_assert!(subscription.position() <= ledgers[0].store().last().unwrap().0);
        }
    }
}

#[test]
fn a_thousand_subscribers_of_which_half_never_read_cost_the_others_nothing() {
    let ledger = memory();
    let stream = catalog::stream(&RequestId::new("one").unwrap());
    let token = || Draft::new(stream.clone(), Author::cli(), "token").unwrap();
    let count = 3 * limits::EPHEMERAL_QUEUE_MAX;
    let mut listeners: Vec<_> = (0..1_000)
        .map(|_| ledger.bus().listen(Pattern::exactly(&stream)))
        .collect();
    let mut subscriptions: Vec<_> = (0..1_000)
        .map(|_| ledger.subscribe(Pattern::new("a.*").unwrap(), From::Now).unwrap())
        .collect();
    let (never, reading) = listeners.split_at_mut(500);
    for published in 1..=count {
        ledger.bus().publish(token()).unwrap();
        // They read every so often, and nothing is lost to them.
        if published % 512 == 0 {
            for listener in reading.iter_mut() {
                for _ in 0..512 {
                    assert!(listener.try_next().unwrap().is_some());
                }
            }
        }
    }
    for listener in never {
        let mut held = 0;
        let lost = loop {
            match listener.try_next() {
                Ok(Some(_)) => held += 1,
                Ok(None) => panic!("the loss was not told"),
                Err(lagged) => break lagged.0,
            }
        };
        assert_eq!((held, lost), (limits::EPHEMERAL_QUEUE_MAX, (count - held) as u64));
    }
    let appended = 2 * limits::RING_MAX;
    for _ in 0..8 {
        ledger
            .append_blocking(Append::of((0..appended / 8).map(|_| on("a.x"))))
            .unwrap();
        let (_, reading) = subscriptions.split_at_mut(995);
        for subscription in reading {
            for _ in 0..appended / 8 {
                assert!(subscription.try_next().unwrap().is_some());
            }
        }
    }
    // One that has never read is behind, and has lost nothing.
    let first = futures::executor::block_on(subscriptions[0].next()).unwrap();
    let mut seqs = vec![first.seq];
    while let Some(envelope) = subscriptions[0].try_next().unwrap() {
        seqs.push(envelope.seq);
    }
    assert_eq!(seqs, (1..=appended as u64).collect::<Vec<_>>());
}

#[test]
fn a_ledger_that_is_let_go_of_leaves_nothing_behind_in_its_store() {
    let store: Arc<dyn Store> = Arc::new(Memory::new().unwrap());
    let open = || Ledger::over(store.clone(), Arc::new(SystemClock), Pipeline::default()).unwrap();
    let stays = declared(open());
    let described = || format!("{store:?}");
    let before = described();
    for _ in 0..100 {
        let ledger = open();
        let bus = ledger.bus().clone();
        let listener = bus.listen(Pattern::all());
        let subscription = ledger.subscribe(Pattern::all(), From::Start).unwrap();
        drop((ledger, bus, listener, subscription));
    }
    assert_eq!(described(), before);
    assert!(before.contains("Observers(1)"), "{before}");
    drop(stays);
    assert!(described().contains("Observers(0)"), "{}", described());
}
