//! A dry run of this build against recorded runs: what it foretells for each edit, and that it does nothing.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use neuron::{
    Ledger, SystemClock,
    pipeline::Pipeline,
    store::{Memory, Select},
};
use orchestrator::{
    Builder, Outlook, Replayed,
    cli::{self, Console, Exit},
    neuron::{self},
    prelude::*,
};

/// What the steps of a test did.
#[derive(Debug, Default)]
struct Did(Mutex<Vec<String>>);

impl Did {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn did(cx: &Cx, what: impl Into<String>) -> Result<()> {
    cx.state::<Arc<Did>>()?.0.lock().unwrap().push(what.into());
    Ok(())
}

#[step(name = "note")]
async fn note(cx: &Cx, what: String) -> Result<String> {
    did(cx, what.clone())?;
    Ok(what)
}

#[step(name = "pay", once)]
async fn pay(cx: &Cx, cents: u32) -> Result<u32> {
    did(cx, format!("pay {cents}"))?;
    Ok(cents)
}

/// The step of another version.
mod number {
    use super::{Cx, Result, step};

    #[step(name = "note")]
    pub(super) async fn note(_cx: &Cx, what: String) -> Result<u64> {
        Ok(what.len() as u64)
    }
}

/// One version of the program: its agent and its orchestrator, under the same names in each.
macro_rules! version {
    ($module:ident, |$cx:ident| $body:block) => {
        version!($module, |$cx| $body, |board, goal| { Ok(board.assign(worker, goal).await?) });
    };
    ($module:ident, |$cx:ident| $body:block, |$board:ident, $goal:ident| $orchestrator:block) => {
        version!($module, |$cx| $body, |$board, $goal: u32| $orchestrator);
    };
    ($module:ident, |$cx:ident| $body:block, |$board:ident, $goal:ident: $ty:ty| $orchestrator:block) => {
        mod $module {
            use super::*;

            #[agent(name = "worker", allow(unrecorded))]
            #[allow(unused_variables, reason = "some have no use for it")]
            pub(super) async fn worker($cx: &Cx, goal: u32) -> Result<u32> $body

            #[orchestrator(name = "work")]
            #[allow(unused_variables, reason = "some have no use for it")]
            pub(super) async fn work($board: &Board, $goal: $ty) -> Result<u32> $orchestrator

            pub(super) fn code(did: &Arc<Did>) -> Builder {
                let builder = Neuron::builder().unlinked().state(did.clone());
                builder.register(work).register(worker).register(note).register(pay)
            }
        }
    };
}

async fn say(cx: &Cx, what: &str) -> Result<String> {
    Ok(note(cx, what.into()).await?)
}

version!(recorded, |cx| {
    say(cx, "a").await?;
    say(cx, "b").await?;
    pay(cx, 5).await?;
    say(cx, "c").await?;
    Ok(1)
});
version!(inserted, |cx| {
    say(cx, "a").await?;
    say(cx, "x").await?;
    pay(cx, 5).await?;
    say(cx, "b").await?;
    say(cx, "c").await?;
    Ok(1)
});
version!(appended, |cx| {
    say(cx, "a").await?;
    say(cx, "b").await?;
    pay(cx, 5).await?;
    say(cx, "c").await?;
    say(cx, "d").await?;
    Ok(1)
});
version!(removed, |cx| {
    say(cx, "b").await?;
    pay(cx, 5).await?;
    say(cx, "c").await?;
    Ok(1)
});
version!(shortened, |cx| {
    say(cx, "a").await?;
    Ok(1)
});
version!(constant, |cx| {
    say(cx, "A").await?;
    say(cx, "b").await?;
    pay(cx, 5).await?;
    Ok(1)
});
version!(reordered, |cx| {
    pay(cx, 5).await?;
    say(cx, "b").await?;
    say(cx, "a").await?;
    say(cx, "c").await?;
    Ok(1)
});
version!(dearer, |cx| {
    say(cx, "a").await?;
    say(cx, "b").await?;
    pay(cx, 6).await?;
    Ok(1)
});
version!(typed, |cx| {
    number::note(cx, "a".into()).await?;
    Ok(1)
});
version!(foreign, |cx| {
    say(cx, "a").await?;
    tokio::time::sleep(Duration::from_hours(1)).await;
    say(cx, "b").await?;
    Ok(1)
});
version!(restless, |cx| {
    loop {
        tokio::task::yield_now().await;
    }
});
version!(other_goal, |cx| { Ok(1) }, |board, goal| {
    Ok(board.assign(worker, goal + 1).await?)
});
version!(other_args, |cx| { Ok(1) }, |board, goal: String| {
    Ok(board.assign(worker, u32::try_from(goal.len())?).await?)
});
version!(panics, |cx| { panic!("not today") });

fn over(store: Memory) -> Ledger {
    Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap()
}

fn all(neuron: &Neuron) -> Vec<String> {
    let all = neuron.ledger().read(Select::All).envelopes();
    all.map(|envelope| {
        let envelope = envelope.unwrap();
        format!("{} {}", envelope.body.kind, envelope.topic)
    })
    .collect()
}

/// The log of the recorded version after so many of its steps had ended.
async fn cut_after(did: &Arc<Did>, ended: usize) -> Memory {
    let store = Memory::new().unwrap();
    let neuron = recorded::code(did).over(over(store.clone())).await.unwrap();
    neuron.run(recorded::work, 7).id("r").await.unwrap();
    let ends = all(&neuron)
        .into_iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("step.completed"));
    let (last, _) = ends.take(ended).last().unwrap();
    did.take();
    store.cut(last + 1).unwrap()
}

async fn replayed(code: Builder, did: &Arc<Did>, store: &Memory) -> Replayed {
    let neuron = code.over(over(store.clone())).await.unwrap();
    let before = all(&neuron);
    let told = neuron.replay(&RunId::new("r").unwrap()).await.unwrap();
    assert_eq!(all(&neuron), before, "nothing is appended");
    assert_eq!(did.take(), [""; 0], "and no step runs");
    let open = neuron.replay_open().await.unwrap();
    assert_eq!(open, std::slice::from_ref(&told), "of all open runs the same is told");
    told
}

#[tokio::test]
async fn each_edit_is_foretold_without_doing_anything() {
    let done = Arc::new(Did::default());
    let did = &done;
    let store = cut_after(did, 3).await;
    let empty = Neuron::builder().unlinked();
    let cases = [
        ("nothing", recorded::code(did), Outlook::GoesOn, &[][..]),
        (
            "a step after the end of the log",
            appended::code(did),
            Outlook::GoesOn,
            &[],
        ),
        ("steps in another order", reordered::code(did), Outlook::GoesOn, &[]),
        (
            "a step inserted",
            inserted::code(did),
            Outlook::RunsAgain,
            &["`note` is recorded", "with other arguments"],
        ),
        (
            "a step removed",
            removed::code(did),
            Outlook::RunsAgain,
            &["no longer asks for `note`"],
        ),
        (
            "all further steps removed",
            shortened::code(did),
            Outlook::RunsAgain,
            &["asks for `note`", "asks for `pay`"],
        ),
        (
            "a constant changed",
            constant::code(did),
            Outlook::RunsAgain,
            &["`note` is recorded", "with other arguments"],
        ),
        (
            "another amount",
            dearer::code(did),
            Outlook::Held,
            &["`pay` must not happen twice", "neuron resolve"],
        ),
        (
            "another output",
            typed::code(did),
            Outlook::Undecodable,
            &["`note`", "a string", "u64"],
        ),
        (
            "a foreign await",
            foreign::code(did),
            Outlook::Unrecorded,
            &["not on the log"],
        ),
        (
            "a body that never rests",
            restless::code(did),
            Outlook::Unrecorded,
            &["not on the log"],
        ),
        (
            "a body that panics",
            panics::code(did),
            Outlook::RunsAgain,
            &["asks for `note`"],
        ),
        (
            "another package",
            other_goal::code(did),
            Outlook::RunsAgain,
            &["`worker` is recorded"],
        ),
        (
            "other arguments of the run",
            other_args::code(did),
            Outlook::Undecodable,
            &["the arguments of the run"],
        ),
        ("no code", empty, Outlook::NoCode, &["no orchestrator `work`"]),
    ];
    for (edit, code, outlook, parts) in cases {
        let told = replayed(code, did, &store).await;
        assert_eq!(told.outlook, outlook, "{edit}: {:#?}", told.findings);
        assert_eq!(told.goes_on(), outlook == Outlook::GoesOn, "{edit}");
        let messages: Vec<_> = told.findings.iter().map(|found| found.message.clone()).collect();
        for part in parts {
            assert!(
                messages.iter().any(|said| said.contains(part)),
                "{edit}: {part}: {messages:#?}"
            );
        }
        assert_eq!(told.findings.is_empty(), parts.is_empty(), "{edit}: {messages:#?}");
    }
}

#[step]
async fn number_free(_cx: &Cx) -> Result<()> {
    Ok(())
}

version!(paid_first, |cx| {
    number_free(cx).await?;
    say(cx, "a").await?;
    Ok(1)
});

#[tokio::test]
async fn a_step_of_another_name_inserted_runs_first_and_which_answers_are_left_is_told() {
    let did = Arc::new(Did::default());
    let store = cut_after(&did, 2).await;
    let told = replayed(paid_first::code(&did).register(number_free), &did, &store).await;
    assert_eq!(told.outlook, Outlook::RunsFirst, "{:#?}", told.findings);
    let found = &told.findings[0];
    assert_eq!(found.name.as_deref(), Some("number_free"));
    assert!(found.token.as_deref().unwrap().starts_with("worker-"));
    let neuron = recorded::code(&did).over(over(store)).await.unwrap();
    let pos = found.pos.unwrap();
    let first = neuron.ledger().read(Select::All).from(pos).limit(1).envelopes().next();
    assert_eq!(
        first.unwrap().unwrap().body.kind,
        *"step.completed",
        "the place of the answer that it precedes"
    );
}

// -- threads, plans, orchestrators below --

#[agent]
async fn threaded(cx: &Cx, extra: bool) -> Result<u32> {
    thread(cx, extra).await
}

async fn thread(cx: &Cx, extra: bool) -> Result<u32> {
    let aside = cx.spawn_thread("t", move |cx| async move {
        if extra && cx.state::<Edited>().is_ok() {
            other(&cx).await?;
        }
        note(&cx, "t1".into()).await?;
        note(&cx, "t2".into()).await?;
        Ok::<_, neuron::BoxError>(1)
    });
    say(cx, "m").await?;
    Ok(aside.await?)
}

/// The program was edited.
struct Edited;

#[step]
async fn other(_cx: &Cx) -> Result<()> {
    Ok(())
}

#[plan]
fn rows(plan: &Plan, what: Node<String>) -> Node<String> {
    plan.step(note, plan.step(note, what))
}

#[orchestrator]
async fn below(board: &Board, extra: bool) -> Result<u32> {
    Ok(board.assign(threaded, extra).await?)
}

#[orchestrator]
async fn tree(board: &Board, extra: bool) -> Result<u32> {
    let planned = board.assign(rows, "p".to_owned());
    let under = board.assign(below, extra);
    planned.await?;
    Ok(under.await?)
}

fn tree_code(did: &Arc<Did>) -> Builder {
    let builder = Neuron::builder().unlinked().state(did.clone());
    let builder = builder.register(tree).register(below).register(threaded);
    builder.register(note).register(other)
}

#[tokio::test]
async fn the_same_code_goes_on_from_every_cut_of_a_run_with_threads_plans_and_orchestrators_below() {
    let did = Arc::new(Did::default());
    let store = Memory::new().unwrap();
    let neuron = tree_code(&did).over(over(store.clone())).await.unwrap();
    neuron.run(tree, true).id("r").await.unwrap();
    let log = all(&neuron);
    let begun = log
        .iter()
        .position(|line| line.starts_with("orchestration.created"))
        .unwrap();
    did.take();
    let mut foretold = 0;
    for cut in begun + 1..=log.len() {
        let cut_store = store.cut(cut).unwrap();
        let same = tree_code(&did).over(over(cut_store.clone())).await.unwrap();
        let told = same.replay(&RunId::new("r").unwrap()).await.unwrap();
        assert!(told.goes_on(), "cut {cut}: {:#?}\n{:#?}", told.findings, &log[..cut]);
        // A thread in flight is looked into: an edit in it is foretold while it matters.
        let edited = tree_code(&did).state(Edited).over(over(cut_store)).await.unwrap();
        let told = edited.replay(&RunId::new("r").unwrap()).await.unwrap();
        foretold += usize::from(told.outlook == Outlook::RunsFirst);
        assert!(told.outlook <= Outlook::RunsFirst, "cut {cut}: {:#?}", told.findings);
        assert_eq!(did.take(), [""; 0]);
    }
    assert!(foretold > 0, "{log:#?}");
}

#[tokio::test]
async fn a_run_that_is_not_there_is_an_error() {
    let neuron = Neuron::builder().unlinked().memory().await.unwrap();
    let error = neuron.replay(&RunId::new("nobody").unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(neuron.replay_open().await.unwrap().is_empty());
}

// -- the command --

/// Never ends, so that its run is open.
#[step]
async fn forever(_cx: &Cx) -> Result<()> {
    std::future::pending().await
}

mod open {
    use super::{Board, Cx, Result, agent, forever, note, orchestrator};

    #[agent(name = "waiter")]
    pub(super) async fn waiter(cx: &Cx, word: String) -> Result<()> {
        note(cx, word).await?;
        Ok(forever(cx).await?)
    }

    #[orchestrator(name = "waits")]
    pub(super) async fn waits(board: &Board, word: String) -> Result<()> {
        Ok(board.assign(waiter, word).await?)
    }
}

mod closed {
    use super::{Board, Cx, Result, agent, forever, note, orchestrator};

    #[agent(name = "waiter")]
    pub(super) async fn waiter(cx: &Cx, word: String) -> Result<()> {
        note(cx, word.to_uppercase()).await?;
        Ok(forever(cx).await?)
    }

    #[orchestrator(name = "waits")]
    pub(super) async fn waits(board: &Board, word: String) -> Result<()> {
        Ok(board.assign(waiter, word).await?)
    }
}

fn asked(builder: Builder, args: &[&str], path: &std::path::Path) -> (Exit, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let console = Console::new(&mut out, &mut err).program(builder);
    let store = path.to_str().unwrap();
    let exit = cli::run_on(["neuron"].iter().chain(args).chain(&["--store", store]), console);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (exit, text(out), text(err))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_command_says_whether_a_build_may_be_deployed_beside_the_process_that_runs() {
    let did = Arc::new(Did::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.db");
    let neuron = Neuron::builder()
        .unlinked()
        .state(did.clone())
        .open(&path)
        .await
        .unwrap();
    let mut log = neuron
        .ledger()
        .subscribe(
            neuron::Pattern::new("agent.*.steps").unwrap(),
            neuron::ledger::From::Start,
        )
        .unwrap();
    let _running = neuron.run(open::waits, "word".into()).id("live").start().await.unwrap();
    while log.next().await.unwrap().body.kind != *"step.completed" {}
    let same = || {
        let builder = Neuron::builder().unlinked().state(did.clone());
        builder.register(open::waits).register(open::waiter).register(note)
    };
    let edited = || {
        let builder = Neuron::builder().unlinked().state(did.clone());
        builder.register(closed::waits).register(closed::waiter).register(note)
    };
    let (exit, out, err) = asked(same(), &["replay", "--all-open"], &path);
    assert_eq!(exit, Exit::Success, "{out}{err}");
    assert!(out.contains("live") && out.contains("goes on"), "{out}");
    let (exit, out, err) = asked(edited(), &["replay", "live", "--json"], &path);
    assert_eq!(exit, Exit::Negative, "{out}{err}");
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&told[0]["run"], &told[0]["outlook"]),
        (&"live".into(), &"runsAgain".into()),
        "{told}"
    );
    assert_eq!(told[0]["findings"][0]["name"], "note");
    let (exit, _, err) = asked(Neuron::builder().unlinked(), &["replay", "--all-open"], &path);
    assert_eq!(exit, Exit::Fault);
    assert!(err.contains("mount `orchestrator::cli` in your own program"), "{err}");
    let (exit, _, err) = asked(same(), &["replay", "nobody"], &path);
    assert_eq!(exit, Exit::Negative, "{err}");
    let (exit, _, _) = asked(same(), &["replay"], &path);
    assert_eq!(exit, Exit::Fault, "a run or all");
    assert_eq!(did.take(), ["word"], "only the live run did anything");
}

#[test]
fn a_run_whose_log_is_damaged_is_told_beside_the_others() {
    let did = Arc::new(Did::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.db");
    let code = || {
        Neuron::builder()
            .unlinked()
            .state(did.clone())
            .register(open::waits)
            .register(open::waiter)
            .register(note)
    };
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let first = runtime();
    first.block_on(async {
        let neuron = code().open(&path).await.unwrap();
        let pattern = neuron::Pattern::new("agent.*.steps").unwrap();
        let mut log = neuron.ledger().subscribe(pattern, neuron::ledger::From::Start).unwrap();
        for id in ["bad", "good"] {
            neuron.run(open::waits, id.into()).id(id).start().await.unwrap();
            while log.next().await.unwrap().body.kind != *"step.completed" {}
        }
    });
    drop(first);
    let shell = rusqlite::Connection::open(&path).unwrap();
    shell.execute_batch("DROP TRIGGER envelope_no_UPDATE").unwrap();
    let changed = shell.execute(
        "UPDATE envelope SET record = replace(record, '\"build\":\"', '\"build\":\"x')
         WHERE seq = 1 AND topic = (SELECT id FROM topic WHERE name = 'orchestration.bad.lifecycle')",
        [],
    );
    assert_eq!(changed.unwrap(), 1);
    drop(shell);
    runtime().block_on(async {
        let neuron = code().open(&path).await.unwrap();
        let told = neuron.replay_open().await.unwrap();
        let outlooks: Vec<_> = told.iter().map(|told| (told.run.as_str(), told.outlook)).collect();
        assert_eq!(
            outlooks,
            [("bad", Outlook::Damaged), ("good", Outlook::GoesOn)],
            "{told:#?}"
        );
    });
}
