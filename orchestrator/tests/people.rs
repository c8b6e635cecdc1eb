//! What people say to a run, from this process and from the command line.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::{path::PathBuf, sync::Arc};

use orchestrator::{
    cli::{self, Exit},
    neuron::{self, Pattern, ledger::From, store::Select, vocabulary::Message as _},
    prelude::*,
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
