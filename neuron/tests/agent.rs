//! An agent on the ledger: what stands on its topic, and what a crash after every commit leaves to do.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use neuron::{
    Append, Author, Cx, Error, ErrorKind, Ledger, Millis, Result, SystemClock, TokenId, Topic,
    agent::{LedgerJournal, Place, history},
    def::{Callable, Def, Registry},
    pipeline::Pipeline,
    schema::Upcasters,
    scope::{Journal as _, Manner, Record, Runtime, Scope, Stop, contain},
    step,
    store::{Memory, Select, Store},
    topic::catalog,
    vocabulary::{
        Message as _,
        control::{ControlCancelled, ControlResolved, StepRuling},
        step::{StepAbandoned, StepDoubted},
    },
};

static CHARGED: AtomicUsize = AtomicUsize::new(0);
/// The tests of this file share that count, so they go one at a time.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Takes the money: never twice.
#[step(once)]
async fn charge(_cx: &Cx, cents: u32) -> Result<u32> {
    CHARGED.fetch_add(1, Ordering::SeqCst);
    Ok(cents)
}

/// Looks something up.
#[step]
async fn look(_cx: &Cx, what: String) -> Result<String> {
    Ok("x".repeat(what.len() * 100_000))
}

/// Looks, waits, pays.
#[neuron::agent]
async fn buyer(cx: &Cx, item: String) -> Result<u32> {
    let (left, right) = futures::join!(look(cx, item.clone()), look(cx, format!("{item}{item}")));
    cx.sleep(std::time::Duration::from_millis(1)).await?;
    let length = left?.len() + right?.len();
    let thread = cx.spawn_thread("aside", |cx| async move { look(&cx, "a".into()).await });
    let aside = thread.await?.len();
    Ok(charge(cx, u32::try_from(length + aside)?).await?)
}

fn entry<M, F: Callable<M>>(_: F) -> &'static str {
    <F::Def as Def>::META.name
}

fn ledger(store: Memory) -> Ledger {
    Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap()
}

fn place() -> Place {
    let token = TokenId::new("buyer-1").unwrap();
    Place {
        topic: catalog::steps(&token),
        author: Author::from(&token),
        owner: ("run:r".into(), 0),
        control: vec![catalog::control(&token)],
        given: catalog::control(&token),
        cause: None,
        progress: None,
    }
}

async fn run(ledger: &Ledger, cents: &str) -> Result<Result<u32, Error>, Stop> {
    let journal = Arc::new(LedgerJournal::new(
        ledger.clone(),
        place(),
        Arc::new(Upcasters::default()),
    ));
    let past = history(ledger, [place().topic]).unwrap();
    let registry = Arc::new(Registry::linked().unwrap());
    let buyer = registry.find("agent", entry(buyer)).unwrap();
    let runtime = Arc::new(Runtime::new(journal).history(past).code(registry));
    let scope = Scope::root(&runtime, "package", Millis(1), Manner::Replayed);
    let args = neuron::Json::of(&std::collections::BTreeMap::from([("item", cents)])).unwrap();
    let body = buyer.run(scope.clone(), args);
    let ran = contain(&scope, body).await?;
    Ok(ran.map(|ran| ran.json.decode().unwrap()))
}

fn kinds(ledger: &Ledger, topic: Topic) -> Vec<String> {
    let envelopes = ledger.read(Select::Topic(topic)).envelopes();
    envelopes
        .map(|envelope| envelope.unwrap().body.kind.to_string())
        .collect()
}

#[tokio::test]
async fn cut_after_any_commit_an_agent_gives_the_same_and_completes_nothing_twice() {
    let _alone = ALONE.lock().await;
    let whole = Memory::new().unwrap();
    let first = run(&ledger(whole.clone()), "pen").await.unwrap();
    assert_eq!(first, Ok(1_000_000));
    let count = usize::try_from(whole.last().unwrap().0).unwrap();
    let mut doubted = 0;
    for cut in 0..=count {
        let ledger = ledger(whole.cut(cut).unwrap());
        let before = kinds(&ledger, place().topic);
        let completed = before.iter().filter(|kind| *kind == "step.completed").count();
        if before.last().is_some_and(|kind| kind == "step.started") && before.len() + 1 == count {
            // The payment's start stands and its end does not: nobody knows, so it waits for a ruling.
            doubted += 1;
            let waits = tokio::time::timeout(std::time::Duration::from_millis(50), run(&ledger, "pen")).await;
            assert!(waits.is_err(), "a step in doubt is never run again by itself");
            assert!(kinds(&ledger, place().topic).contains(&"step.doubted".into()));
            continue;
        }
        let charged = CHARGED.load(Ordering::SeqCst);
        assert_eq!(run(&ledger, "pen").await.unwrap(), first, "cut after {cut}");
        let after = kinds(&ledger, place().topic);
        assert_eq!(
            after.iter().filter(|kind| *kind == "step.completed").count(),
            4,
            "cut after {cut}"
        );
        let pays = usize::from(cut < count);
        assert_eq!(
            CHARGED.load(Ordering::SeqCst) - charged,
            pays,
            "cut after {cut}, {completed} had completed"
        );
    }
    assert_eq!(doubted, 1);
}

#[tokio::test]
async fn of_several_rulings_on_one_step_the_last_one_counts() {
    let _alone = ALONE.lock().await;
    let whole = Memory::new().unwrap();
    run(&ledger(whole.clone()), "pen").await.unwrap().unwrap();
    let count = usize::try_from(whole.last().unwrap().0).unwrap();
    // The payment's end is cut off, so its start is in doubt.
    let ledger = ledger(whole.cut(count - 1).unwrap());
    let waits = tokio::time::timeout(std::time::Duration::from_millis(50), run(&ledger, "pen")).await;
    assert!(waits.is_err());
    let reading = ledger.read(Select::Topic(place().topic)).newest_first();
    let doubted = reading
        .envelopes()
        .map(Result::unwrap)
        .find(|envelope| envelope.body.kind == "step.doubted");
    let key = doubted.unwrap().decode::<StepDoubted>().unwrap().key;
    for output in [r#""not a number""#, "77"] {
        let output = Some(neuron::Json::parse(output).unwrap());
        let ruling = ControlResolved {
            key: key.clone(),
            ruling: StepRuling::Done,
            output,
            because: None,
        };
        let draft = ruling.draft(place().control[0].clone(), Author::cli()).unwrap();
        ledger.append(Append::of([draft])).await.unwrap();
    }
    assert_eq!(run(&ledger, "pen").await.unwrap(), Ok(77));
}

#[tokio::test]
async fn no_once_step_starts_after_a_committed_cancel() {
    let _alone = ALONE.lock().await;
    let ledger = ledger(Memory::new().unwrap());
    let order = ControlCancelled {
        because: Some("enough".into()),
        thread: None,
    };
    let order = order.draft(place().control[0].clone(), Author::cli()).unwrap();
    ledger.append(Append::of([order])).await.unwrap();
    let stopped = run(&ledger, "ink").await;
    match stopped {
        Err(Stop::Refused(error)) => assert_eq!(error.kind(), ErrorKind::Cancelled),
        Err(Stop::Cancelled) => {}
        other => assert!(other.is_err(), "{other:?}"),
    }
    assert!(!kinds(&ledger, place().topic).contains(&"step.failed".into()));
}

#[tokio::test]
async fn the_end_of_a_step_responds_to_its_start_and_carries_what_it_took() {
    let _alone = ALONE.lock().await;
    let ledger = ledger(Memory::new().unwrap());
    run(&ledger, "ink").await.unwrap().unwrap();
    let envelopes = ledger
        .read(Select::Topic(place().topic))
        .envelopes()
        .map(Result::unwrap);
    let envelopes: Vec<neuron::Envelope> = envelopes.collect();
    for end in envelopes
        .iter()
        .filter(|envelope| envelope.body.kind == "step.completed")
    {
        let start = &envelopes[usize::try_from(end.parent_seq.unwrap()).unwrap() - 1];
        assert_eq!(start.body.kind, "step.started");
        assert!(end.headers.decode::<u64>("duration-ms").is_some());
        assert_eq!(
            end.headers.history("duration-ms").next().unwrap().author.as_str(),
            "meter"
        );
    }
    let large = envelopes
        .iter()
        .filter(|envelope| !envelope.body.artifacts.is_empty())
        .count();
    assert!(large >= 2, "outputs above 64 KiB are artifacts");
}

#[tokio::test]
async fn a_deferred_record_that_cannot_even_wait_fails_the_next_append() {
    let ledger = ledger(Memory::new().unwrap());
    let journal = LedgerJournal::new(ledger, place(), Arc::new(Upcasters::default()));
    let started = StepAbandoned {
        scope: "package".into(),
        key: "k#1".into(),
        name: "look".into(),
        attempt: 1,
    };
    let record = Record::of(&Arc::from("package"), &Arc::from("k#1"), &started).unwrap();
    let mut wrong = record.clone();
    wrong.kind = "no type\n";
    journal.defer(wrong);
    let told = journal.append(record.clone(), Box::new(|_| {})).await.unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Malformed);
    journal.append(record, Box::new(|_| {})).await.unwrap();
}
