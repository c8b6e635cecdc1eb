//! What a process that serves does with what it cannot bring to its end: a run that is held, a message of which it may not
//! begin a run, a message that it has in hand when it stops.

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
        Append, Author, ConsumerId, Contract, Draft, Json, Kind, Ledger, Pattern, SystemClock, Topic,
        consumer::Progress,
        pipeline::Pipeline,
        store::{Memory, Select},
        topic::catalog,
        vocabulary::{
            Message as _,
            orchestration::{OrchestrationCreated, PackageAssigned},
        },
    },
    prelude::*,
    testing::Kit,
};

// -- a run that is held --

/// Awaits what is not on the log: in strict mode its run is held, for a person to look.
#[orchestrator]
async fn careless(_board: &Board) -> Result<()> {
    tokio::task::yield_now().await;
    let (_keep, never) = tokio::sync::oneshot::channel::<()>();
    let _ = never.await;
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_held_does_not_fill_the_log_of_a_process_that_serves() {
    let kit = Kit::with(|| Neuron::builder().strict(true)).await.unwrap();
    let held = kit.run(careless, ()).await.unwrap_err();
    assert_eq!(held.kind(), ErrorKind::Diverged, "{held}");
    let mut lengths = Vec::new();
    for _ in 0..3 {
        let served = kit.skip_time(tokio::time::timeout(Duration::from_secs(20), kit.neuron().serve()));
        assert!(served.await.is_err(), "it serves on");
        kit.ledger().store().flush();
        lengths.push(kit.ledger().store().last().unwrap().0);
    }
    let (first, last) = (lengths[0], lengths[2]);
    assert!(
        last - first < 20,
        "twenty seconds of serving a held run write {lengths:?}: more and more"
    );
}

#[step]
async fn slow(_cx: &Cx) -> Result<()> {
    tokio::time::sleep(Duration::from_hours(1)).await;
    Ok(())
}

#[agent]
async fn worker(cx: &Cx) -> Result<()> {
    Ok(slow(cx).await?)
}

#[agent]
async fn dreamer(_cx: &Cx) -> Result<()> {
    let (_keep, never) = tokio::sync::oneshot::channel::<()>();
    let _ = never.await;
    Ok(())
}

#[orchestrator]
async fn office(board: &Board) -> Result<()> {
    let (worked, dreamt) = (board.assign(worker, ()), board.assign(dreamer, ()));
    worked.await?;
    Ok(dreamt.await?)
}

#[tokio::test]
async fn a_step_is_not_begun_again_and_again_because_another_package_is_held() {
    let kit = Kit::with(|| Neuron::builder().strict(true)).await.unwrap();
    let held = kit.run(office, ()).await.unwrap_err();
    assert_eq!(held.kind(), ErrorKind::Diverged, "{held}");
    let served = kit.skip_time(tokio::time::timeout(Duration::from_secs(20), kit.neuron().serve()));
    assert!(served.await.is_err(), "it serves on");
    let begun = kit.faults().entered().iter().filter(|call| call.name == "slow").count();
    let kind = Kind::new("step.doubted").unwrap();
    let doubted = kit.ledger().read(Select::Kind(kind)).envelopes().count();
    assert!(
        begun <= 2 && doubted == 0,
        "begun {begun} times, in doubt {doubted} times"
    );
}

/// Serves for so long.
async fn serve(kit: &Kit, time: Duration) {
    let served = kit.skip_time(tokio::time::timeout(time, kit.neuron().serve()));
    assert!(served.await.is_err(), "it serves on");
}

/// How often the step of `office` begins in twenty seconds of serving its held run, with and without an order for it.
async fn begun_when_spoken_to(whom: impl Fn(&Kit) -> Target) -> (usize, usize) {
    let kit = Kit::with(|| Neuron::builder().strict(true)).await.unwrap();
    let held = kit.run(office, ()).id("office").await.unwrap_err();
    assert_eq!(held.kind(), ErrorKind::Diverged, "{held}");
    let begun = || kit.faults().entered().iter().filter(|call| call.name == "slow").count();
    let first = begun();
    serve(&kit, Duration::from_secs(20)).await;
    let unasked = begun() - first;
    let serving = serve(&kit, Duration::from_secs(20));
    let said = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        kit.neuron().resume(&whom(&kit)).await.unwrap();
    };
    tokio::join!(serving, said);
    (unasked, begun() - first - unasked)
}

#[tokio::test]
async fn a_run_that_is_held_is_taken_up_again_when_somebody_says_something_to_it() {
    let run = |_: &Kit| Target::Run(RunId::new("office").unwrap());
    let once_more = "once as a serving begins, once as it is spoken to";
    assert_eq!(begun_when_spoken_to(run).await, (1, 2), "{once_more}");
    // Or to a package of it, as a ruling is.
    let package = |kit: &Kit| {
        let assigned = Select::Kind(Kind::new(PackageAssigned::TYPE).unwrap());
        let first = kit.ledger().read(assigned).envelopes().next().unwrap().unwrap();
        Target::Token(PackageAssigned::read(&first).unwrap().unwrap().token)
    };
    assert_eq!(begun_when_spoken_to(package).await, (1, 2), "{once_more}");
    let other = |_: &Kit| Target::Run(RunId::new("another").unwrap());
    assert_eq!(
        begun_when_spoken_to(other).await,
        (1, 1),
        "an order for another run is none for it"
    );
}

// -- a build that is drained --

#[orchestrator]
async fn ship(_board: &Board, order: String) -> Result<String> {
    Ok(order)
}

#[on("orders", from = start, retry(3, backoff = "1s"))]
async fn placed(event: &Event, order: String) -> Result<()> {
    let neuron = event.state::<Neuron>()?;
    neuron.run(ship, order).id(event.envelope().id().to_string()).await?;
    Ok(())
}

/// Which build has begun the run of a new order, ten minutes after it came.
async fn shipped_by(ledger: &Ledger, order: &str) -> String {
    let draft = Draft::new(Topic::new("orders").unwrap(), Author::cli(), "order").unwrap();
    let order = ledger.publish(draft.payload(&order.to_owned()).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let progress = Progress::new(ConsumerId::new("placed").unwrap());
    let state = ledger.fold(&progress, None).unwrap().state;
    assert!(state.parked.is_empty() && state.pending.is_empty(), "{state:?}");
    let runs = ledger.fold(&orchestrator::runs::Runs, None).unwrap().state;
    let run = &runs[&RunId::new(order.id.to_string()).unwrap()];
    assert!(run.ended.is_some(), "{run:?}");
    run.build.clone()
}

#[tokio::test(start_paused = true)]
async fn while_a_build_is_drained_its_handlers_lay_no_message_aside_that_another_build_can_handle() {
    let store = Memory::new().unwrap();
    let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
    let orders = Pattern::new("orders").unwrap();
    ledger
        .declare(&orders, Contract::Durable, &Author::cli())
        .await
        .unwrap();
    let mut serving = Vec::new();
    for build in ["shop 1", "shop 2"] {
        let neuron = Neuron::builder().build(build).over(ledger.clone()).await.unwrap();
        serving.push(tokio::spawn(async move { neuron.serve().await }));
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let order = async |build: &str, order| order_build(&ledger, build, order, None, Author::cli()).await.unwrap();
    assert_eq!(shipped_by(&ledger, "a scarf").await, "shop 1", "it came first");
    order("shop 1", BuildOrder::Drain).await;
    assert_eq!(shipped_by(&ledger, "a hat").await, "shop 2");
    // It begins again where the other one stops.
    order("shop 1", BuildOrder::Release).await;
    order("shop 2", BuildOrder::Drain).await;
    assert_eq!(shipped_by(&ledger, "a coat").await, "shop 1");
    // What comes while nobody may begin it waits, however long, and nobody fills the log with it.
    order("shop 1", BuildOrder::Drain).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let before = ledger.store().last().unwrap().0;
    let draft = Draft::new(Topic::new("orders").unwrap(), Author::cli(), "order").unwrap();
    ledger
        .publish(draft.payload(&"a glove".to_owned()).unwrap())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(ledger.store().last().unwrap().0, before + 1);
    order("shop 2", BuildOrder::Release).await;
    assert_eq!(shipped_by(&ledger, "a sock").await, "shop 2");
    let runs = ledger.fold(&orchestrator::runs::Runs, None).unwrap().state;
    assert_eq!(runs.len(), 5, "the glove too");
    serving.iter().for_each(tokio::task::JoinHandle::abort);
}

/// A run of another build, that its process left open.
async fn left(ledger: &Ledger, run: &RunId, build: &str) {
    let created = OrchestrationCreated {
        name: "ship".into(),
        args: Some(Json::parse(r#"{"order":"a hat"}"#).unwrap()),
        build: build.into(),
        registry: "test".into(),
        fork: None,
    };
    let draft = created.draft(catalog::lifecycle(run), Author::from(run)).unwrap();
    ledger.append(Append::of([draft])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_run_is_pinned_to_another_build_is_not_laid_aside_and_is_settled_once_that_has_ended() {
    let store = Memory::new().unwrap();
    let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
    let orders = Pattern::new("orders").unwrap();
    ledger
        .declare(&orders, Contract::Durable, &Author::cli())
        .await
        .unwrap();
    let draft = Draft::new(Topic::new("orders").unwrap(), Author::cli(), "order").unwrap();
    let order = ledger
        .publish(draft.payload(&"a hat".to_owned()).unwrap())
        .await
        .unwrap();
    let run = RunId::new(order.id.to_string()).unwrap();
    left(&ledger, &run, "shop 1").await;
    order_build(&ledger, "shop 1", BuildOrder::Pin, None, Author::cli())
        .await
        .unwrap();
    let neuron = Neuron::builder().build("shop 2").over(ledger.clone()).await.unwrap();
    let serving = tokio::spawn(async move { neuron.serve().await });
    tokio::time::sleep(Duration::from_mins(10)).await;
    let before = ledger.store().last().unwrap().0;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let name = ConsumerId::new("placed").unwrap();
    let progress = || ledger.fold(&Progress::new(name.clone()), None).unwrap().state;
    assert!(progress().parked.is_empty(), "{:?}", progress().parked);
    assert!(
        progress().upto < order.pos || !progress().pending.is_empty(),
        "it waits"
    );
    let written = ledger.store().last().unwrap().0 - before;
    assert!(written <= 50, "ten minutes of waiting write {written} envelopes");
    // Its own build ends it, and whoever has the message is told so.
    let neuron = Neuron::builder().build("shop 1").over(ledger.clone()).await.unwrap();
    let its_own = tokio::spawn(async move { neuron.serve().await });
    tokio::time::sleep(Duration::from_mins(10)).await;
    let state = progress();
    assert!(state.parked.is_empty() && state.pending.is_empty(), "{state:?}");
    let runs = ledger.fold(&orchestrator::runs::Runs, None).unwrap().state;
    assert!(runs[&run].ended.is_some(), "{runs:?}");
    serving.abort();
    its_own.abort();
}

// -- a message in hand --

/// How often the handler was given the message.
struct Given(AtomicU32, tokio::sync::Notify);

#[on("letters", from = start, retry(1))]
async fn read(event: &Event) -> Result<()> {
    let given = event.state::<Arc<Given>>()?;
    given.0.fetch_add(1, Ordering::SeqCst);
    given.1.notify_one();
    std::future::pending::<()>().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_has_in_hand_when_serving_is_dropped_is_handed_out_again() {
    let store = Memory::new().unwrap();
    let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
    let letters = Pattern::new("letters").unwrap();
    ledger
        .declare(&letters, Contract::Durable, &Author::cli())
        .await
        .unwrap();
    let draft = Draft::new(Topic::new("letters").unwrap(), Author::cli(), "letter").unwrap();
    ledger.publish(draft).await.unwrap();
    let given = Arc::new(Given(AtomicU32::new(0), tokio::sync::Notify::new()));
    for times in 1..=2 {
        let builder = Neuron::builder().state(given.clone());
        let neuron = builder.over(ledger.clone()).await.unwrap();
        let serving = tokio::spawn(async move { neuron.serve().await });
        let told = tokio::time::timeout(Duration::from_hours(1), given.1.notified()).await;
        let state = ledger
            .fold(&Progress::new(ConsumerId::new("read").unwrap()), None)
            .unwrap()
            .state;
        assert!(told.is_ok(), "serving for the {times}. time: {:?}", state.parked);
        assert_eq!(given.0.load(Ordering::SeqCst), times);
        serving.abort();
        let _aborted = serving.await;
    }
}
