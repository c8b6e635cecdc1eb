//! A clock of the wall that jumps, and a machine that was suspended: the log stays in order, and whoever waits for a moment
//! waits as long as was asked for and no longer.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

mod world;

use std::{sync::Arc, time::Duration};

use futures::executor::block_on;
use neuron::{
    Append, Author, Clock, Contract, Cx, Draft, Ledger, ManualClock, Millis, Pattern, Result, Topic, agent,
    fold::Count,
    pipeline::Pipeline,
    scope::{MemoryJournal, Runtime, State},
    step,
    store::{Durability, Memory, Options, Select, Sqlite, Store},
};
use proptest::{collection::vec, prelude::*};
use tokio::time::Instant;
use world::World;

const BEGIN: Millis = Millis(1_790_000_000_000);
const HOUR: Duration = Duration::from_hours(1);
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// An empty log whose clock is moved by hand.
fn world() -> (World, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(BEGIN));
    let journal = Arc::new(MemoryJournal::with_clock(clock.clone()));
    let world = World {
        journal,
        ..World::default()
    };
    (world, clock)
}

fn turn(clock: &ManualClock, ms: i64) {
    clock.set(Millis(clock.now().0 + ms));
}

/// What the clock of the wall does, a minute after this was called.
fn soon(clock: &Arc<ManualClock>, ms: i64) {
    let clock = clock.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_mins(1)).await;
        turn(&clock, ms);
    });
}

#[agent]
async fn sleeper(cx: &Cx) -> Result<()> {
    Ok(cx.sleep(HOUR).await?)
}

/// How long the sleeper waits by the monotonic clock.
async fn slept(world: &World) -> Duration {
    let began = Instant::now();
    world.run(sleeper, ()).await.unwrap();
    assert_eq!(world.count("timer.fired $sleep"), 1);
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_when_its_moment_has_passed_while_the_machine_was_suspended() {
    // The monotonic clock stood still for a day, the one of the wall went on.
    let (world, clock) = world();
    soon(&clock, DAY_MS);
    let slept = slept(&world).await;
    assert!(slept < Duration::from_mins(2), "{slept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_lasts_as_long_as_was_asked_for_when_the_clock_is_set_back_meanwhile() {
    let (world, clock) = world();
    soon(&clock, -DAY_MS);
    let slept = slept(&world).await;
    assert!(HOUR <= slept && slept < HOUR + Duration::from_secs(1), "{slept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sleep_whose_moment_passed_while_nobody_ran_ends_at_once() {
    let (whole, clock) = world();
    slept(&whole).await;
    turn(&clock, DAY_MS);
    let slept = slept(&whole.cut(1)).await;
    assert!(slept < Duration::from_secs(1), "{slept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_after_the_clock_was_set_back_waits_no_longer_than_was_asked_for_at_first() {
    let (whole, clock) = world();
    slept(&whole).await;
    turn(&clock, -DAY_MS);
    let slept = slept(&whole.cut(1)).await;
    assert!(slept <= HOUR + Duration::from_secs(1), "{slept:?}");
}

#[step(retry(2, backoff = "50s"))]
async fn flaky(cx: &Cx) -> Result<u32> {
    if cx.attempt() == 1 {
        return Err("the line is down".into());
    }
    Ok(cx.attempt())
}

#[agent]
async fn tries(cx: &Cx) -> Result<u32> {
    Ok(flaky(cx).await?)
}

/// How long it takes until the second attempt, by the monotonic clock.
async fn tried(world: &World) -> Duration {
    let began = Instant::now();
    assert_eq!(world.run(tries, ()).await.unwrap(), 2);
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_wait_before_another_attempt_ends_with_the_clock_that_ends_it_first() {
    let wait = Duration::from_secs(50);
    let second = Duration::from_secs(1);
    let (whole, clock) = world();
    let live = tried(&whole).await;
    assert!(wait <= live && live < wait + second, "{live:?}");
    let attempted = whole.log().iter().position(|line| line.starts_with("step.attempted"));
    let crashed = || whole.cut(attempted.unwrap() + 1);
    turn(&clock, -DAY_MS);
    let back = tried(&crashed()).await;
    assert!(back < wait + second, "{back:?}");
    turn(&clock, 2 * DAY_MS);
    let late = tried(&crashed()).await;
    assert!(late < second, "{late:?}");
}

#[step]
async fn works_while_the_clock_is_set(cx: &Cx, by: i64) -> Result<()> {
    turn(cx.state::<Arc<ManualClock>>()?, by);
    tokio::time::sleep(Duration::from_secs(3)).await;
    Ok(())
}

#[agent]
async fn works(cx: &Cx) -> Result<()> {
    for by in [DAY_MS, -DAY_MS] {
        works_while_the_clock_is_set(cx, by).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_step_took_is_measured_by_the_monotonic_clock() {
    let (world, clock) = world();
    let mut state = State::default();
    state.insert(clock);
    let runtime = Arc::new(Runtime::new(world.journal.clone()).state(state));
    world.run_in(&runtime, works, ()).await.unwrap().unwrap();
    let lines = world.journal.lines();
    let took: Vec<u64> = lines
        .iter()
        .filter_map(|(_, record)| Some(record.burn?.duration_ms))
        .collect();
    assert_eq!(took, [3_000, 3_000]);
    assert!(
        lines.is_sorted_by_key(|(place, _)| place.at),
        "the log never goes back in time"
    );
}

// -- the log --

/// What is done between two looks at the clock.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Append(usize),
    Turn(i64),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let turn = prop_oneof![Just(DAY_MS), Just(-DAY_MS), -3_i64..=3, -DAY_MS..=DAY_MS,];
    let deed = prop_oneof![3 => (1..4_usize).prop_map(Deed::Append), 2 => turn.prop_map(Deed::Turn)];
    vec(deed, 1..24)
}

fn topic() -> Topic {
    Topic::new("clocks.a").unwrap()
}

/// The log that these deeds leave, and every moment that the clock showed.
fn follow(store: Arc<dyn Store>, clock: &Arc<ManualClock>, deeds: &[Deed]) -> (Ledger, Vec<i64>) {
    let ledger = Ledger::over(store, clock.clone(), Pipeline::default()).unwrap();
    let family = Pattern::new("clocks.*").unwrap();
    block_on(ledger.declare(&family, Contract::Durable, &Author::cli())).unwrap();
    let mut shown = vec![clock.now().0];
    for deed in deeds {
        match deed {
            Deed::Turn(by) => turn(clock, *by),
            Deed::Append(count) => {
                let draft = |n: usize| Draft::new(topic(), Author::cli(), "said").unwrap().payload(&n).unwrap();
                block_on(ledger.append(Append::of((0..*count).map(draft)))).unwrap();
            }
        }
        shown.push(clock.now().0);
    }
    (ledger, shown)
}

fn assert_in_order(ledger: &Ledger, shown: &[i64]) {
    let read = |select: Select| {
        let envelopes = ledger.read(select).envelopes().map(Result::unwrap);
        envelopes
            .map(|envelope| (envelope.pos, envelope.at))
            .collect::<Vec<_>>()
    };
    let all = read(Select::All);
    assert!(all.is_sorted_by_key(|(_, at)| *at), "`at` falls: {all:?}");
    let around = shown.iter().flat_map(|at| [at - 1, *at, at + 1]);
    for moment in around.chain([i64::MIN, i64::MAX - 1]) {
        let pos = |envelopes: Vec<neuron::Envelope>| envelopes.iter().map(|one| one.pos).collect::<Vec<_>>();
        let all_of = |reading: neuron::ledger::Reading| pos(reading.envelopes().map(Result::unwrap).collect());
        let until = all_of(ledger.read(Select::All).until(Millis(moment)).unwrap());
        let since = all_of(ledger.read(Select::All).since(Millis(moment + 1)).unwrap());
        let wanted: Vec<u64> = all.iter().map(|(pos, _)| *pos).collect();
        assert_eq!([until.clone(), since].concat(), wanted, "cut at {moment}");
        assert!(
            all[until.len()..].iter().all(|(_, at)| at.0 > moment),
            "cut at {moment}"
        );
        assert!(
            all[..until.len()].iter().all(|(_, at)| at.0 <= moment),
            "cut at {moment}"
        );
        let folded = ledger.fold_at(&Count, Millis(moment)).unwrap();
        assert_eq!(
            folded.state.values().sum::<u64>(),
            until.len() as u64,
            "cut at {moment}"
        );
    }
}

fn cases(count: u32) -> ProptestConfig {
    let long = std::env::var_os("NEURON_LONG").is_some_and(|value| value != "0");
    ProptestConfig {
        cases: if long { count * 20 } else { count },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn every_moment_cuts_the_log_in_two_however_the_clock_jumped(deeds in deeds()) {
        let clock = Arc::new(ManualClock::at(BEGIN));
        let store = Arc::new(Memory::with(clock.clone(), None).unwrap());
        let (ledger, shown) = follow(store, &clock, &deeds);
        assert_in_order(&ledger, &shown);
    }
}

proptest! {
    #![proptest_config(cases(6))]

    #[test]
    fn every_moment_cuts_a_file_in_two_also_for_whoever_opens_it_later(deeds in deeds(), later in -DAY_MS..DAY_MS) {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(BEGIN));
        let open = |clock: &Arc<ManualClock>| {
            let options = Options { durability: Durability::Process, clock: clock.clone(), ..Options::default() };
            Arc::new(Sqlite::open(folder.path().join("clocks.db"), options).unwrap())
        };
        let (ledger, mut shown) = follow(open(&clock), &clock, &deeds);
        drop(ledger);
        turn(&clock, later);
        let (ledger, more) = follow(open(&clock), &clock, &deeds);
        shown.extend(more);
        assert_in_order(&ledger, &shown);
    }
}
