//! Orders for one thread of an agent: given from whatever process, obeyed by it and all below it, and by nothing else.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use orchestrator::{
    cli::{self, Exit},
    neuron::{
        Author, Contract, Kind, Ledger, Pattern,
        ledger::From,
        limits,
        store::Select,
        vocabulary::{Message as _, step::ThreadStarted},
    },
    prelude::*,
    testing::Kit,
    waiting::{Waits, What},
};
use tokio::sync::Notify;

/// What the steps did, and what they wait for.
#[derive(Default)]
struct Desk {
    did: Mutex<Vec<String>>,
    entered: Notify,
}

impl Desk {
    fn note(cx: &Cx, what: &str) -> Result<()> {
        let desk = cx.state::<Arc<Self>>()?;
        desk.did.lock().unwrap().push(what.into());
        desk.entered.notify_one();
        Ok(())
    }

    fn did(&self) -> Vec<String> {
        self.did.lock().unwrap().clone()
    }
}

#[step]
async fn work(cx: &Cx, who: String, turn: u32) -> Result<u32> {
    Desk::note(cx, &format!("{who} {turn}"))?;
    Ok(turn)
}

/// Three turns, a minute between two; the second turn is on a thread of its own.
async fn turns(cx: &Cx, who: &str) -> Result<u32> {
    let mut sum = work(cx, who.into(), 1).await?;
    cx.sleep(Duration::from_mins(1)).await?;
    let own = who.to_owned();
    let below = cx.spawn_thread("below", async move |cx| work(&cx, format!("{own} below"), 2).await);
    sum += below.await?;
    cx.sleep(Duration::from_mins(1)).await?;
    Ok(sum + work(cx, who.into(), 3).await?)
}

#[agent]
async fn office(cx: &Cx) -> Result<Vec<String>> {
    let one = cx.spawn_thread("one", async |cx| turns(&cx, "one").await);
    let two = cx.spawn_thread("two", async |cx| turns(&cx, "two").await);
    let told = |outcome: Result<u32, Error>| match outcome {
        Ok(sum) => sum.to_string(),
        Err(error) => format!("{:?}: {error}", error.kind()),
    };
    let (one, two) = futures::join!(one, two);
    let last = work(cx, "office".into(), 4).await?;
    Ok(vec![told(one), told(two), last.to_string()])
}

#[orchestrator]
async fn house(board: &Board) -> Result<Vec<String>> {
    Ok(board.assign(office, ()).await?)
}

/// The token of the agent and the key of its thread of this name.
async fn thread(ledger: &Ledger, name: &str) -> (TokenId, String) {
    let mut log = ledger
        .subscribe(Pattern::new("agent.*.steps").unwrap(), From::Start)
        .unwrap();
    loop {
        let envelope = log.next().await.unwrap();
        let started = ThreadStarted::read(&envelope)
            .unwrap()
            .filter(|started| started.name == name);
        if let Some(started) = started {
            let token = envelope.topic.segments().nth(1).unwrap();
            return (TokenId::new(token).unwrap(), started.key);
        }
    }
}

fn number(ledger: &Ledger, kind: &str) -> usize {
    ledger.read(Select::Kind(Kind::new(kind).unwrap())).envelopes().count()
}

#[tokio::test(start_paused = true)]
async fn a_paused_thread_begins_nothing_new_and_neither_does_what_is_below_it_while_the_others_go_on() {
    let desk = Arc::new(Desk::default());
    let neuron = Neuron::builder().state(desk.clone()).memory().await.unwrap();
    let running = neuron.run(house, ()).id("h").start().await.unwrap();
    let (token, key) = thread(neuron.ledger(), "one").await;
    let one = Target::Thread(token.clone(), key.clone());
    tokio::time::sleep(Duration::from_secs(1)).await;
    neuron.pause(&one).await.unwrap();
    neuron.pause(&one).await.unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(
        desk.did(),
        ["one 1", "two 1", "two below 2", "two 3"],
        "its timer goes on, and it begins nothing"
    );
    let waiting = neuron.ledger().fold(&Waits, None).unwrap().state;
    let paused = waiting.items().any(|item| {
        matches!(&item.what, What::Paused { thread: Some(thread), .. } if *thread == key)
            && item.token == Some(token.clone())
    });
    assert!(paused, "{waiting:?}");
    // The order for all of it holds besides.
    let all = Target::Run(running.id().clone());
    neuron.pause(&all).await.unwrap();
    neuron.resume(&one).await.unwrap();
    neuron.resume(&one).await.unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(desk.did().len(), 4);
    neuron.resume(&all).await.unwrap();
    assert_eq!(running.await.unwrap(), ["6", "6", "4"]);
    let waiting = neuron.ledger().fold(&Waits, None).unwrap().state;
    assert_eq!(waiting.items().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_thread_that_is_cancelled_is_told_and_goes_on() {
    let desk = Arc::new(Desk::default());
    let neuron = Neuron::builder().state(desk.clone()).memory().await.unwrap();
    let running = neuron.run(house, ()).id("h").start().await.unwrap();
    let (token, key) = thread(neuron.ledger(), "one").await;
    let one = Target::Thread(token, key);
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Also where it is paused, and of two cancels the first counts.
    neuron.pause(&one).await.unwrap();
    neuron.cancel(&one, "enough").await.unwrap();
    neuron.cancel(&one, "once more").await.unwrap();
    let told = running.await.unwrap();
    assert_eq!(told, ["Cancelled: thread `one` was cancelled: enough", "6", "4"]);
    assert_eq!(desk.did(), ["one 1", "two 1", "two below 2", "two 3", "office 4"]);
    assert_eq!(number(neuron.ledger(), "thread.failed"), 1);
    assert_eq!(
        neuron.run(house, ()).id("h").await.unwrap(),
        told,
        "and so is its replay"
    );
}

#[tokio::test]
async fn an_order_for_a_thread_outlives_every_crash() {
    for commit in 1..40 {
        let desk = Arc::new(Desk::default());
        let mut kit = {
            let desk = desk.clone();
            Kit::with(move || Neuron::builder().state(desk.clone())).await.unwrap()
        };
        let _started = kit.run(house, ()).id("h").start().await.unwrap();
        let (token, key) = thread(kit.ledger(), "one").await;
        let (one, two) = (Target::Thread(token.clone(), key), thread(kit.ledger(), "two").await.1);
        let two = Target::Thread(token, two);
        kit.neuron().pause(&one).await.unwrap();
        kit.neuron().cancel(&two, "enough").await.unwrap();
        kit.crash_after_commit(commit);
        let crashed = kit
            .skip_time(tokio::time::timeout(Duration::from_mins(30), kit.crashed()))
            .await;
        if crashed.is_err() {
            assert!(commit > 1);
            return;
        }
        kit.restart().await.unwrap();
        let running = kit.run(house, ()).id("h").start().await.unwrap();
        kit.skip_time(tokio::time::sleep(Duration::from_mins(30))).await;
        let before = desk.did();
        assert!(
            before
                .iter()
                .all(|did| did != "one 3" && did != "two 3" && did != "office 4"),
            "crashed after commit {commit}: {before:?}"
        );
        kit.neuron().resume(&one).await.unwrap();
        let told = kit.skip_time(running.wait()).await.unwrap();
        assert_eq!(
            told,
            ["6", "Cancelled: thread `two` was cancelled: enough", "4"],
            "crashed after commit {commit}"
        );
    }
}

// -- what is cancelled cleans up --

#[step]
async fn tidy(cx: &Cx) -> Result<()> {
    Desk::note(cx, "begun")?;
    cx.cancelled().await;
    Desk::note(cx, "told")?;
    Err(Error::terminal("put away").into())
}

#[step]
async fn deaf(cx: &Cx) -> Result<()> {
    Desk::note(cx, "deaf")?;
    cx.cancelled().await;
    std::future::pending().await
}

#[step(once)]
async fn pay(cx: &Cx) -> Result<()> {
    Desk::note(cx, "paid")
}

#[agent]
async fn cleaner(cx: &Cx) -> Result<String> {
    let body = async |cx: Cx| {
        let (tidied, ()) = futures::try_join!(tidy(&cx), deaf(&cx))?;
        pay(&cx).await?;
        Ok::<_, Error>(tidied)
    };
    let both = cx.spawn_thread("both", body);
    Ok(both.await.unwrap_err().to_string())
}

#[orchestrator]
async fn clean(board: &Board) -> Result<String> {
    Ok(board.assign(cleaner, ()).await?)
}

#[tokio::test(start_paused = true)]
async fn the_steps_of_a_cancelled_thread_are_told_and_given_their_time_and_no_more() {
    let desk = Arc::new(Desk::default());
    let neuron = Neuron::builder().state(desk.clone()).memory().await.unwrap();
    let running = neuron.run(clean, ()).id("c").start().await.unwrap();
    let (token, key) = thread(neuron.ledger(), "both").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = tokio::time::Instant::now();
    neuron.cancel(&Target::Thread(token, key), "").await.unwrap();
    let told = running.await.unwrap();
    assert!(told.starts_with("thread `both` was cancelled"), "{told}");
    assert_eq!(began.elapsed().as_secs(), limits::CANCEL_GRACE.as_secs());
    let mut did = desk.did();
    did.sort();
    assert_eq!(did, ["begun", "deaf", "told"]);
    assert_eq!(number(neuron.ledger(), "step.abandoned"), 2);
}

// -- from the command line --

#[tokio::test]
async fn threads_are_ordered_about_from_another_process_by_name_or_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let desk = Arc::new(Desk::default());
    let neuron = Neuron::builder().state(desk.clone()).open(&path).await.unwrap();
    let calls = Pattern::new("calls").unwrap();
    neuron
        .ledger()
        .declare(&calls, Contract::Durable, &Author::cli())
        .await
        .unwrap();
    let running = neuron.run(clean, ()).id("c").start().await.unwrap();
    desk.entered.notified().await;
    let (token, key) = thread(neuron.ledger(), "both").await;
    let ask = |args: &[&str]| {
        let store = path.display().to_string();
        let all = ["neuron"]
            .iter()
            .chain(args)
            .chain(&["--store"])
            .map(|arg| (*arg).to_owned());
        let all: Vec<String> = all.chain([store]).collect();
        tokio::task::spawn_blocking(move || {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let exit = cli::run(all, &mut out, &mut err);
            (exit, String::from_utf8([out, err].concat()).unwrap())
        })
    };
    let token = token.to_string();
    let (exit, said) = ask(&["pause", &token, "--thread", "nobody"]).await.unwrap();
    assert_eq!(exit, Exit::Negative);
    assert!(
        said.contains("nobody") && said.contains("both") && said.contains(&key[..8]),
        "{said}"
    );
    let (exit, said) = ask(&["pause", "c", "--thread", "both"]).await.unwrap();
    assert!(exit == Exit::Fault && said.contains("neuron board"), "{said}");
    let (exit, said) = ask(&["pause", &token, "--thread", "both"]).await.unwrap();
    assert_eq!(exit, Exit::Success, "{said}");
    let (exit, said) = ask(&["waiting"]).await.unwrap();
    assert_eq!(exit, Exit::Success);
    // What it says is pasted.
    let resume = said.split('`').find(|part| part.starts_with("neuron resume")).unwrap();
    let resume: Vec<&str> = resume.split_whitespace().skip(1).collect();
    assert!(resume.contains(&"--thread"), "{said}");
    let (exit, said) = ask(&resume).await.unwrap();
    assert_eq!(exit, Exit::Success, "{said}");
    let (exit, said) = ask(&["cancel", &token, "--thread", &key[..8], "--because", "enough"])
        .await
        .unwrap();
    assert_eq!(exit, Exit::Success, "{said}");
    assert_eq!(running.await.unwrap(), "thread `both` was cancelled: enough");
    let (exit, said) = ask(&["cancel", &token, "--thread", "both"]).await.unwrap();
    assert!(exit == Exit::Negative && said.contains("ended"), "{said}");
}
