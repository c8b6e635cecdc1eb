//! Forks: a run that begins with what is on the log of another one, up to some place.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use orchestrator::{
    board::BoardView,
    builds::{BuildOrder, order_build},
    cli::{self, Exit},
    neuron::{
        Author, Contract, Draft, Ledger, Pattern, SystemClock, Topic,
        pipeline::Pipeline,
        store::{Memory, Select},
        topic::catalog,
        vocabulary::{
            Message as _,
            orchestration::{Fork as Parting, OrchestrationCreated},
        },
    },
    prelude::*,
    runs::{RunState, Runs},
    testing::Kit,
};

/// What the steps did: name and outside key of each; and what was paid, by key.
#[derive(Default)]
struct Done(Mutex<Vec<(String, String)>>, Mutex<BTreeSet<String>>);

impl Done {
    fn note(cx: &Cx, what: &str) -> Result<()> {
        let done = cx.state::<Arc<Self>>()?;
        done.0.lock().unwrap().push((what.into(), cx.idempotency_key().into()));
        Ok(())
    }

    fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[step]
async fn fetch(cx: &Cx, page: u32) -> Result<u32> {
    Done::note(cx, &format!("fetch {page}"))?;
    Ok(page * 10)
}

#[step(once, resolve = paid)]
async fn pay(cx: &Cx, cents: u32) -> Result<u32> {
    Done::note(cx, &format!("pay {cents}"))?;
    let done = cx.state::<Arc<Done>>()?;
    done.1.lock().unwrap().insert(cx.idempotency_key().into());
    Ok(cents)
}

/// Asks the bank.
#[step]
async fn paid(cx: &Cx, cents: u32) -> Result<Option<u32>> {
    let done = cx.state::<Arc<Done>>()?;
    Ok(done.1.lock().unwrap().contains(cx.idempotency_key()).then_some(cents))
}

/// Sums what a step of it fetches, each on a thread.
#[step]
async fn sum(cx: &Cx, pages: Vec<u32>) -> Result<u32> {
    let mut sum = 0;
    for page in pages {
        sum += fetch(cx, page).await?;
    }
    Done::note(cx, "sum")?;
    Ok(sum)
}

#[agent]
async fn reader(cx: &Cx, pages: Vec<u32>) -> Result<(u32, Millis, u64)> {
    let began = cx.now();
    let first = cx.spawn_thread("first", async |cx| Ok::<_, Error>(fetch(&cx, 100).await?));
    let whole = sum(cx, pages).await?;
    cx.sleep(Duration::from_secs(1)).await?;
    let paid = pay(cx, whole + first.await?).await?;
    Ok((paid, began, cx.random()))
}

/// Begins again for each round.
#[agent]
async fn rounds(cx: &Cx, round: u32) -> Result<u32> {
    let page = fetch(cx, 1_000 + round).await?;
    if round == 3 {
        return Ok(page);
    }
    Ok(cx.continue_with(rounds, round + 1).await?)
}

#[orchestrator]
async fn chapter(board: &Board, page: u32) -> Result<(u32, Millis, u64)> {
    Ok(board.assign(reader, vec![page]).await?)
}

/// What a run tells, without when its packages were assigned: those that were not when it was forked have other moments.
fn timeless(((one, _, chance), (two, _, other), round, pos): Told) -> (u32, u64, u32, u64, u32, u64) {
    (one, chance, two, other, round, pos)
}

type Told = ((u32, Millis, u64), (u32, Millis, u64), u32, u64);

#[orchestrator]
async fn book(board: &Board) -> Result<Told> {
    let (one, two) = (board.assign(reader, vec![1, 2]), board.assign(chapter, 3));
    let round = board.assign(rounds, 1);
    let called = board.wait_for("calls").await?;
    Ok((one.await?, two.await?, round.await?, called.pos))
}

async fn store() -> Ledger {
    let ledger = Ledger::over(
        Arc::new(Memory::new().unwrap()),
        Arc::new(SystemClock),
        Pipeline::default(),
    )
    .unwrap();
    let calls = Pattern::new("calls").unwrap();
    ledger.declare(&calls, Contract::Durable, &Author::cli()).await.unwrap();
    ledger
}

async fn call(ledger: &Ledger) {
    let call = Draft::new(Topic::new("calls").unwrap(), Author::cli(), "called").unwrap();
    ledger.publish(call).await.unwrap();
}

fn last(ledger: &Ledger) -> u64 {
    ledger.store().flush();
    ledger.store().last().unwrap().0
}

fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

/// Everything that stands on the topics of a run and its packages.
fn of(ledger: &Ledger, id: &str) -> Vec<String> {
    let board = BoardView::of(ledger, &run(id)).unwrap();
    let tokens: BTreeSet<String> = board
        .packages()
        .iter()
        .map(|package| package.assigned.token.to_string())
        .collect();
    let is_of = |topic: &Topic| {
        let segments: Vec<&str> = topic.segments().collect();
        match segments[..] {
            ["orchestration", of, _] => of == id,
            ["agent", token, _] => tokens.contains(token),
            _ => false,
        }
    };
    let all = ledger.read(Select::All).envelopes().map(Result::unwrap);
    all.filter(|envelope| is_of(&envelope.topic))
        .map(|envelope| format!("{} {}", envelope.topic, envelope.body.kind))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn forked_at_each_place_a_run_does_what_had_not_ended_there_and_nothing_else() {
    let (ledger, done) = (store().await, Arc::new(Done::default()));
    let neuron = Neuron::builder()
        .state(done.clone())
        .over(ledger.clone())
        .await
        .unwrap();
    let first = ledger.store().last().unwrap().0 + 1;
    let running = neuron.run(book, ()).id("one").start().await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    call(&ledger).await;
    let told = running.wait().await.unwrap();
    let end = last(&ledger);
    let kind = orchestrator::neuron::Kind::new("package.assigned").unwrap();
    let packages = ledger.read(Select::Kind(kind)).envelopes();
    let assigned = packages.map(|package| package.unwrap().pos).max().unwrap();
    let (whole, before) = (done.take(), of(&ledger, "one"));
    for at in first..=end {
        let id = format!("fork-{at}");
        let running = neuron.fork(&run("one")).at(at).id(&id).start::<Told>().await;
        let Ok(running) = running else {
            let began = ledger.read(Select::Topic(catalog::lifecycle(&run("one"))));
            let began = began.envelopes().next().unwrap().unwrap().pos;
            assert!(at < began, "{at}: {:?}", running.unwrap_err());
            continue;
        };
        let again = running.await.unwrap();
        assert_eq!(timeless(again), timeless(told), "at {at}");
        if at >= assigned {
            assert_eq!(again, told, "at {at}: a body begins when it began");
        }
        // Each step that had its answer by then, and no other, is not done again.
        let then = ledger.as_of(at).unwrap();
        let ended = |kind: &str| {
            let kind = Select::Kind(orchestrator::neuron::Kind::new(kind).unwrap());
            let ended = then.read(kind).envelopes().map(Result::unwrap);
            ended
                .filter(|envelope| before.contains(&format!("{} {}", envelope.topic, envelope.body.kind)))
                .count()
        };
        let fresh = done.take();
        assert_eq!(fresh.len(), whole.len() - ended("step.completed"), "at {at}: {fresh:?}");
        for (what, key) in &fresh {
            assert!(
                whole.iter().all(|(_, known)| known != key),
                "{what} is known outside as {key} already"
            );
        }
        let runs = ledger.fold(&Runs, None).unwrap().state;
        let forked = runs[&run(&id)].fork.clone().unwrap();
        assert_eq!((forked.run, forked.at), (run("one"), at));
        // Once more it is answered from its own log.
        assert_eq!(neuron.run(book, ()).id(&id).await.unwrap(), again);
        assert!(done.take().is_empty());
        let replayed = neuron.replay(&run(&id)).await.unwrap();
        assert!(replayed.goes_on(), "at {at}: {:?}", replayed.findings);
    }
    assert_eq!(of(&ledger, "one"), before, "the other run learns nothing of it");
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_fork_has_what_each_before_it_had_by_then() {
    let (ledger, done) = (store().await, Arc::new(Done::default()));
    let neuron = Neuron::builder()
        .state(done.clone())
        .over(ledger.clone())
        .await
        .unwrap();
    let running = neuron.run(book, ()).id("one").start().await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    call(&ledger).await;
    let told = running.wait().await.unwrap();
    let whole = done.take().len();
    let steps: Vec<u64> = ledger
        .read(Select::Kind(orchestrator::neuron::Kind::new("step.completed").unwrap()))
        .envelopes()
        .map(|envelope| envelope.unwrap().pos)
        .collect();
    let half = steps[steps.len() / 2];
    let two = neuron
        .fork(&run("one"))
        .at(half)
        .id("two")
        .start::<Told>()
        .await
        .unwrap();
    assert_eq!(timeless(two.await.unwrap()), timeless(told));
    let second = done.take().len();
    assert_eq!(second, whole - steps.len() / 2 - 1);
    // Of what the second did, half counts for the third.
    let again: Vec<u64> = ledger
        .read(Select::Kind(orchestrator::neuron::Kind::new("step.completed").unwrap()))
        .envelopes()
        .map(|envelope| envelope.unwrap().pos)
        .skip(steps.len())
        .collect();
    let at = again[again.len() / 2];
    let three = neuron
        .fork(&run("two"))
        .at(at)
        .id("three")
        .start::<Told>()
        .await
        .unwrap();
    assert_eq!(timeless(three.await.unwrap()), timeless(told));
    assert_eq!(done.take().len(), second - again.len() / 2 - 1);
    let all = neuron.fork(&run("three")).id("four").start::<Told>().await.unwrap();
    assert_eq!(timeless(all.await.unwrap()), timeless(told));
    assert!(done.take().is_empty());
    assert!(neuron.replay(&run("four")).await.unwrap().goes_on());
}

#[tokio::test]
async fn a_fork_that_crashes_at_any_commit_goes_on_as_any_run() {
    for commit in 1..60 {
        let done = Arc::new(Done::default());
        let mut kit = {
            let done = done.clone();
            Kit::with(move || Neuron::builder().state(done.clone())).await.unwrap()
        };
        let calls = Pattern::new("calls").unwrap();
        kit.ledger()
            .declare(&calls, Contract::Durable, &Author::cli())
            .await
            .unwrap();
        let running = kit.run(book, ()).id("one").start().await.unwrap();
        kit.skip_time(tokio::time::sleep(Duration::from_mins(1))).await;
        call(kit.ledger()).await;
        let told = kit.skip_time(running.wait()).await.unwrap();
        done.take();
        let completed = orchestrator::neuron::Kind::new("step.completed").unwrap();
        let at = kit.ledger().read(Select::Kind(completed)).envelopes().nth(2).unwrap();
        let fork = kit.neuron().fork(&run("one")).at(at.unwrap().pos).id("fork");
        kit.crash_after_commit(commit);
        let Ok(_running) = fork.start::<Told>().await else {
            // It crashed before the fork stood.
            continue;
        };
        let crashed = kit
            .skip_time(tokio::time::timeout(Duration::from_hours(1), kit.crashed()))
            .await;
        if crashed.is_err() {
            assert!(commit > 5);
            return;
        }
        kit.restart().await.unwrap();
        let again = kit.skip_time(kit.run(book, ()).id("fork").into_future()).await;
        assert_eq!(
            timeless(again.unwrap()),
            timeless(told),
            "crashed after commit {commit}"
        );
    }
}

#[orchestrator]
async fn patient(board: &Board) -> Result<u32> {
    let copies = board.ask_human::<u32>("How many copies?").await?;
    let page = board.assign(one_page, ()).await?;
    board.sleep(Duration::from_hours(24)).await?;
    Ok(copies + page)
}

#[agent]
async fn one_page(cx: &Cx) -> Result<u32> {
    Ok(fetch(cx, 1).await?)
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_is_forked_beside_and_what_it_waits_for_is_waited_for_anew() {
    let (ledger, done) = (store().await, Arc::new(Done::default()));
    let neuron = Neuron::builder()
        .state(done.clone())
        .over(ledger.clone())
        .await
        .unwrap();
    let running = neuron.run(patient, ()).id("one").start().await.unwrap();
    let mut asked = ledger
        .subscribe(Pattern::all(), orchestrator::neuron::ledger::From::Start)
        .unwrap();
    let question = loop {
        let envelope = asked.next().await.unwrap();
        let question = orchestrator::neuron::vocabulary::dialogue::QuestionAsked::read(&envelope).unwrap();
        if let Some(question) = question {
            break (question.key, envelope.pos);
        }
    };
    let unanswered = neuron
        .fork(&run("one"))
        .at(question.1)
        .id("asks")
        .start::<u32>()
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Both ask the same: it has to be said who is answered.
    let told = neuron.answer(&question.0, &3u32).await.unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Misuse, "{told}");
    neuron.answer_in(&run("one"), &question.0, &3u32).await.unwrap();
    neuron.answer_in(&run("asks"), &question.0, &5u32).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let answered = neuron.fork(&run("one")).id("answered").start::<u32>().await.unwrap();
    let fetched = done.take();
    assert_eq!(fetched.len(), 2, "by the first and by the fork that asked: {fetched:?}");
    assert_eq!(running.await.unwrap(), 13);
    assert_eq!(unanswered.await.unwrap(), 15);
    assert_eq!(answered.await.unwrap(), 13);
    assert!(done.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_forked_is_told_with_what_can_be_done() {
    let (ledger, done) = (store().await, Arc::new(Done::default()));
    let neuron = Neuron::builder()
        .build("shop 1")
        .state(done)
        .over(ledger.clone())
        .await
        .unwrap();
    let running = neuron.run(one, ()).id("one").start().await.unwrap();
    running.await.unwrap();
    let end = last(&ledger);
    let absent = neuron.fork(&run("two")).start::<u32>().await.unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
    assert!(absent.to_string().contains("two"), "{absent}");
    for at in [1, end + 1] {
        let outside = neuron.fork(&run("one")).at(at).start::<u32>().await.unwrap_err();
        assert_eq!(outside.kind(), ErrorKind::Misuse);
        let told = outside.to_string();
        assert!(told.contains(&at.to_string()) && told.contains("neuron log"), "{told}");
    }
    let taken = neuron.fork(&run("one")).id("one").start::<u32>().await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::RunIdConflict);
    let wrong = neuron.fork(&run("one")).id("a b").start::<u32>().await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Malformed);
    let other = Neuron::builder()
        .unlinked()
        .register(book)
        .over(ledger.clone())
        .await
        .unwrap();
    let foreign = other.fork(&run("one")).start::<u32>().await.unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::NotFound);
    assert!(foreign.to_string().contains("`one`"), "{foreign}");
    order_build(&ledger, "shop 1", BuildOrder::Drain, None, Author::cli())
        .await
        .unwrap();
    let closed = neuron.fork(&run("one")).start::<u32>().await.unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Denied);
    assert_eq!(ledger.fold(&Runs, None).unwrap().state.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_says_it_parts_from_itself_or_from_none_is_an_error_and_no_endless_way_back() {
    let ledger = store().await;
    for other in ["me", "nobody"] {
        let created = OrchestrationCreated {
            name: "one".into(),
            args: None,
            build: "shop 1".into(),
            registry: String::new(),
            fork: Some(Parting {
                run: run(other),
                at: u64::MAX,
            }),
        };
        let id = if other == "me" { run("me") } else { run("orphan") };
        let draft = created.draft(catalog::lifecycle(&id), Author::cli()).unwrap();
        ledger.publish(draft).await.unwrap();
        let error = BoardView::of(&ledger, &id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let told = error.to_string();
        assert!(told.contains(id.as_str()) && told.contains(other), "{told}");
    }
}

#[orchestrator]
async fn one(board: &Board) -> Result<u32> {
    Ok(board.assign(one_page, ()).await?)
}

#[tokio::test]
async fn the_command_line_forks_a_run_and_a_process_that_serves_goes_on_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fork.db");
    let done = Arc::new(Done::default());
    let neuron = Neuron::builder().state(done.clone()).open(&path).await.unwrap();
    neuron.run(one, ()).id("one").await.unwrap();
    neuron.ledger().store().flush();
    let first = neuron.ledger().read(Select::Topic(catalog::lifecycle(&run("one"))));
    let first = first.envelopes().next().unwrap().unwrap().pos;
    done.take();
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
    let at = first.to_string();
    let begun = format!("{}@1", catalog::lifecycle(&run("one")));
    let next = format!("{}@2", catalog::lifecycle(&run("one")));
    let (exit, said) = ask(&["fork", "one", "--at", &at, "--id", "two", "--as", "ada"])
        .await
        .unwrap();
    assert_eq!(exit, Exit::Success, "{said}");
    assert!(said.contains("two") && said.contains(&format!("pos {at}")), "{said}");
    for args in [
        &["fork", "one", "--id", "two"][..],
        &["fork", "nobody"],
        &["fork", "one", "--before", &begun],
        &["fork", "one", "--at-pos", "1"],
    ] {
        let (exit, said) = ask(args).await.unwrap();
        assert_eq!(exit, Exit::Negative, "{args:?}: {said}");
    }
    let serving = tokio::spawn(async move { neuron.serve().await });
    let ledger = Ledger::open(&path, orchestrator::neuron::store::Options::default()).unwrap();
    let mut ends = ledger
        .subscribe(
            Pattern::exactly(&catalog::lifecycle(&run("two"))),
            orchestrator::neuron::ledger::From::Start,
        )
        .unwrap();
    while ends.next().await.unwrap().body.kind != *"orchestration.completed" {}
    let runs = ledger.fold(&Runs, None).unwrap().state;
    assert_eq!(runs[&run("two")].state, RunState::Completed);
    let names: Vec<_> = done.take().into_iter().map(|(what, _)| what).collect();
    assert_eq!(names, ["fetch 1"]);
    let (_, said) = ask(&["board", "two"]).await.unwrap();
    assert!(said.contains(&format!("parts from one at pos {at}")), "{said}");
    for place in [&["--at", &begun][..], &["--before", &next]] {
        let (exit, said) = ask(&[&["fork", "one", "--json"], place].concat()).await.unwrap();
        assert_eq!(exit, Exit::Success, "{said}");
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert!((first..first + 2).contains(&said["at"].as_u64().unwrap()), "{said}");
    }
    let (exit, said) = ask(&["fork", "one", "--json"]).await.unwrap();
    assert_eq!(exit, Exit::Success, "{said}");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["fork"], "one");
    serving.abort();
}
