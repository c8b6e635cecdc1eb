//! Runs that wait for what somebody outside says, and what says something to them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{sync::Arc, time::Duration};

use neuron::{
    Append, Author, Contract, Draft, Json, Pattern, SystemClock, Topic,
    ledger::From,
    pipeline::Pipeline,
    store::{Memory, Store as _},
};
use orchestrator::{
    neuron::{self, Ledger},
    prelude::*,
    waiting::{Item, Waits, What},
};

/// What it is told when its order is approved, or nothing after an hour.
#[agent]
async fn clerk(cx: &Cx, order: u64) -> Result<String> {
    let asked = cx.draft("approvals.asked", "approval.asked")?.payload(&order)?;
    cx.emit(asked).await?;
    let approved = Filter::on("approvals.given")
        .of_type("approval.given")
        .payload("/order", &order);
    let came = cx.wait_within(approved, Duration::from_hours(1)).await?;
    Ok(came.map_or_else(|| "nobody".into(), |came| came.author.to_string()))
}

/// Has two orders approved, and waits for the word to ship.
#[orchestrator]
async fn shop(board: &Board) -> Result<Vec<String>> {
    let clerks = [7, 8].map(|order| board.assign(clerk, order));
    let mut told = Vec::new();
    for clerk in clerks {
        told.push(clerk.await?);
    }
    let shipped = board.wait_for("shipping").await?;
    told.push(shipped.decode()?);
    Ok(told)
}

async fn declare(ledger: &Ledger) {
    for topic in ["approvals.*", "shipping"] {
        let topic = Pattern::new(topic).unwrap();
        ledger.declare(&topic, Contract::Durable, &Author::cli()).await.unwrap();
    }
}

async fn say(ledger: &Ledger, topic: &str, kind: &str, payload: &str) {
    let draft = Draft::new(Topic::new(topic).unwrap(), Author::human("ada").unwrap(), kind).unwrap();
    let append = Append::of([draft.json(Json::parse(payload).unwrap(), None)]);
    ledger.append(append).await.unwrap();
}

/// What waits by now, as text.
fn waits(ledger: &Ledger) -> Vec<String> {
    let state = ledger.fold(&Waits, None).unwrap().state;
    let text = |item: &Item| match &item.what {
        What::Envelope { filter, until, .. } => format!("{filter}{}", until.map_or("", |_| " until")),
        other => panic!("{other:?}"),
    };
    let mut texts: Vec<_> = state.items().map(text).collect();
    texts.sort();
    texts
}

/// Waits until so many of a type stand.
async fn reached(ledger: &Ledger, kind: &str, count: usize) {
    let mut log = ledger.subscribe(Pattern::all(), From::Start).unwrap();
    let mut seen = 0;
    while seen < count {
        seen += usize::from(log.next().await.unwrap().body.kind == kind);
    }
}

fn approval(order: u64) -> String {
    format!(r#"{{"order":{order}}}"#)
}

/// A run whose two clerks wait, and then somebody helps it to its end.
async fn helped(ledger: &Ledger) -> Vec<String> {
    declare(ledger).await;
    let neuron = Neuron::builder().over(ledger.clone()).await.unwrap();
    let running = neuron.run(shop, ()).id("r").start().await.unwrap();
    reached(ledger, "wait.started", 2).await;
    assert_eq!(
        waits(ledger),
        [7, 8].map(|order| { format!("approvals.given: approval.given, /order = {order} until") })
    );
    // Not meant for anybody, then in the other order.
    say(ledger, "approvals.given", "approval.given", &approval(9)).await;
    say(ledger, "approvals.given", "approval.given", &approval(8)).await;
    reached(ledger, "wait.ended", 1).await;
    assert_eq!(waits(ledger).len(), 1);
    say(ledger, "approvals.given", "approval.given", &approval(7)).await;
    reached(ledger, "wait.started", 3).await;
    reached(ledger, "wait.ended", 2).await;
    assert_eq!(waits(ledger), ["shipping"]);
    say(ledger, "shipping", "shipped", r#""by sea""#).await;
    let told = running.wait().await.unwrap();
    assert!(waits(ledger).is_empty());
    told
}

fn over(store: &Memory) -> Ledger {
    Ledger::over(Arc::new(store.clone()), Arc::new(SystemClock), Pipeline::default()).unwrap()
}

#[tokio::test]
async fn a_run_waits_for_what_somebody_outside_says_and_the_board_of_waits_shows_it() {
    let store = Memory::new().unwrap();
    assert_eq!(helped(&over(&store)).await, ["human:ada", "human:ada", "by sea"]);
}

#[tokio::test]
async fn taken_up_after_any_commit_a_run_that_waits_is_told_the_same() {
    let whole = Memory::new().unwrap();
    let told = helped(&over(&whole)).await;
    let kinds = |ledger: &Ledger, kind: &str| -> usize {
        let all = ledger.read(neuron::store::Select::All).envelopes();
        all.filter(|envelope| envelope.as_ref().unwrap().body.kind == kind)
            .count()
    };
    let last = whole.last().unwrap().0;
    let batched = |cut: u64| {
        // What is emitted stands in one batch with its answer.
        let row = over(&whole)
            .read(neuron::store::Select::All)
            .from(cut)
            .limit(1)
            .page()
            .unwrap();
        row.first().is_some_and(|row| row.kind.as_str() == "approval.asked")
    };
    for cut in (2..=last).step_by(3).filter(|cut| !batched(*cut)) {
        let ledger = over(&whole.cut(usize::try_from(cut).unwrap()).unwrap());
        let neuron = Neuron::builder().over(ledger.clone()).await.unwrap();
        declare(&ledger).await;
        let running = neuron.run(shop, ()).id("r").start().await.unwrap();
        // Whoever was not heard says it again; that nobody needs it harms nobody.
        reached(&ledger, "orchestration.created", 1).await;
        for order in [7, 8] {
            say(&ledger, "approvals.given", "approval.given", &approval(order)).await;
        }
        say(&ledger, "shipping", "shipped", r#""by sea""#).await;
        assert_eq!(running.wait().await.unwrap(), told, "cut {cut}");
        assert_eq!(kinds(&ledger, "approval.asked"), 2, "cut {cut}");
        assert_eq!(kinds(&ledger, "wait.ended"), 3, "cut {cut}");
        assert_eq!(kinds(&ledger, "wait.started"), 3, "cut {cut}");
    }
}

#[tokio::test]
async fn what_was_said_before_the_run_was_created_is_none_of_its_business() {
    let neuron = Neuron::builder().memory().await.unwrap();
    declare(neuron.ledger()).await;
    say(neuron.ledger(), "shipping", "shipped", r#""by air""#).await;
    for order in [7, 8] {
        say(neuron.ledger(), "approvals.given", "approval.given", &approval(order)).await;
    }
    let running = neuron.run(shop, ()).id("r").start().await.unwrap();
    reached(neuron.ledger(), "wait.started", 2).await;
    for order in [7, 8] {
        say(neuron.ledger(), "approvals.given", "approval.given", &approval(order)).await;
    }
    say(neuron.ledger(), "shipping", "shipped", r#""by sea""#).await;
    assert_eq!(running.wait().await.unwrap()[2], "by sea");
}
