//! Every way in which nobody knows whether a `once` step has happened, and the one in which somebody does.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

mod world;

use std::{
    future::pending,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use neuron::{Cx, Error, ErrorKind, Result, agent, scope::Ruling, step};
use world::{Seen, World};

static SEEN: Seen = Seen::new();

/// Goes wrong in the way it is told to.
#[step(once, timeout = "10s", retry(3))]
async fn pay(cx: &Cx, how: String) -> Result<String> {
    SEEN.note(format!("pay {how}"));
    match how.as_str() {
        "too slowly" => pending().await,
        "in panic" => panic!("out of paper"),
        "with an error" => Err("no answer from the bank".into()),
        "for good" => Err(Error::terminal("no answer from the bank").into()),
        "not at all" if cx.attempt() < 3 => Err(Error::not_done("the bank was closed").into()),
        _ => Ok(format!("paid {how}")),
    }
}

#[agent]
async fn payer(cx: &Cx, how: String) -> Result<String> {
    Ok(pay(cx, how).await?)
}

/// Why the step is in doubt, after a run in which nobody ruled.
async fn doubted(how: &str) -> String {
    let world = World::new();
    let error = world.run(payer, how.into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt, "{how}: {error}");
    assert_eq!(
        SEEN.starting(&format!("pay {how}")),
        1,
        "{how}: it is not attempted again"
    );
    world.payloads("step.doubted")[0]["reason"].as_str().unwrap().into()
}

#[tokio::test(start_paused = true)]
async fn it_is_in_doubt_after_a_timeout_a_panic_and_an_error() {
    for (how, why) in [
        ("too slowly", "took longer than 10s"),
        ("in panic", "panicked: out of paper"),
        ("with an error", "no answer from the bank"),
        ("for good", "no answer from the bank"),
    ] {
        let reason = doubted(how).await;
        assert!(reason.contains(why), "{how}: {reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_says_it_was_not_done_is_made_again() {
    let world = World::new();
    assert_eq!(world.run(payer, "not at all".into()).await.unwrap(), "paid not at all");
    assert_eq!(SEEN.starting("pay not at all"), 3);
    assert_eq!(world.payloads("step.doubted"), [serde_json::Value::Null; 0]);
}

// -- cancellation --

#[step(once)]
async fn slow(_cx: &Cx) -> Result<u32> {
    SEEN.note("slow");
    pending().await
}

#[step(timeout = "1s", retry(2))]
async fn hasty(cx: &Cx) -> Result<u32> {
    Ok(slow(cx).await?)
}

#[agent]
async fn above(cx: &Cx) -> Result<u32> {
    Ok(hasty(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn a_step_above_that_ran_out_of_time_has_cancelled_it_and_the_next_attempt_finds_it_in_doubt() {
    let world = World::new();
    let error = world.run(above, ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt, "{error}");
    assert_eq!(SEEN.starting("slow"), 1);
    assert_eq!(
        (world.count("step.abandoned slow"), world.count("step.doubted slow")),
        (1, 1)
    );
}

static PATIENT: AtomicBool = AtomicBool::new(false);

#[step(once)]
async fn wire(_cx: &Cx, cents: u32) -> Result<u32> {
    SEEN.note("wire");
    if cents == 0 {
        return Ok(0);
    }
    pending().await
}

#[step]
async fn ping(_cx: &Cx) -> Result<()> {
    Ok(())
}

/// Lets go of a payment, until it is edited to wait for it.
#[agent]
async fn fickle(cx: &Cx) -> Result<u32> {
    if PATIENT.load(SeqCst) {
        return Ok(wire(cx, 5).await?);
    }
    let late = cx.timeout(Duration::from_secs(1), wire(cx, 5)).await;
    ping(cx).await?;
    // That it was let go of rides with the next commit.
    cx.sleep(Duration::from_secs(1)).await?;
    Ok(late.map_or(0, |_| 1))
}

#[tokio::test(start_paused = true)]
async fn one_that_its_body_let_go_of_is_in_doubt_for_whoever_asks_for_it_again() {
    let world = World::new();
    assert_eq!(world.run(fickle, ()).await.unwrap(), 0);
    assert_eq!(world.count("step.abandoned wire"), 1);
    // The same body does not ask for it again in a replay, and a body that was edited does.
    let replayed = world.crash();
    assert_eq!(replayed.run(fickle, ()).await.unwrap(), 0);
    PATIENT.store(true, SeqCst);
    let asked = world.crash();
    assert_eq!(asked.run(fickle, ()).await.unwrap_err().kind(), ErrorKind::InDoubt);
    assert_eq!(SEEN.starting("wire"), 1);
    // A person knows better.
    let ruled = world.crash();
    let key = asked.payloads("step.doubted")[0]["key"].as_str().unwrap().to_owned();
    ruled.journal.rule(&key, Ruling::Done(neuron::Json::of(&7).unwrap()));
    assert_eq!(ruled.run(fickle, ()).await.unwrap(), 7);
    assert_eq!(SEEN.starting("wire"), 1);
}
