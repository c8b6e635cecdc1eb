//! Steps that are cancelled: told, given a moment, then dropped.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::{future::pending, sync::Arc, time::Duration};

use neuron::{
    Author, Cx, Error, ErrorKind, Result, TokenId, agent, limits,
    scope::{Journal as _, Record, Stop},
    step,
    token::ThreadOrder,
    topic::catalog,
    vocabulary::{Message as _, control::ControlCancelled, step::ReplayUnrecorded},
};
use tokio::{sync::Notify, time::Instant};
use world::{Log, Seen, World};

static SEEN: Seen = Seen::new();
static ENTERED: Notify = Notify::const_new();

#[step]
async fn quick(_cx: &Cx) -> Result<u32> {
    SEEN.note("quick");
    Ok(1)
}

/// What it does once it is told.
#[step]
async fn tidy(cx: &Cx, how: String) -> Result<u32> {
    SEEN.note(format!("begin {how}"));
    ENTERED.notify_one();
    cx.cancelled().await;
    SEEN.note(format!("told {how}"));
    assert!(cx.is_cancelled());
    match how.as_str() {
        "for ever" => pending().await,
        "and is done" => Ok(7),
        "and calls" => {
            let refused = quick(cx).await.unwrap_err();
            SEEN.note(format!("{how}: {:?}", refused.kind()));
            Err(refused.into())
        }
        _ => {
            tokio::time::sleep(Duration::from_secs(1)).await;
            SEEN.note(format!("clean {how}"));
            Err(Error::terminal("put away").into())
        }
    }
}

#[step]
async fn deaf(_cx: &Cx) -> Result<u32> {
    ENTERED.notify_one();
    pending().await
}

#[agent]
async fn tidying(cx: &Cx, how: String) -> Result<u32> {
    let first = tidy(cx, how).await?;
    Ok(first + quick(cx).await?)
}

#[agent]
async fn deafly(cx: &Cx) -> Result<u32> {
    Ok(deaf(cx).await?)
}

/// Runs one, cancels it once its step runs, and says how long it took to end.
async fn cancelled(world: &World, how: &str) -> Duration {
    let runtime = world.runtime();
    let run = async {
        match how {
            "deaf" => world.run_in(&runtime, deafly, ()).await,
            how => world.run_in(&runtime, tidying, how.into()).await,
        }
    };
    let cancel = async {
        ENTERED.notified().await;
        runtime.stop(Stop::Cancelled);
        // An order that comes again changes nothing.
        runtime.stop(Stop::Cancelled);
        Instant::now()
    };
    let (ended, since) = tokio::join!(run, cancel);
    assert_eq!(ended.unwrap_err(), Stop::Cancelled);
    let took = since.elapsed();
    flush(world).await;
    took
}

/// Commits what was deferred, on a log that may hold nothing yet.
async fn flush(world: &World) {
    let unrecorded = ReplayUnrecorded { scope: "run".into() };
    let record = Record {
        kind: "test.flushed",
        ..Record::of(&"run".into(), &"".into(), &unrecorded).unwrap()
    };
    world.journal.append(record, Box::new(|_| {})).await.unwrap();
}

/// They share one bell.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(start_paused = true)]
async fn a_step_that_asked_is_told_and_cleans_up_before_its_run_ends() {
    let _alone = ALONE.lock().await;
    let world = World::new();
    assert_eq!(cancelled(&world, "well").await, Duration::from_secs(1));
    assert_eq!(SEEN.starting("clean well"), 1);
    assert_eq!(
        world.log(),
        ["step.started tidy", "step.abandoned tidy", "test.flushed"]
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_cleans_up_for_ever_is_dropped_after_its_grace() {
    let _alone = ALONE.lock().await;
    assert_eq!(cancelled(&World::new(), "for ever").await, limits::CANCEL_GRACE);
}

#[tokio::test(start_paused = true)]
async fn one_that_did_not_ask_is_dropped_at_once() {
    let _alone = ALONE.lock().await;
    assert_eq!(cancelled(&World::new(), "deaf").await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn one_that_ends_well_all_the_same_is_recorded_and_never_runs_again() {
    let _alone = ALONE.lock().await;
    let world = World::new();
    cancelled(&world, "and is done").await;
    assert_eq!(world.count("step.completed tidy"), 1, "{:#?}", world.log());
    assert_eq!(world.count("step.started quick"), 0, "nothing starts any more");
    assert_eq!(world.crash().run(tidying, "and is done".into()).await.unwrap(), 8);
    assert_eq!(SEEN.starting("begin and is done"), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_makes_a_call_while_it_cleans_up_is_refused() {
    let _alone = ALONE.lock().await;
    let world = World::new();
    cancelled(&world, "and calls").await;
    assert_eq!(SEEN.starting("and calls: Cancelled"), 1);
    assert_eq!(world.count("step.started quick"), 0);
}

#[agent]
async fn racing(cx: &Cx) -> Result<bool> {
    let late = cx.timeout(Duration::from_secs(3), tidy(cx, "a race".into())).await;
    cx.sleep(Duration::from_secs(30)).await?;
    Ok(late.is_err_and(|error| error.kind() == ErrorKind::Timeout))
}

#[tokio::test(start_paused = true)]
async fn one_that_its_body_lets_go_of_is_told_as_well() {
    let _alone = ALONE.lock().await;
    let world = World::new();
    assert!(world.run(racing, ()).await.unwrap());
    ENTERED.notified().await;
    assert_eq!(SEEN.starting("clean a race"), 1);
    assert!(world.crash().run(racing, ()).await.unwrap());
    assert_eq!(SEEN.starting("begin a race"), 1, "a replay does not start it");
}

// -- a thread --

#[step(once)]
async fn charge(_cx: &Cx) -> Result<u32> {
    SEEN.note("charged");
    Ok(1)
}

#[agent]
async fn cashier(cx: &Cx) -> Result<String> {
    let till = cx.spawn_thread("till", async |cx: Cx| {
        cx.wait_for("calls").await?;
        charge(&cx).await
    });
    Ok(till
        .await
        .map_or_else(|error| error.to_string(), |charged| charged.to_string()))
}

/// The order stands; the process has not heard of it yet.
#[tokio::test(start_paused = true)]
async fn no_once_step_of_a_thread_starts_after_the_cancel_of_that_thread_was_committed() {
    let log = Log::with(&["calls"]).await;
    let runtime = Arc::new(log.runtime());
    let others = async {
        log.reached("wait.started", 1).await;
        let started = log
            .on(&Log::steps())
            .into_iter()
            .find(|said| said.body.kind == *"thread.started");
        let payload = started.unwrap().body.payload.unwrap().to_value();
        let thread = payload["key"].as_str().unwrap().to_owned();
        let order = ControlCancelled {
            because: Some("enough".into()),
            thread: Some(thread.clone()),
        };
        let control = catalog::control(&TokenId::new("body-1").unwrap());
        let order = order.draft(control, Author::cli()).unwrap();
        log.ledger.publish(order).await.unwrap();
        log.say("calls", "called", &1).await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(log.count("step.started"), 0);
        let because = Some("enough".into());
        runtime.order_thread(&thread, &ThreadOrder::Cancel { because });
    };
    let (told, ()) = futures::join!(log.run_in(&runtime, cashier, ()), others);
    assert_eq!(told.unwrap().unwrap(), "thread `till` was cancelled: enough");
    assert_eq!(SEEN.starting("charged"), 0);
}
