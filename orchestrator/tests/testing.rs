//! The testing kit: time that the test moves, faults by name, crashes, and a matrix that finds what misbehaves.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{
    future::IntoFuture as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use orchestrator::{
    neuron::{Kind, store::Select},
    prelude::*,
    testing::{Kit, assert_log, compare, crash_matrix},
};

/// What the outside has seen.
#[derive(Clone, Default)]
struct Outside(Arc<Mutex<Vec<String>>>);

impl Outside {
    fn note(&self, what: &str) {
        self.0.lock().unwrap().push(what.into());
    }

    fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|seen| *seen == what).count()
    }
}

#[step(retry(3, backoff = "1h"), timeout = "10s")]
async fn fetch(cx: &Cx, page: String) -> Result<usize> {
    if let Ok(outside) = cx.state::<Outside>() {
        outside.note(&page);
    }
    Ok(page.len())
}

#[step(once)]
async fn pay(_cx: &Cx, cents: usize) -> Result<usize> {
    Ok(cents)
}

#[agent]
async fn reader(cx: &Cx, page: String) -> Result<usize> {
    let first = fetch(cx, page.clone()).await?;
    cx.sleep(Duration::from_hours(1)).await?;
    Ok(first + fetch(cx, format!("{page}, again")).await?)
}

#[orchestrator]
async fn read(board: &Board, pages: Vec<String>) -> Result<usize> {
    let readers: Vec<_> = pages.into_iter().map(|page| board.assign(reader, page)).collect();
    let mut sum = 0;
    for reader in readers {
        sum += reader.await?;
    }
    Ok(sum)
}

#[agent]
async fn payer(cx: &Cx) -> Result<usize> {
    let cents = fetch(cx, "price".into()).await?;
    Ok(pay(cx, cents).await?)
}

#[orchestrator]
async fn buy(board: &Board) -> Result<usize> {
    Ok(board.assign(payer, ()).await?)
}

static DRAWN: AtomicU64 = AtomicU64::new(0);

/// Draws a number outside of any step, so that a replay draws another.
#[agent]
async fn gambler(cx: &Cx) -> Result<usize> {
    let drawn = DRAWN.fetch_add(1, Ordering::SeqCst);
    fetch(cx, format!("draw {drawn}")).await?;
    Ok(fetch(cx, "the end".into()).await?)
}

#[orchestrator]
async fn gamble(board: &Board) -> Result<usize> {
    Ok(board.assign(gambler, ()).await?)
}

/// Awaits what never comes.
#[step]
async fn forever(_cx: &Cx) -> Result<()> {
    std::future::pending::<()>().await;
    Ok(())
}

#[agent]
async fn waiter(cx: &Cx) -> Result<()> {
    Ok(forever(cx).await?)
}

#[orchestrator]
async fn wait(board: &Board) -> Result<()> {
    Ok(board.assign(waiter, ()).await?)
}

#[agent]
async fn glancer(cx: &Cx, page: String) -> Result<usize> {
    Ok(fetch(cx, page).await?)
}

#[orchestrator]
async fn glance(board: &Board, page: String) -> Result<usize> {
    Ok(board.assign(glancer, page).await?)
}

fn pages(text: &str) -> Vec<String> {
    text.split(' ').map(Into::into).collect()
}

fn number(kit: &Kit, kind: &str) -> usize {
    let all = kit.ledger().read(Select::Kind(Kind::new(kind).unwrap()));
    all.envelopes().count()
}

#[tokio::test]
async fn time_stands_until_the_test_moves_it_and_timers_waits_and_the_log_follow() {
    let kit = Kit::new().await.unwrap();
    let running = kit.run(read, pages("a")).start().await.unwrap();
    let set = kit.reached("timer.started", "$sleep").await.unwrap();
    kit.advance(Duration::from_mins(59)).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(number(&kit, "timer.fired"), 0);
    kit.advance(Duration::from_mins(1)).await;
    assert_eq!(running.await.unwrap(), 9);
    let fired = kit.reached("timer.fired", "$sleep").await.unwrap();
    assert_eq!(fired.at.0 - set.at.0, 3_600_000);
}

#[tokio::test]
async fn a_run_has_the_same_log_each_time_ids_included() {
    let mut logs = Vec::new();
    for _ in 0..2 {
        let kit = Kit::new().await.unwrap();
        kit.skip_time(kit.run(read, pages("a"))).await.unwrap();
        let all = kit.ledger().read(Select::All).envelopes().map(Result::unwrap);
        let said = all.filter(|envelope| envelope.topic.as_str() != "$leases");
        logs.push(
            said.map(|envelope| (envelope.topic.to_string(), envelope.body.payload, envelope.at))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(logs[0], logs[1]);
}

#[tokio::test]
async fn a_step_fails_on_the_attempt_that_is_named_and_its_body_does_not_run() {
    let outside = Outside::default();
    let state = outside.clone();
    let kit = Kit::with(move || Neuron::builder().state(state.clone())).await.unwrap();
    kit.fail("fetch").on_attempt(1).with("busy");
    assert_eq!(kit.skip_time(kit.run(read, pages("a"))).await.unwrap(), 9);
    assert_eq!((outside.count("a"), outside.count("a, again")), (1, 1));
    assert_eq!(number(&kit, "step.attempted"), 2);
    assert!(kit.faults().unstruck().is_empty());
}

#[tokio::test]
async fn a_step_that_always_fails_has_failed_once_its_attempts_are_used_up() {
    let kit = Kit::new().await.unwrap();
    kit.fail("fetch").always().with("busy");
    kit.fail("fetsch").always().with("busy");
    let error = kit.skip_time(kit.run(read, pages("a"))).await.unwrap_err();
    assert!(error.to_string().contains("busy"), "{error}");
    let attempts: Vec<u32> = kit.faults().entered().into_iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    assert_eq!(kit.faults().unstruck(), ["fetsch (every attempt)"]);
}

#[tokio::test]
async fn a_step_that_is_delayed_beyond_its_timeout_has_timed_out() {
    let kit = Kit::new().await.unwrap();
    kit.delay("fetch", Duration::from_secs(11));
    let error = kit.skip_time(kit.run(read, pages("a"))).await.unwrap_err();
    assert!(error.to_string().contains("10s"), "{error}");
}

#[tokio::test]
async fn after_a_crash_and_a_restart_a_run_goes_on_and_what_had_completed_does_not_run_again() {
    let outside = Outside::default();
    let state = outside.clone();
    let mut kit = Kit::with(move || Neuron::builder().state(state.clone())).await.unwrap();
    let _lost = kit.run(read, pages("a")).start().await.unwrap();
    kit.reached("timer.started", "$sleep").await.unwrap();
    kit.crash_after_commit(1);
    kit.advance(Duration::from_hours(1)).await;
    kit.crashed().await.unwrap();
    kit.restart().await.unwrap();
    assert_eq!(kit.skip_time(kit.run(read, pages("a"))).await.unwrap(), 9);
    assert_eq!((outside.count("a"), outside.count("a, again")), (1, 1));
    let misuse = kit.crashed().await.unwrap_err();
    assert_eq!(misuse.kind(), ErrorKind::Misuse);
}

#[tokio::test]
async fn wherever_a_run_crashes_a_restart_takes_it_over_though_tasks_of_the_dead_process_hang() {
    let mut commit = 1;
    loop {
        let mut kit = Kit::new().await.unwrap();
        kit.crash_after_commit(commit);
        let crashed = tokio::select! {
            biased;
            crashed = kit.crashed() => crashed.map(|()| true),
            output = kit.run(glance, "page".into()).into_future() => output.map(|_| false),
        };
        if !crashed.unwrap() {
            break;
        }
        kit.restart().await.unwrap();
        assert_eq!(kit.run(glance, "page".into()).await.unwrap(), 4);
        commit += 1;
    }
    assert!(commit > 5, "{commit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_runtime_whose_time_cannot_be_paused_is_refused_with_what_to_write() {
    let error = Kit::new().await.unwrap_err();
    assert!(error.to_string().contains("#[tokio::test]"), "{error}");
}

#[tokio::test]
async fn a_recorded_run_answers_its_steps_once_each_and_what_it_did_not_ask_fails_with_what_was_called() {
    let real = Kit::new().await.unwrap();
    real.fail("fetch").on_attempt(1).with("busy");
    real.skip_time(real.run(read, pages("a bc"))).await.unwrap();
    let run = RunId::new("read-1").unwrap();

    let outside = Outside::default();
    let state = outside.clone();
    let kit = Kit::with(move || Neuron::builder().state(state.clone())).await.unwrap();
    kit.play(real.ledger(), &run).unwrap();
    assert_eq!(kit.skip_time(kit.run(read, pages("a bc"))).await.unwrap(), 20);
    assert_eq!(outside.count("a"), 0, "no body has run");
    assert!(kit.faults().entered().iter().all(|call| call.attempt == 1));
    assert!(kit.faults().unplayed().is_empty());
    let error = kit.skip_time(kit.run(read, pages("a"))).await.unwrap_err();
    assert!(error.to_string().contains("`fetch` with {\"page\":\"a\"}"), "{error}");

    kit.play(real.ledger(), &run).unwrap();
    kit.skip_time(kit.run(read, pages("a"))).await.unwrap();
    assert_eq!(kit.faults().unplayed(), ["fetch"]);
    let missing = kit.play(real.ledger(), &RunId::new("other").unwrap()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn what_a_step_failed_with_and_what_was_too_large_for_a_payload_is_played_as_it_was() {
    let real = Kit::new().await.unwrap();
    let page = "x".repeat(100_000);
    real.skip_time(real.run(read, vec![page.clone()])).await.unwrap();
    real.fail("fetch").always().with(Error::terminal("no page").with(&7));
    let failed = real.skip_time(real.run(glance, "gone".into())).await.unwrap_err();

    let kit = Kit::new().await.unwrap();
    kit.play(real.ledger(), &RunId::new("glance-1").unwrap()).unwrap();
    let played = kit.skip_time(kit.run(glance, "gone".into())).await.unwrap_err();
    assert_eq!((&played, played.detail::<u32>()), (&failed, Some(7)));
    kit.play(real.ledger(), &RunId::new("read-1").unwrap()).unwrap();
    assert_eq!(kit.skip_time(kit.run(read, vec![page])).await.unwrap(), 200_007);
}

#[tokio::test]
async fn what_a_log_says_is_compared_by_what_the_text_names() {
    let kit = Kit::new().await.unwrap();
    kit.skip_time(kit.run(read, pages("a"))).await.unwrap();
    assert_log!(
        kit.ledger(),
        r#"
        step.started    fetch  args={"page": "a"}
        step.completed  fetch  output=1
        step.started           args.page="a, again"
        step.completed  fetch  attempt=1 output=8
        "#
    );
    assert_log!(kit.ledger(), "plan.declared");
}

#[tokio::test]
async fn a_log_that_differs_is_told_line_by_line_with_the_place_of_each_envelope() {
    let kit = Kit::new().await.unwrap();
    kit.skip_time(kit.run(read, pages("a"))).await.unwrap();
    let text = "step.started fetch\nstep.completed fetch output=1\nstep.started fetch\nstep.completed fetch output=9";
    let told = compare(kit.ledger(), text).unwrap_err();
    let signs = |sign: &str| told.lines().filter(|line| line.starts_with(sign)).collect::<Vec<_>>();
    assert_eq!(signs("- "), ["- step.completed fetch output=9"], "{told}");
    let found = signs("+ ");
    assert!(found[0].starts_with("+ step.completed fetch output=8"), "{told}");
    assert!(
        found[0].contains("pos ") && found[0].contains("agent.reader-"),
        "{told}"
    );
    // What it prints to be pasted fits.
    let fitting = told.split("fits:\n").last().unwrap();
    compare(kit.ledger(), fitting).unwrap();
    assert!(
        compare(kit.ledger(), "step.started fetch output=words")
            .unwrap_err()
            .contains("quotes")
    );
}

#[tokio::test]
async fn an_orchestrator_that_behaves_survives_a_crash_at_every_commit_in_memory_and_on_disk() {
    let matrix = crash_matrix(Neuron::builder, read, pages("a bcd"));
    let memory = matrix.clone().await.unwrap();
    assert!(memory.crashes > 20 && memory.in_doubt == 0, "{memory:?}");
    let disk = matrix.on_disk().await.unwrap();
    assert!(disk.crashes > 20, "{disk:?}");
}

#[tokio::test]
async fn a_once_step_in_doubt_after_a_crash_is_counted_and_no_failure() {
    let survived = crash_matrix(Neuron::builder, buy, ()).await.unwrap();
    assert!(
        survived.in_doubt >= 1 && survived.crashes > survived.in_doubt,
        "{survived:?}"
    );
}

#[tokio::test]
async fn an_effect_outside_of_a_step_is_found_with_its_commit_and_the_end_of_the_log() {
    let error = crash_matrix(Neuron::builder, gamble, ()).await.unwrap_err();
    let told = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Diverged, "{told}");
    assert!(told.contains("crashed after commit "), "{told}");
    assert!(
        told.contains("replay.diverged") && told.contains("step.completed fetch"),
        "{told}"
    );
}

#[tokio::test]
async fn an_orchestrator_that_never_ends_is_told_instead_of_waited_for() {
    let error = crash_matrix(Neuron::builder, wait, ()).await.unwrap_err();
    assert!(error.to_string().contains("never ends"), "{error}");
}

/// Its output comes from outside.
#[orchestrator]
async fn fickle(_board: &Board) -> Result<u64> {
    Ok(DRAWN.fetch_add(1, Ordering::SeqCst))
}

#[tokio::test]
async fn an_output_that_is_another_each_time_is_found() {
    let error = crash_matrix(Neuron::builder, fickle, ()).await.unwrap_err();
    assert!(error.to_string().contains("undisturbed"), "{error}");
}
