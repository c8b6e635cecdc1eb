//! What people say to a run, from this process and from the command line.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{path::PathBuf, sync::Arc, time::Duration};

use orchestrator::{
    cli::{self, Exit},
    neuron::{self, Author, Contract, Pattern, ledger::From, store::Select, vocabulary::Message as _},
    prelude::*,
    testing::Kit,
    waiting::{Waits, What},
};
use tempfile::TempDir;
use tokio::sync::Notify;

#[agent]
async fn writer(cx: &Cx) -> Result<String> {
    Ok(cx.ask_human::<String>("What is it called?").await?)
}

#[orchestrator]
async fn book(board: &Board) -> Result<(String, u32)> {
    let title = board.assign(writer, ()).await?;
    let copies = board.ask_human::<u32>("How many copies?").await?;
    Ok((title, copies))
}

#[agent]
async fn till(cx: &Cx, enough: u64) -> Result<u64> {
    let (mut adds, mut sum) = (cx.updates::<u64, u64>("add"), 0);
    while sum < enough {
        let add = adds.next().await?;
        if add.request == 0 {
            add.refuse("nothing to add").await?;
            continue;
        }
        sum += add.request;
        add.answer(&sum).await?;
    }
    Ok(sum)
}

#[orchestrator]
async fn shop(board: &Board, enough: u64) -> Result<u64> {
    Ok(board.assign(till, enough).await?)
}

/// A store on a disk, which any process may open.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("people.db")
    }

    async fn open(&self) -> Neuron {
        Neuron::open(self.path()).await.unwrap()
    }

    /// What the command line says, and how it ends.
    async fn ask(&self, args: &[&str]) -> (Exit, String) {
        let store = self.path().display().to_string();
        let mut all: Vec<String> = vec!["neuron".into()];
        all.extend(args.iter().map(|arg| (*arg).to_owned()));
        all.extend(["--store".into(), store]);
        let answer = tokio::task::spawn_blocking(move || {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let exit = cli::run(all, &mut out, &mut err);
            (exit, String::from_utf8([out, err].concat()).unwrap())
        });
        answer.await.unwrap()
    }
}

/// Does something in a process of its own, which then dies: nothing of it goes on, and nothing was given back.
async fn dies<F: Future<Output = ()> + Send + 'static>(place: &Place, work: impl FnOnce(Neuron) -> F + Send + 'static) {
    let path = place.path();
    let process = move || {
        let tasks = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        tasks.block_on(async {
            let neuron = Neuron::open(path).await.unwrap();
            work(neuron).await;
        });
        tasks.shutdown_background();
    };
    tokio::task::spawn_blocking(process).await.unwrap();
}

/// The key of the question that is asked next after so many.
async fn question(neuron: &Neuron, nth: usize) -> String {
    let pattern = Pattern::all();
    let mut log = neuron.ledger().subscribe(pattern, From::Start).unwrap();
    let mut seen = 0;
    loop {
        let envelope = log.next().await.unwrap();
        let asked = neuron::vocabulary::dialogue::QuestionAsked::read(&envelope).unwrap();
        if let Some(asked) = asked {
            seen += 1;
            if seen == nth {
                return asked.key;
            }
        }
    }
}

fn number(neuron: &Neuron, kind: &str) -> usize {
    let kind = neuron::Kind::new(kind).unwrap();
    neuron.ledger().read(Select::Kind(kind)).envelopes().count()
}

#[tokio::test]
async fn agents_and_orchestrators_ask_and_the_first_answer_that_fits_stands() {
    let neuron = Neuron::builder().memory().await.unwrap();
    let running = neuron.run(book, ()).id("b").start().await.unwrap();
    let title = question(&neuron, 1).await;
    let wrong = neuron.answer(&title, &7).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Schema, "{wrong}");
    neuron.answer(&title, "Logs").await.unwrap();
    let again = neuron.answer(&title, "Trees").await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict, "{again}");
    let unknown = neuron.answer("ffff#1", "Trees").await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound, "{unknown}");
    let copies = question(&neuron, 2).await;
    neuron.answer(&copies, &300).await.unwrap();
    assert_eq!(running.wait().await.unwrap(), ("Logs".into(), 300));
    let over = neuron.answer(&copies, &300).await.unwrap_err();
    assert_eq!(over.kind(), ErrorKind::Conflict, "{over}");
}

#[tokio::test]
async fn an_answer_that_is_given_while_nobody_runs_is_found_at_the_resume() {
    let place = Place::new();
    dies(&place, |neuron| async move {
        let _running = neuron.run(book, ()).id("b").start().await.unwrap();
        question(&neuron, 1).await;
    })
    .await;
    let (exit, said) = place.ask(&["waiting"]).await;
    assert!(exit == Exit::Success && said.contains("What is it called?"), "{said}");
    let (exit, said) = place.ask(&["answer", "b", "42"]).await;
    assert_eq!(
        exit,
        Exit::Success,
        "plain text is an answer where a text is asked for: {said}"
    );
    let (exit, said) = place.ask(&["waiting"]).await;
    assert!(exit == Exit::Success && said.contains("answered: waits"), "{said}");
    let (exit, said) = place.ask(&["answer", "b", "Trees"]).await;
    assert!(exit == Exit::Negative && said.contains("first answer stands"), "{said}");

    let neuron = place.open().await;
    let running = neuron.run(book, ()).id("b").start().await.unwrap();
    let title = question(&neuron, 1).await;
    question(&neuron, 2).await;
    let (exit, said) = place.ask(&["answer", "b", "many"]).await;
    assert!(exit == Exit::Fault && said.contains("that is no answer"), "{said}");
    let (exit, said) = place.ask(&["answer", "b", "5", "--as", "ada", "--json"]).await;
    assert!(
        exit == Exit::Success && said.contains("\"topic\":\"orchestration.b.control\""),
        "{said}"
    );
    assert_eq!(running.wait().await.unwrap(), ("42".into(), 5));
    let (exit, said) = place.ask(&["answer", &title, "Trees"]).await;
    assert!(exit == Exit::Negative && said.contains("no longer open"), "{said}");
    let (exit, said) = place.ask(&["answer", "b", "5"]).await;
    assert!(exit == Exit::Negative && said.contains("asks nothing"), "{said}");
    let (exit, said) = place.ask(&["answer", "ffff", "5"]).await;
    assert!(exit == Exit::Negative && said.contains("no open question"), "{said}");
}

#[tokio::test]
async fn a_question_is_answered_by_pasting_the_command_that_tells_of_it() {
    let place = Place::new();
    let neuron = place.open().await;
    let running = neuron.run(book, ()).id("b").start().await.unwrap();
    for (nth, answer) in [(1, "Logs"), (2, "5")] {
        question(&neuron, nth).await;
        let (_, said) = place.ask(&["waiting"]).await;
        let told = said.split('`').find(|text| text.starts_with("neuron answer"));
        let told = told.unwrap_or_else(|| panic!("{said}")).replace("ANSWER", answer);
        let words: Vec<&str> = told.split(' ').skip(1).collect();
        let (exit, said) = place.ask(&words).await;
        assert_eq!(exit, Exit::Success, "{told}: {said}");
    }
    assert_eq!(running.wait().await.unwrap(), ("Logs".into(), 5));
}

#[tokio::test]
async fn a_run_is_updated_from_its_own_process_and_from_another() {
    let place = Place::new();
    let neuron = place.open().await;
    let running = neuron.run(shop, 12).id("s").start().await.unwrap();
    // It waits until somebody takes them.
    assert_eq!(running.update::<_, u64>("add", &3u64).await.unwrap(), 3);
    let wrong = running.update::<_, u64>("add", "much").await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Schema, "{wrong}");
    let refused = running.update::<_, u64>("add", &0u64).await.unwrap_err();
    assert_eq!(refused.to_string(), "nothing to add");
    let (exit, said) = place.ask(&["update", "s", "add", "4", "--json"]).await;
    assert!(exit == Exit::Success && said.lines().next() == Some("7"), "{said}");
    let (exit, said) = place.ask(&["update", "s", "subtract", "4"]).await;
    assert!(exit == Exit::Negative && said.contains("it takes add"), "{said}");
    let (exit, said) = place.ask(&["update", "s", "add", "\"x\""]).await;
    assert!(exit == Exit::Fault && said.contains("update `add`"), "{said}");
    assert_eq!(running.update::<_, u64>("add", &5u64).await.unwrap(), 12);
    assert_eq!(running.wait().await.unwrap(), 12);
    let (exit, said) = place.ask(&["update", "s", "add", "1"]).await;
    assert!(exit == Exit::Negative && said.contains("has ended"), "{said}");
    assert_eq!(number(&neuron, "update.taken"), 4);
}

#[orchestrator]
async fn fair(board: &Board) -> Result<u64> {
    let (sum, title) = (board.assign(till, 1), board.assign(writer, ()));
    let sum = sum.await?;
    title.await?;
    Ok(sum)
}

#[tokio::test]
async fn whoever_names_an_agent_that_takes_no_updates_is_told_what_that_one_takes() {
    let place = Place::new();
    let neuron = place.open().await;
    let running = neuron.run(fair, ()).id("f").start().await.unwrap();
    let refused = running.update::<_, u64>("add", &0u64).await.unwrap_err();
    assert_eq!(refused.to_string(), "nothing to add");
    let asked = question(&neuron, 1).await;
    let waits = neuron.ledger().fold(&Waits, None).unwrap().state;
    let asks = |what: &What| matches!(what, What::Asked { key, .. } if *key == asked);
    let writer = waits.items().find(|item| asks(&item.what)).unwrap();
    let token = writer.token.clone().unwrap().to_string();
    let (exit, said) = place.ask(&["update", &token, "add", "4"]).await;
    assert!(exit == Exit::Negative && said.contains("it takes none now"), "{said}");
    assert!(said.contains(&token), "{said}");
    let (exit, said) = place.ask(&["update", "f", "subtract", "4"]).await;
    assert!(exit == Exit::Negative && said.contains("it takes add"), "{said}");
}

#[agent]
async fn indifferent(cx: &Cx) -> Result<()> {
    let mut adds = cx.updates::<u64, u64>("add");
    drop(adds.next().await?);
    Ok(())
}

#[orchestrator]
async fn rude(board: &Board) -> Result<()> {
    Ok(board.assign(indifferent, ()).await?)
}

#[tokio::test]
async fn whoever_is_never_answered_is_told_once_the_agent_has_ended() {
    let neuron = Neuron::builder().memory().await.unwrap();
    let running = neuron.run(rude, ()).id("r").start().await.unwrap();
    let error = running.update::<_, u64>("add", &3u64).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains("without a response"), "{error}");
    running.wait().await.unwrap();
}

#[agent]
async fn watcher(cx: &Cx, round: u64) -> Result<u64> {
    let mut adds = cx.updates::<u64, u64>("add");
    let add = adds.next().await?;
    let seen = add.request;
    add.answer(&round).await?;
    if seen > 0 {
        return Ok(cx.continue_with(watcher, round + 1).await?);
    }
    Ok(round)
}

#[orchestrator]
async fn year(board: &Board) -> Result<u64> {
    Ok(board.assign(watcher, 0).await?)
}

#[tokio::test]
async fn an_agent_that_began_again_is_updated_as_before_and_resumed_where_it_last_began() {
    let place = Place::new();
    dies(&place, |neuron| async move {
        let running = neuron.run(year, ()).id("y").start().await.unwrap();
        for round in 0..3 {
            assert_eq!(running.update::<_, u64>("add", &1u64).await.unwrap(), round);
        }
        // The third beginning stands once it takes updates.
        let steps = Pattern::new("agent.*.steps").unwrap();
        let mut log = neuron.ledger().subscribe(steps, From::Start).unwrap();
        let mut taking = 0;
        while taking < 4 {
            taking += usize::from(log.next().await.unwrap().body.kind == *"update.accepting");
        }
    })
    .await;
    let neuron = place.open().await;
    let running = neuron.run(year, ()).id("y").start().await.unwrap();
    assert_eq!(running.update::<_, u64>("add", &0u64).await.unwrap(), 3);
    assert_eq!(running.wait().await.unwrap(), 3);
    assert_eq!(number(&neuron, "agent.continued"), 3);
    let (exit, said) = place.ask(&["board", "y"]).await;
    assert_eq!(exit, Exit::Success, "{said}");
}

#[step]
async fn look(cx: &Cx) -> Result<()> {
    cx.state::<Arc<Bells>>()?.entered.notify_one();
    cx.cancelled().await;
    cx.state::<Arc<Bells>>()?.told.notify_one();
    Err(neuron::Error::terminal("put away").into())
}

/// What a step that is cancelled rings.
#[derive(Debug, Default)]
struct Bells {
    entered: Notify,
    told: Notify,
}

#[agent]
async fn guard(cx: &Cx) -> Result<()> {
    Ok(look(cx).await?)
}

#[orchestrator]
async fn watch(board: &Board) -> Result<()> {
    Ok(board.assign(guard, ()).await?)
}

#[tokio::test]
async fn orders_of_another_process_that_come_twice_or_too_late_change_nothing() {
    let (place, bells) = (Place::new(), Arc::new(Bells::default()));
    let neuron = Neuron::builder().state(bells.clone()).open(place.path()).await.unwrap();
    let running = neuron.run(watch, ()).id("w").start().await.unwrap();
    bells.entered.notified().await;
    for order in ["pause", "pause", "resume", "resume"] {
        let (exit, said) = place.ask(&[order, "w"]).await;
        assert_eq!(exit, Exit::Success, "{order}: {said}");
    }
    let (exit, said) = place.ask(&["cancel", "w", "--because", "enough"]).await;
    assert_eq!(exit, Exit::Success, "{said}");
    // The step is told in the process that runs it.
    bells.told.notified().await;
    let run = Target::Run(running.id().clone());
    neuron.cancel(&run, "again").await.unwrap();
    let error = running.wait().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the run was cancelled: enough",
        "the first order stands"
    );
    assert_eq!(number(&neuron, "step.abandoned"), 1);
    let ended = number(&neuron, "orchestration.cancelled");
    for order in ["pause", "resume", "cancel"] {
        let (exit, said) = place.ask(&[order, "w"]).await;
        assert!(exit == Exit::Negative && said.contains("has ended"), "{order}: {said}");
    }
    neuron.cancel(&run, "once more").await.unwrap();
    let again = neuron.run(watch, ()).id("w").await.unwrap_err();
    assert_eq!(again.to_string(), "the run was cancelled: enough");
    assert_eq!((ended, number(&neuron, "orchestration.cancelled")), (1, 1));
}

/// Asks, does without after a while, and goes on with other work for long.
#[agent]
async fn editor(cx: &Cx) -> Result<u64> {
    tokio::select! {
        biased;
        said = cx.ask_human::<bool>("Publish?") => return Ok(u64::from(said?)),
        over = cx.sleep(Duration::from_secs(1)) => over?,
    }
    Ok(cx.wait_for("calls").await?.decode()?)
}

#[orchestrator]
async fn paper(board: &Board) -> Result<u64> {
    Ok(board.assign(editor, ()).await?)
}

#[tokio::test]
async fn a_question_that_lost_a_race_is_open_no_more_whenever_the_process_crashed() {
    let mut hit = 0;
    for commit in 1..40 {
        let mut kit = Kit::new().await.unwrap();
        let calls = Pattern::new("calls").unwrap();
        kit.ledger()
            .declare(&calls, Contract::Durable, &Author::cli())
            .await
            .unwrap();
        kit.crash_after_commit(commit);
        let _lost = kit.run(paper, ()).start().await.unwrap();
        let crashed = kit
            .skip_time(tokio::time::timeout(Duration::from_hours(1), kit.crashed()))
            .await;
        if crashed.is_err() {
            break;
        }
        kit.restart().await.unwrap();
        let running = kit.run(paper, ()).start().await.unwrap();
        hit += 1;
        // By then it waits for a call.
        kit.skip_time(tokio::time::sleep(Duration::from_hours(1))).await;
        kit.ledger().store().flush();
        let waiting = kit.ledger().fold(&Waits, None).unwrap().state;
        let is_open = waiting.items().any(|item| matches!(item.what, What::Asked { .. }));
        assert!(
            !is_open,
            "crashed after commit {commit}: nobody waits for an answer any more"
        );
        assert_eq!(number(kit.neuron(), "question.withdrawn"), 1);
        drop(running);
    }
    assert!(hit > 5);
}

// -- an orchestrator within another --

#[orchestrator]
async fn chapter(board: &Board) -> Result<bool> {
    Ok(board.ask_human::<bool>("Print it?").await?)
}

#[orchestrator]
async fn volume(board: &Board) -> Result<bool> {
    Ok(board.assign(chapter, ()).await?)
}

#[tokio::test]
async fn an_orchestrator_within_another_is_told_the_answer_to_its_question() {
    let kit = Kit::new().await.unwrap();
    let running = kit.run(volume, ()).start().await.unwrap();
    let asked = kit.reached("question.asked", "$ask").await.unwrap();
    let key = asked.body.payload.unwrap().to_value()["key"]
        .as_str()
        .unwrap()
        .to_owned();
    kit.neuron().answer(&key, &true).await.unwrap();
    let told = kit
        .skip_time(tokio::time::timeout(Duration::from_hours(1), running.wait()))
        .await;
    assert!(told.is_ok(), "an hour later nobody has been told of the answer");
    assert!(told.unwrap().unwrap());
}

#[tokio::test]
async fn an_order_that_cannot_be_read_keeps_nobody_from_those_behind_it() {
    let (place, bells) = (Place::new(), Arc::new(Bells::default()));
    let neuron = Neuron::builder().state(bells.clone()).open(place.path()).await.unwrap();
    let running = neuron.run(watch, ()).id("w").start().await.unwrap();
    bells.entered.notified().await;
    let _other = neuron.run(watch, ()).id("x").start().await.unwrap();
    bells.entered.notified().await;
    let (exit, said) = place.ask(&["pause", "x"]).await;
    assert_eq!(exit, Exit::Success, "{said}");
    let spoilt = place.path();
    let spoil = tokio::task::spawn_blocking(move || {
        let shell = rusqlite::Connection::open(spoilt).unwrap();
        shell.busy_timeout(Duration::from_secs(10)).unwrap();
        let row = "INSERT INTO envelope (pos, topic, seq, type, at, id, record)
                   SELECT (SELECT max(pos) + 1 FROM envelope), topic, seq + 1, type, at, id, '{' FROM envelope
                   WHERE pos = (SELECT max(pos) FROM envelope WHERE record LIKE '%control.paused%')";
        shell.execute(row, []).unwrap()
    });
    assert_eq!(spoil.await.unwrap(), 1);
    let (exit, said) = place.ask(&["cancel", "w", "--because", "enough"]).await;
    assert_eq!(exit, Exit::Success, "{said}");
    let ended = tokio::time::timeout(Duration::from_mins(1), running.wait()).await;
    assert!(ended.is_ok(), "nobody hears the order");
    let error = ended.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the run was cancelled: enough");
}

/// Puts an order after the last pause that is there, whose type has no name.
fn spoil(path: PathBuf) {
    let shell = rusqlite::Connection::open(path).unwrap();
    shell.busy_timeout(Duration::from_secs(10)).unwrap();
    shell.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let row = "INSERT INTO envelope (pos, topic, seq, type, at, id, record)
               SELECT (SELECT max(pos) + 1 FROM envelope), topic, seq + 1, 999999, at, id, record FROM envelope
               WHERE pos = (SELECT max(pos) FROM envelope WHERE record LIKE '%control.paused%')";
    assert_eq!(shell.execute(row, []).unwrap(), 1);
}

#[test]
fn orders_that_cannot_be_read_at_all_keep_nobody_from_working() {
    let place = Place::new();
    let (path, bells) = (place.path(), Arc::new(Bells::default()));
    let (works, worked) = std::sync::mpsc::channel();
    // One that hears orders and does nothing else leaves no thread to anybody, not even to a timer.
    std::thread::spawn(move || {
        let tasks = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tasks.block_on(async {
            let neuron = Neuron::builder().state(bells.clone()).open(&path).await.unwrap();
            let running = neuron.run(watch, ()).id("w").start().await.unwrap();
            bells.entered.notified().await;
            neuron.pause(&Target::Run(running.id().clone())).await.unwrap();
            let orders = Pattern::new("*.*.control").unwrap();
            let mut orders = neuron.ledger().subscribe(orders, From::Now).unwrap();
            spoil(path);
            orders.next().await.unwrap_err();
            // Whoever hears orders has met the same by the time that this has had so many turns.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
        });
        works.send(()).unwrap();
    });
    assert!(worked.recv_timeout(Duration::from_secs(20)).is_ok(), "nobody works");
}
