//! Runs through the public surface: assign, declare, clearance, execute, report.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{
    collections::{BTreeSet, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use neuron::{
    Fold, Kind, Ledger, SystemClock,
    pipeline::Pipeline,
    store::{Fault, Memory, Point, Select, Store as _},
};
use orchestrator::{
    account::{Account, Burn, Cost},
    board::BoardView,
    neuron::{
        self,
        vocabulary::{
            Message as _,
            control::{ControlResolved, StepRuling},
            orchestration::EdgeReason,
        },
    },
    package::Phase,
    prelude::*,
    runs::{RunState, Runs, Unfinished},
    waiting::{Waits, What},
};
use tokio::sync::Notify;

/// Counts the letters of a word.
#[step]
async fn count(_cx: &Cx, word: String) -> Result<usize> {
    Ok(word.len())
}

#[step]
async fn add(_cx: &Cx, parts: Vec<usize>) -> Result<usize> {
    Ok(parts.into_iter().sum())
}

#[plan]
fn outline(plan: &Plan, word: Node<String>) -> Node<usize> {
    plan.step(count, word)
}

#[agent(plan = outline)]
async fn reader(cx: &Cx, word: String) -> Result<usize> {
    Ok(count(cx, word).await?)
}

#[plan]
fn total(plan: &Plan, parts: Node<Vec<usize>>) -> Node<usize> {
    plan.step(add, parts)
}

#[orchestrator]
async fn letters(board: &Board, words: Vec<String>) -> Result<usize> {
    let parts: Vec<_> = words.into_iter().map(|word| board.assign(reader, word)).collect();
    Ok(board.assign(total, parts).await?)
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(Into::into).collect()
}

fn run_id(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

fn kinds(neuron: &Neuron) -> Vec<String> {
    let all = neuron.ledger().read(Select::All).envelopes();
    all.map(|envelope| envelope.unwrap().body.kind.to_string()).collect()
}

fn number(neuron: &Neuron, kind: &str) -> usize {
    let all = neuron.ledger().read(Select::Kind(Kind::new(kind).unwrap()));
    all.envelopes().count()
}

fn board(neuron: &Neuron, id: &str) -> BoardView {
    BoardView::of(neuron.ledger(), &run_id(id)).unwrap()
}

#[tokio::test]
async fn a_fan_out_and_fan_in_gives_its_output_and_the_whole_board_is_cleared_first() {
    let neuron = Neuron::builder().memory().await.unwrap();
    let sum = neuron.run(letters, words("one three five")).id("r").await.unwrap();
    assert_eq!(sum, 12);
    let kinds = kinds(&neuron);
    let first_step = kinds.iter().position(|kind| kind.starts_with("step.")).unwrap();
    let cleared = kinds[..first_step]
        .iter()
        .filter(|kind| *kind == "clearance.go")
        .count();
    assert_eq!(cleared, 4, "{kinds:?}");
    let board = board(&neuron, "r");
    assert!(
        board
            .packages()
            .iter()
            .all(|package| board.phase(package) == Phase::Done)
    );
    let into_total = board.before(board.packages().last().unwrap());
    let edges: Vec<_> = into_total
        .map(|edge| (edge.parameter.clone(), edge.index, edge.why))
        .collect();
    let edge = |index| (Some("parts".into()), Some(index), EdgeReason::Value);
    assert_eq!(edges, [edge(0), edge(1), edge(2)]);
    assert_eq!(kinds.last().unwrap(), "orchestration.completed");
}

#[tokio::test]
async fn a_run_that_has_ended_gives_its_recorded_result_and_runs_nothing() {
    let neuron = Neuron::builder().memory().await.unwrap();
    let first = neuron.run(letters, words("a bb")).id("r").await.unwrap();
    let before = kinds(&neuron).len();
    assert_eq!(neuron.run(letters, words("a bb")).id("r").await.unwrap(), first);
    assert_eq!(kinds(&neuron).len(), before);
}

#[tokio::test]
async fn other_arguments_under_the_same_id_are_a_conflict() {
    let neuron = Neuron::builder().memory().await.unwrap();
    neuron.run(letters, words("a")).id("r").await.unwrap();
    let error = neuron.run(letters, words("b")).id("r").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RunIdConflict);
    let error = neuron.run(letters, words("b")).id("r r").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
}

#[tokio::test]
async fn every_envelope_of_a_package_names_what_brought_it_about() {
    let neuron = Neuron::builder().memory().await.unwrap();
    neuron.run(letters, words("a bb")).id("r").await.unwrap();
    for envelope in neuron.ledger().read(Select::All).envelopes() {
        let envelope = envelope.unwrap();
        let cause = envelope
            .cause()
            .map(|cause| neuron.ledger().resolve(&cause).unwrap().body.kind.to_string());
        let expected = match envelope.body.kind.as_str() {
            "plan.declared" => Some("package.assigned"),
            "clearance.go" => Some("plan.declared"),
            "step.started" | "package.completed" => Some("clearance.go"),
            _ => None,
        };
        assert_eq!(cause.as_deref(), expected, "{}", envelope.body.kind);
    }
}

static TOGETHER: AtomicUsize = AtomicUsize::new(0);

#[step(owns("index"))]
async fn write(_cx: &Cx, what: u32) -> Result<u32> {
    assert_eq!(TOGETHER.fetch_add(1, Ordering::SeqCst), 0, "two owners at once");
    tokio::task::yield_now().await;
    TOGETHER.fetch_sub(1, Ordering::SeqCst);
    Ok(what)
}

#[plan]
fn writing(plan: &Plan, what: u32) -> Node<u32> {
    plan.step(write, what)
}

#[orchestrator]
async fn writers(board: &Board, many: u32) -> Result<u32> {
    let all: Vec<_> = (0..many).map(|what| board.assign(writing, what)).collect();
    let mut sum = 0;
    for one in all {
        sum += one.await?;
    }
    Ok(sum)
}

#[tokio::test]
async fn a_resource_conflict_becomes_an_injected_edge() {
    let neuron = Neuron::builder().memory().await.unwrap();
    assert_eq!(neuron.run(writers, 5).id("r").await.unwrap(), 10);
    let board = board(&neuron, "r");
    assert_eq!(board.edges().len(), 4);
    for edge in board.edges() {
        assert_eq!(
            (edge.why, edge.resource.as_deref()),
            (EdgeReason::Clearance, Some("index"))
        );
        assert!(edge.because.as_deref().unwrap().contains("owns `index`"));
    }
}

#[orchestrator]
async fn circle(board: &Board) -> Result<String> {
    let first = board.assign(reader, "a");
    let second = board.assign(reader, "b").after(&first);
    let first = first.after(&second);
    Ok(first.await.unwrap_err().to_string())
}

#[tokio::test]
async fn packages_that_wait_for_each_other_are_denied() {
    let neuron = Neuron::builder().memory().await.unwrap();
    let why = neuron.run(circle, ()).id("r").await.unwrap();
    assert!(why.contains("reader") && why.contains("wait for each other"), "{why}");
    let board = board(&neuron, "r");
    assert!(
        board
            .packages()
            .iter()
            .all(|package| board.phase(package) == Phase::Denied)
    );
    assert_eq!(number(&neuron, "clearance.go"), 0);
}

#[step]
async fn breaks(_cx: &Cx) -> Result<usize> {
    Err("it breaks".into())
}

#[agent]
async fn broken(cx: &Cx) -> Result<usize> {
    Ok(breaks(cx).await?)
}

#[orchestrator]
async fn failing(board: &Board) -> Result<Vec<String>> {
    let part = board.assign(broken, ());
    let sum = board.assign(total, vec![part.clone(), board.assign(reader, "fine")]);
    let later = board.assign(reader, "later").after(&sum);
    let mut errors = Vec::new();
    for error in [
        part.await.unwrap_err(),
        sum.await.unwrap_err(),
        later.await.unwrap_err(),
    ] {
        errors.push(format!("{:?}: {error}", error.kind()));
    }
    Ok(errors)
}

#[tokio::test]
async fn a_failed_package_fails_its_dependants_and_nobody_else() {
    let neuron = Neuron::builder().memory().await.unwrap();
    let errors = neuron.run(failing, ()).id("r").await.unwrap();
    assert_eq!(errors[0], "Failed: it breaks");
    assert_eq!(
        errors[1],
        "Upstream: `broken`, which this depends on, failed: it breaks"
    );
    assert_eq!(errors[2], errors[1], "however far down, what broke is named");
    let board = board(&neuron, "r");
    let fine = &board.packages()[1];
    assert_eq!((&*fine.assigned.name, board.phase(fine)), ("reader", Phase::Done));
}

#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

#[step]
async fn note(cx: &Cx, what: String) -> Result<()> {
    cx.state::<Arc<Seen>>()?.0.lock().unwrap().push(what);
    Ok(())
}

#[agent]
async fn noter(cx: &Cx, what: String) -> Result<()> {
    Ok(note(cx, what).await?)
}

#[orchestrator]
async fn forgetful(board: &Board) -> Result<u32> {
    drop(board.assign(noter, "never awaited"));
    Ok(7)
}

#[tokio::test]
async fn a_package_that_nobody_awaited_runs_before_the_run_ends() {
    let seen = Arc::new(Seen::default());
    let neuron = Neuron::builder().state(seen.clone()).memory().await.unwrap();
    assert_eq!(neuron.run(forgetful, ()).await.unwrap(), 7);
    assert_eq!(*seen.0.lock().unwrap(), ["never awaited"]);
    assert_eq!(kinds(&neuron).last().unwrap(), "orchestration.completed");
}

#[orchestrator]
async fn nested(board: &Board, texts: Vec<String>) -> Result<usize> {
    let parts: Vec<_> = texts.iter().map(|text| board.assign(letters, words(text))).collect();
    let called = letters(board, words("called at once")).await?;
    Ok(called + board.assign(total, parts).await?)
}

#[tokio::test]
async fn an_orchestrator_is_assigned_or_called_and_its_packages_stand_on_the_same_board() {
    let neuron = Neuron::builder().memory().await.unwrap();
    let sum = neuron
        .run(nested, vec!["a bb".into(), "ccc".into()])
        .id("r")
        .await
        .unwrap();
    assert_eq!(sum, 12 + 6);
    let board = board(&neuron, "r");
    let scopes: BTreeSet<_> = board.packages().iter().map(|package| &package.assigned.scope).collect();
    assert_eq!(scopes.len(), 4, "the run's, the call's, and one of each package");
    assert!(
        board
            .packages()
            .iter()
            .all(|package| board.phase(package) == Phase::Done)
    );
}

#[orchestrator]
async fn growing(board: &Board, goal: usize) -> Result<usize> {
    let (mut have, mut rounds) = (0, 0);
    while have < goal {
        rounds += 1;
        have += board.assign(reader, "x".repeat(rounds)).await?;
    }
    Ok(rounds)
}

#[tokio::test]
async fn a_board_grows_while_it_runs_one_round_per_idle_moment() {
    let neuron = Neuron::builder().memory().await.unwrap();
    assert_eq!(neuron.run(growing, 10).id("r").await.unwrap(), 4);
    assert_eq!(board(&neuron, "r").rounds(), 4);
}

#[step(owns("file"))]
async fn seize(_cx: &Cx) -> Result<u32> {
    Ok(1)
}

#[step(once)]
async fn pay(_cx: &Cx, cents: u32) -> Result<u32> {
    Ok(cents)
}

#[agent(plan = outline)]
async fn deviant(cx: &Cx, word: String) -> Result<usize> {
    let more = reader_step(cx, word.clone()).await?;
    pay(cx, 5).await?;
    Ok(count(cx, word).await? + more)
}

#[step]
async fn reader_step(_cx: &Cx, word: String) -> Result<usize> {
    Ok(word.len())
}

#[orchestrator]
async fn wandering(board: &Board) -> Result<usize> {
    Ok(board.assign(deviant, "abc").await?)
}

#[tokio::test]
async fn an_undeclared_step_runs_and_is_recorded_and_one_that_is_once_waits_for_a_ruling() {
    let neuron = Neuron::builder().memory().await.unwrap();
    assert_eq!(neuron.run(wandering, ()).id("r").await.unwrap(), 6);
    let board = board(&neuron, "r");
    let package = &board.packages()[0];
    assert_eq!(package.deviations, 1);
    let amendments: Vec<_> = package.amendments.values().map(|amendment| &*amendment.name).collect();
    assert_eq!(amendments, ["pay"]);
    let kinds = kinds(&neuron);
    let place = |kind: &str| kinds.iter().position(|known| known == kind).unwrap();
    assert!(place("plan.amended") < kinds.iter().rposition(|kind| kind == "clearance.go").unwrap());
}

#[derive(Default)]
struct Latch {
    entered: Notify,
    leave: Notify,
}

#[step]
async fn wait_here(cx: &Cx) -> Result<()> {
    let latch = cx.state::<Arc<Latch>>()?;
    latch.entered.notify_one();
    latch.leave.notified().await;
    Ok(())
}

#[agent(owns("file"))]
async fn holder(cx: &Cx) -> Result<()> {
    Ok(wait_here(cx).await?)
}

#[agent]
async fn greedy(cx: &Cx) -> Result<String> {
    Ok(seize(cx).await.unwrap_err().to_string())
}

#[orchestrator]
async fn quarrel(board: &Board) -> Result<String> {
    let held = board.assign(holder, ());
    let why = board.assign(greedy, ()).await?;
    board.assign(releaser, ()).await?;
    held.await?;
    Ok(why)
}

#[agent]
async fn releaser(cx: &Cx) -> Result<()> {
    cx.state::<Arc<Latch>>()?.leave.notify_one();
    Ok(())
}

#[tokio::test]
async fn an_amendment_whose_claim_is_not_free_is_denied_and_the_step_is_told() {
    let neuron = Neuron::builder()
        .state(Arc::new(Latch::default()))
        .memory()
        .await
        .unwrap();
    let why = neuron.run(quarrel, ()).id("r").await.unwrap();
    assert!(why.contains("`file` is held by `holder`"), "{why}");
    assert_eq!(number(&neuron, "clearance.denied"), 1);
}

#[orchestrator]
async fn waiting(board: &Board) -> Result<usize> {
    let latched = board.assign(latched, ());
    let next = board.assign(reader, "after").after(&latched);
    latched.await?;
    Ok(next.await?)
}

#[agent]
async fn latched(cx: &Cx) -> Result<()> {
    Ok(wait_here(cx).await?)
}

#[tokio::test]
async fn a_cancelled_run_ends_as_cancelled_and_says_why() {
    let latch = Arc::new(Latch::default());
    let neuron = Neuron::builder().state(latch.clone()).memory().await.unwrap();
    let running = neuron.run(waiting, ()).id("r").start().await.unwrap();
    latch.entered.notified().await;
    neuron
        .cancel(&Target::Run(running.id().clone()), "enough")
        .await
        .unwrap();
    let error = running.wait().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Cancelled, "the run was cancelled: enough".into())
    );
    let board = board(&neuron, "r");
    assert!(
        board
            .packages()
            .iter()
            .all(|package| board.phase(package) == Phase::Cancelled)
    );
    let again = neuron.run(waiting, ()).id("r").await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Cancelled);
}

/// Fails the commits it is told to, as a full disk would.
#[derive(Debug, Default)]
struct FullDisk(AtomicBool);

impl Fault for FullDisk {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == Point::BeforeCommit && self.0.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Full, "the disk is full"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_run_that_the_disk_stopped_goes_on_under_a_new_epoch_and_what_it_left_writes_nothing() {
    let (latch, disk) = (Arc::new(Latch::default()), Arc::new(FullDisk::default()));
    let builder = Neuron::builder().state(latch.clone()).fault(disk.clone());
    let neuron = builder.memory().await.unwrap();
    let running = neuron.run(waiting, ()).id("r").start().await.unwrap();
    latch.entered.notified().await;
    disk.0.store(true, Ordering::SeqCst);
    latch.leave.notify_one();
    assert_eq!(running.wait().await.unwrap_err().kind(), ErrorKind::Full);
    disk.0.store(false, Ordering::SeqCst);
    let running = neuron.run(waiting, ()).id("r").start().await.unwrap();
    latch.entered.notified().await;
    latch.leave.notify_one();
    running.wait().await.unwrap();
    assert_eq!(neuron.ledger().store().epoch("run:r").unwrap(), 2);
    // The one that waits and the one that counts, each once.
    assert_eq!(number(&neuron, "step.completed"), 2);
}

#[tokio::test]
async fn every_envelope_that_a_run_writes_is_written_under_an_epoch() {
    let latch = Arc::new(Latch::default());
    let neuron = Neuron::builder().state(latch.clone()).memory().await.unwrap();
    latch.leave.notify_one();
    neuron.run(waiting, ()).id("r").await.unwrap();
    let mut written = 0;
    for envelope in neuron.ledger().read(Select::All).envelopes() {
        let envelope = envelope.unwrap();
        // Leases are what epochs come from, and an order is anybody's.
        if !envelope.topic.as_str().starts_with('$') && !envelope.topic.as_str().ends_with(".control") {
            let epoch = envelope.headers.decode::<u64>("epoch");
            assert_eq!(epoch, Some(1), "{} on {}", envelope.body.kind, envelope.topic);
            written += 1;
        }
    }
    assert!(written > 5);
}

/// Panics in one commit, counted from when it is set.
#[derive(Debug, Default)]
struct Slip(AtomicUsize);

impl Fault for Slip {
    fn at(&self, point: Point) -> Result<(), Error> {
        let left = self.0.load(Ordering::SeqCst);
        if point == Point::BeforeCommit && left > 0 {
            self.0.store(left - 1, Ordering::SeqCst);
            assert!(left > 1, "a slip of the store");
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_run_whose_driver_panicked_is_no_longer_counted_as_going_on_and_recover_takes_it_up() {
    let (latch, slip) = (Arc::new(Latch::default()), Arc::new(Slip::default()));
    let builder = Neuron::builder().state(latch.clone()).fault(slip.clone());
    let neuron = builder.memory().await.unwrap();
    // Its claim, its creation, and then what its driver lays on the board.
    slip.0.store(3, Ordering::SeqCst);
    let panicked = neuron.run(waiting, ()).id("r").await.unwrap_err();
    assert_eq!(panicked.kind(), ErrorKind::Panicked);
    assert_eq!(number(&neuron, "orchestration.created"), 1);
    let id = RunId::new("r").unwrap();
    assert_eq!(neuron.recover().await.unwrap().here, [id]);
    latch.entered.notified().await;
    latch.leave.notify_one();
    neuron.run(waiting, ()).id("r").await.unwrap();
    // Whatever the first driver has left behind is fenced.
    assert_eq!(neuron.ledger().store().epoch("run:r").unwrap(), 2);
    assert_eq!(number(&neuron, "step.completed"), 2);
}

#[tokio::test]
async fn a_cancelled_token_fails_what_depends_on_it_and_the_run_goes_on() {
    let latch = Arc::new(Latch::default());
    let neuron = Neuron::builder().state(latch.clone()).memory().await.unwrap();
    let running = neuron.run(waiting, ()).id("r").start().await.unwrap();
    latch.entered.notified().await;
    let token = board(&neuron, "r").packages()[0].assigned.token.clone();
    neuron.cancel(&Target::Token(token), "this one").await.unwrap();
    let error = running.wait().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let board = board(&neuron, "r");
    let phases: Vec<_> = board.packages().iter().map(|package| board.phase(package)).collect();
    assert_eq!(phases, [Phase::Cancelled, Phase::Failed]);
}

#[tokio::test]
async fn a_paused_run_lets_its_steps_end_and_starts_no_more_until_it_is_resumed() {
    let latch = Arc::new(Latch::default());
    let neuron = Neuron::builder().state(latch.clone()).memory().await.unwrap();
    let running = neuron.run(waiting, ()).id("r").start().await.unwrap();
    latch.entered.notified().await;
    let target = Target::Run(running.id().clone());
    let mut completed = neuron
        .ledger()
        .subscribe(
            neuron::Pattern::new("agent.*.steps").unwrap(),
            neuron::ledger::From::Start,
        )
        .unwrap();
    neuron.pause(&target).await.unwrap();
    latch.leave.notify_one();
    while completed.next().await.unwrap().body.kind != *"step.completed" {}
    assert_eq!(number(&neuron, "step.started"), 1);
    neuron.resume(&target).await.unwrap();
    assert_eq!(running.wait().await.unwrap(), 5);
    assert_eq!(number(&neuron, "step.started"), 2);
}

#[orchestrator]
async fn smuggled(_board: &Board) -> Result<String> {
    let neuron = NEURON.get().unwrap().clone();
    Ok(neuron.run(letters, words("a")).await.unwrap_err().to_string())
}

static NEURON: std::sync::OnceLock<Neuron> = std::sync::OnceLock::new();

#[tokio::test]
async fn a_body_that_got_hold_of_a_neuron_starts_no_run() {
    let neuron = Neuron::builder().memory().await.unwrap();
    NEURON.set(neuron.clone()).ok().unwrap();
    let why = neuron.run(smuggled, ()).await.unwrap();
    assert!(why.starts_with("a body starts no run"), "{why}");
}

#[orchestrator]
async fn sleepy(board: &Board) -> Result<bool> {
    let before = board.now();
    board.sleep(Duration::from_millis(5)).await?;
    Ok(board.now() > before)
}

#[tokio::test]
async fn an_orchestrators_clock_moves_with_its_answers() {
    let neuron = Neuron::builder().strict(true).memory().await.unwrap();
    assert!(neuron.run(sleepy, ()).await.unwrap());
}

#[plan]
fn sized(plan: &Plan, size: usize) -> Node<usize> {
    let words: Vec<_> = (0..size).map(|at| plan.step(count, "w".repeat(at))).collect();
    plan.step(add, words)
}

#[orchestrator]
async fn late(board: &Board) -> Result<usize> {
    let size = board.assign(reader, "four");
    Ok(board.assign(sized, size).await?)
}

#[tokio::test]
async fn a_plan_that_reads_its_value_is_declared_when_the_value_is_there() {
    let neuron = Neuron::builder().memory().await.unwrap();
    assert_eq!(neuron.run(late, ()).id("r").await.unwrap(), 6);
    let kinds = kinds(&neuron);
    let answered = kinds.iter().position(|kind| kind == "package.completed").unwrap();
    let declared = kinds.iter().rposition(|kind| kind == "plan.declared").unwrap();
    assert!(answered < declared, "{kinds:?}");
}

#[agent]
async fn large(_cx: &Cx, text: String) -> Result<String> {
    Ok(text.repeat(2))
}

#[orchestrator]
async fn bulky(board: &Board, text: String) -> Result<String> {
    let twice = board.assign(large, text);
    Ok(board.assign(large, twice).await?)
}

#[tokio::test]
async fn large_arguments_and_outputs_stand_as_artifacts_and_read_the_same() {
    let neuron = Neuron::builder().memory().await.unwrap();
    let text = "x".repeat(100_000);
    let whole = neuron.run(bulky, text.clone()).id("r").await.unwrap();
    assert_eq!(whole.len(), 400_000);
    assert_eq!(neuron.run(bulky, text).id("r").await.unwrap(), whole);
}

#[tokio::test]
async fn the_account_adds_up_and_a_parents_time_is_its_own() {
    let neuron = Neuron::builder().memory().await.unwrap();
    neuron.run(letters, words("one three five")).id("r").await.unwrap();
    let account = Account::of(neuron.ledger(), &run_id("r")).unwrap();
    let total = account.total();
    assert_eq!(total.steps, 4);
    assert_eq!(account.by_agent().values().copied().sum::<Burn>(), total);
    assert_eq!(account.by_step().values().copied().sum::<Burn>(), total);
    assert_eq!(account.by_package().iter().map(|(.., burn)| *burn).sum::<Burn>(), total);
    let agents: Vec<_> = account
        .by_agent()
        .into_iter()
        .map(|(name, burn)| (name, burn.steps))
        .collect();
    assert_eq!(agents, [("reader", 3), ("total", 1)]);
    let folded = neuron.ledger().fold(&Cost::new(&run_id("r")), None).unwrap();
    assert_eq!(folded.state, account);
}

#[tokio::test]
async fn a_store_tells_its_runs_and_what_waits() {
    let latch = Arc::new(Latch::default());
    let neuron = Neuron::builder().state(latch.clone()).memory().await.unwrap();
    neuron.run(letters, words("a bb")).id("done").await.unwrap();
    let running = neuron.run(waiting, ()).id("open").start().await.unwrap();
    latch.entered.notified().await;
    let target = Target::Run(running.id().clone());
    let state = || neuron.ledger().fold(&Runs, None).unwrap().state;
    let unfinished = || neuron.ledger().fold(&Unfinished, None).unwrap().state;
    assert_eq!(unfinished().into_keys().collect::<Vec<_>>(), [run_id("open")]);
    assert_eq!(unfinished()[&run_id("open")].name, "waiting");
    neuron.pause(&target).await.unwrap();
    comes_back(&neuron, &Runs);
    comes_back(&neuron, &Waits);
    comes_back(&neuron, &Unfinished);
    let runs = state();
    let (done, open) = (&runs[&run_id("done")], &runs[&run_id("open")]);
    assert_eq!((done.state, done.packages, done.answered), (RunState::Completed, 3, 3));
    assert_eq!((open.state, open.packages, open.answered), (RunState::Paused, 2, 0));
    let waits = || neuron.ledger().fold(&Waits, None).unwrap().state;
    let items: Vec<_> = waits()
        .items()
        .map(|item| (item.run.clone(), item.what.clone()))
        .collect();
    assert_eq!(
        items,
        [(
            Some(run_id("open")),
            What::Paused {
                thread: None,
                because: None
            }
        )]
    );
    neuron.resume(&target).await.unwrap();
    assert_eq!(waits().items().count(), 0);
    assert_eq!(state()[&run_id("open")].state, RunState::Open);
    latch.leave.notify_one();
    running.wait().await.unwrap();
    assert!(unfinished().is_empty());
    comes_back(&neuron, &Runs);
}

/// The state of a fold now is the same after it was put aside as a snapshot.
fn comes_back<F: Fold<State: PartialEq + std::fmt::Debug>>(neuron: &Neuron, fold: &F) {
    let state = neuron.ledger().fold(fold, None).unwrap().state;
    let codec = fold.snapshot().unwrap();
    assert_eq!(codec.decode(&codec.encode(&state).unwrap()).unwrap(), state);
}

#[step(once)]
async fn charge(_cx: &Cx, cents: u32) -> Result<u32> {
    Err(format!("the bank hung up on {cents}").into())
}

#[agent]
async fn payer(cx: &Cx, cents: u32) -> Result<u32> {
    Ok(charge(cx, cents).await?)
}

#[orchestrator]
async fn paying(board: &Board) -> Result<u32> {
    Ok(board.assign(payer, 5).await?)
}

#[tokio::test]
async fn a_once_step_in_doubt_is_shown_as_waiting_until_a_ruling_settles_it() {
    let neuron = Neuron::builder().memory().await.unwrap();
    let mut doubts = neuron
        .ledger()
        .subscribe(
            neuron::Pattern::new("agent.*.steps").unwrap(),
            neuron::ledger::From::Start,
        )
        .unwrap();
    let running = neuron.run(paying, ()).id("r").start().await.unwrap();
    while doubts.next().await.unwrap().body.kind != *"step.doubted" {}
    let waits = neuron.ledger().fold(&Waits, None).unwrap().state;
    comes_back(&neuron, &Waits);
    let item = waits.items().next().unwrap().clone();
    let What::InDoubt { key, name, because } = item.what else {
        panic!("in doubt")
    };
    assert_eq!((&*name, because.contains("the bank hung up")), ("charge", true));
    let ruling = ControlResolved {
        key,
        ruling: StepRuling::Done,
        output: Some(neuron::Json::of(&5).unwrap()),
        because: None,
    };
    let topic = neuron::topic::catalog::control(&item.token.unwrap());
    let draft = ruling.draft(topic, neuron::Author::cli()).unwrap();
    neuron.ledger().publish(draft).await.unwrap();
    assert_eq!(running.wait().await.unwrap(), 5);
    assert_eq!(neuron.ledger().fold(&Waits, None).unwrap().state.items().count(), 0);
}

#[orchestrator]
async fn discreet(_board: &Board, key: Secret<String>) -> Result<usize> {
    Ok(key.expose().len())
}

#[tokio::test]
async fn a_run_whose_arguments_hold_a_secret_is_left_to_whoever_knows_it_and_stops_no_other() {
    let store = Memory::new().unwrap();
    let over = |store: Memory| {
        let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
        Neuron::builder().over(ledger)
    };
    let neuron = over(store.clone()).await.unwrap();
    let key = || Secret::new("hunter2".to_owned());
    assert_eq!(neuron.run(discreet, key()).id("r").await.unwrap(), 7);
    drop(neuron);
    let begun = usize::try_from(store.last().unwrap().0).unwrap() - 1;
    let neuron = over(store.cut(begun).unwrap()).await.unwrap();
    let recovered = neuron.recover().await.unwrap();
    assert_eq!((recovered.unreadable, recovered.here), (vec![run_id("r")], vec![]));
    assert_eq!(neuron.run(discreet, key()).id("r").await.unwrap(), 7);
}

#[test]
fn a_run_whose_log_is_damaged_is_told_and_keeps_nobody_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.db");
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let latch = Arc::new(Latch::default());
    let open = || Neuron::builder().state(latch.clone()).open(&path);
    let first = runtime();
    first.block_on(async {
        let neuron = open().await.unwrap();
        for id in ["bad", "good"] {
            neuron.run(waiting, ()).id(id).start().await.unwrap();
            latch.entered.notified().await;
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
        let neuron = open().await.unwrap();
        let recovered = neuron.recover().await.unwrap();
        assert_eq!(
            (recovered.damaged, recovered.here),
            (vec![run_id("bad")], vec![run_id("good")])
        );
        latch.leave.notify_one();
        assert_eq!(neuron.run(waiting, ()).id("good").await.unwrap(), 5);
        let error = neuron.run(waiting, ()).id("bad").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("orchestration.bad.lifecycle"), "{error}");
    });
}

#[tokio::test]
async fn a_second_handle_of_the_process_attaches_and_takes_nothing_over() {
    let folder = tempfile::tempdir().unwrap();
    let latch = Arc::new(Latch::default());
    let open = || {
        let builder = Neuron::builder()
            .state(latch.clone())
            .owner_ttl(Duration::from_millis(30));
        builder.open(folder.path().join("run.db"))
    };
    let (first, second) = (open().await.unwrap(), open().await.unwrap());
    let running = first.run(waiting, ()).id("r").start().await.unwrap();
    latch.entered.notified().await;
    let attached = second.run(waiting, ()).id("r").start().await.unwrap();
    // Far longer than after which a hung owner would be taken over.
    assert!(
        tokio::time::timeout(Duration::from_millis(300), latch.entered.notified())
            .await
            .is_err()
    );
    latch.leave.notify_one();
    assert_eq!((running.wait().await.unwrap(), attached.wait().await.unwrap()), (5, 5));
    assert_eq!(number(&first, "lease.claimed"), 1);
}

#[tokio::test]
async fn a_store_that_is_let_go_of_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run.db");
    let neuron = Neuron::open(&store).await.unwrap();
    neuron.run(letters, words("a")).await.unwrap();
    let weak = Arc::downgrade(neuron.ledger().store());
    drop(neuron);
    while weak.strong_count() > 0 {
        tokio::task::yield_now().await;
    }
}

#[step]
async fn members(_cx: &Cx, of: HashSet<u32>) -> Result<usize> {
    Ok(of.len())
}

#[plan]
fn census(plan: &Plan, of: HashSet<u32>) -> Node<usize> {
    plan.step(members, of)
}

#[agent]
async fn counter(cx: &Cx, of: HashSet<u32>) -> Result<usize> {
    Ok(members(cx, of).await?)
}

#[orchestrator]
async fn sets(board: &Board) -> Result<usize> {
    let (planned, acted) = (board.assign(census, many()), board.assign(counter, many()));
    Ok(planned.await? + acted.await?)
}

/// A set whose elements come in another order each time it is made.
fn many() -> HashSet<u32> {
    (0..50).collect()
}

#[tokio::test]
async fn a_set_is_the_same_argument_in_whatever_order_its_elements_come() {
    let store = Memory::new().unwrap();
    let over = |store: Memory| {
        let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
        Neuron::builder().over(ledger)
    };
    let neuron = over(store.clone()).await.unwrap();
    assert_eq!(neuron.run(sets, ()).id("r").await.unwrap(), 100);
    drop(neuron);
    let begun = usize::try_from(store.last().unwrap().0).unwrap() - 1;
    let again = over(store.cut(begun).unwrap()).await.unwrap();
    assert_eq!(again.run(sets, ()).id("r").await.unwrap(), 100);
    for kind in ["plan.redeclared", "replay.diverged"] {
        assert_eq!(number(&again, kind), 0, "{kind}");
    }
    assert_eq!(number(&again, "step.completed"), 2);
}
