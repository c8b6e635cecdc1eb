//! How a step is carried out: attempts, doubt, letting go, orders, and what it leaves on the log.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

mod world;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use neuron::{
    Cx, Error, ErrorKind, Json, Millis, Result, Secret, Terminal as _, agent,
    scope::{Admission, Burn, Committed, Fresh, Journal, Manner, Record, Ruling, Runtime, Scope, Stop, Then, contain},
    step,
};
use serde::{Deserialize, Serialize};
use world::{Seen, World, cut_everywhere, entry};

static SEEN: Seen = Seen::new();

// -- failures and attempts --

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Gone {
    status: u16,
}

#[step(retry(3))]
async fn plain(_cx: &Cx, text: String) -> Result<u32> {
    Ok(text.trim().parse::<u32>()?)
}

#[step(retry(3))]
async fn final_at_once(_cx: &Cx) -> Result<u32> {
    Ok("x".parse::<u32>().terminal()?)
}

#[step(retry(3))]
async fn typed(_cx: &Cx) -> Result<u32> {
    Err(Error::terminal("the page is gone").with(&Gone { status: 410 }).into())
}

#[step]
async fn as_output(_cx: &Cx) -> Result<Result<u32, String>> {
    Ok(Err("sold out".into()))
}

#[step(retry(3))]
async fn parent(cx: &Cx) -> Result<u32> {
    Ok(plain(cx, "nine".into()).await?)
}

#[step]
async fn bang(_cx: &Cx) -> Result<()> {
    panic!("boom {}", 1)
}

#[agent]
async fn asks(cx: &Cx) -> Result<Vec<String>> {
    let retried = plain(cx, "seven".into()).await.unwrap_err();
    let last = final_at_once(cx).await.unwrap_err();
    let gone = typed(cx).await.unwrap_err();
    assert_eq!(gone.detail::<Gone>(), Some(Gone { status: 410 }));
    let nested = parent(cx).await.unwrap_err();
    let panicked = bang(cx).await.unwrap_err();
    let sold_out = as_output(cx).await?.unwrap_err();
    let told = [retried, last, gone, nested, panicked].map(|error| format!("{error} {:?}", error.kind()));
    Ok(told.into_iter().chain([sold_out]).collect())
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_an_answer_and_the_same_live_and_in_a_replay() {
    let whole = World::new();
    let live = whole.run(asks, ()).await.unwrap();
    assert_eq!(
        live,
        [
            "invalid digit found in string Failed",
            "invalid digit found in string Failed",
            "the page is gone Failed",
            "invalid digit found in string Failed",
            "panicked: boom 1 Panicked",
            "sold out",
        ]
    );
    let attempts =
        |name: &str| whole.count(&format!("step.attempted {name}")) + whole.count(&format!("step.failed {name}"));
    assert_eq!(attempts("plain"), 6, "three attempts, twice");
    assert_eq!(attempts("final_at_once"), 1);
    assert_eq!(attempts("parent"), 1, "a settled failure below is final above");
    let again = whole.crash();
    assert_eq!(again.run(asks, ()).await.unwrap(), live);
    assert_eq!(again.len(), whole.len(), "nothing ran again");
}

static TRIES: AtomicU32 = AtomicU32::new(0);

#[step(retry(4, backoff = "100ms"))]
async fn flaky(_cx: &Cx, until: u32) -> Result<u32> {
    let tried = TRIES.fetch_add(1, SeqCst) + 1;
    match tried {
        1 => Err(Error::retry_after(Duration::from_secs(7), "busy").into()),
        _ if tried < until => Err("again".into()),
        _ => Ok(tried),
    }
}

#[agent]
async fn patient(cx: &Cx, until: u32) -> Result<u32> {
    Ok(flaky(cx, until).await?)
}

#[tokio::test(start_paused = true)]
async fn attempts_wait_longer_each_time_and_as_long_as_a_failure_asks() {
    let world = World::new();
    assert_eq!(world.run(patient, 4).await.unwrap(), 4);
    let lines = world.journal.lines();
    let waits: Vec<i64> = lines
        .iter()
        .filter(|(_, record)| record.kind == "step.attempted")
        .map(|(place, record)| record.payload.to_value()["retryAt"].as_i64().unwrap() - place.at.0)
        .collect();
    assert_eq!(waits, [7_000, 200, 400]);
    // A restart makes the attempt that was next, not before its time.
    let cut = world.cut(
        lines
            .iter()
            .position(|(_, record)| record.kind == "step.attempted")
            .unwrap()
            + 1,
    );
    TRIES.store(10, SeqCst);
    assert_eq!(cut.run(patient, 4).await.unwrap(), 11);
    let last = cut.journal.lines().pop().unwrap();
    assert!(last.0.at.0 - lines[1].0.at.0 >= 7_000);
    assert_eq!(last.1.payload.to_value()["attempt"], 2);
}

#[step(timeout = "1s", retry(2))]
async fn endless(cx: &Cx) -> Result<()> {
    ping(cx).await?;
    SEEN.note(format!("endless: attempt {}", cx.attempt()));
    std::future::pending().await
}

#[step]
async fn ping(_cx: &Cx) -> Result<()> {
    SEEN.note("ping");
    Ok(())
}

#[agent]
async fn waits_for_the_endless(cx: &Cx) -> Result<String> {
    let error = endless(cx).await.unwrap_err();
    Ok(format!("{:?} {error}", error.kind()))
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_stopped_and_made_again() {
    let world = World::new();
    assert_eq!(
        world.run(waits_for_the_endless, ()).await.unwrap(),
        "Timeout `endless` took longer than 1s"
    );
    assert_eq!(SEEN.starting("endless: attempt"), 2);
    assert_eq!(
        world.count("step.completed ping"),
        1,
        "an answer below holds for every attempt"
    );
}

// -- once --

#[step(once)]
async fn pay(cx: &Cx, order: String) -> Result<String> {
    SEEN.note(format!("pay {order} {}", cx.idempotency_key().len()));
    if order == "refused" {
        return Err("no answer from the bank".into());
    }
    Ok(format!("paid {order}"))
}

#[agent]
async fn buyer(cx: &Cx, order: String) -> Result<String> {
    Ok(pay(cx, order).await?)
}

fn key_of(world: &World, kind: &str) -> String {
    world.payloads(kind)[0]["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_once_step_in_doubt_is_never_run_again_by_itself() {
    let whole = World::new();
    whole.run(buyer, "a pen".into()).await.unwrap();
    assert_eq!(
        whole.log(),
        ["step.started pay", "step.completed pay"],
        "its start is committed before it acts"
    );
    let started = whole.cut(1);
    let doubted = started.run(buyer, "a pen".into()).await.unwrap_err();
    assert_eq!(doubted.kind(), ErrorKind::InDoubt);
    assert_eq!(SEEN.starting("pay a pen"), 1);
    assert_eq!(started.log()[1], "step.doubted pay");
    // Nobody ruled in this world; in a run it would wait. It goes on as soon as somebody does.
    for (ruling, want, paid) in [
        (
            Ruling::Done(Json::parse(r#""paid by hand""#).unwrap()),
            Ok("paid by hand"),
            0,
        ),
        (Ruling::Redo, Ok("paid a pen"), 1),
        (Ruling::Fail(Error::terminal("given up")), Err("given up"), 0),
    ] {
        let world = whole.cut(1);
        world.journal.rule(&key_of(&whole, "step.started"), ruling);
        let before = SEEN.starting("pay a pen");
        let got = world
            .run(buyer, "a pen".into())
            .await
            .map_err(|error| error.to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), want);
        assert_eq!(SEEN.starting("pay a pen") - before, paid);
        let again = world
            .crash()
            .run(buyer, "a pen".into())
            .await
            .map_err(|error| error.to_string());
        assert_eq!(got, again, "the ruling is an answer");
        assert_eq!(SEEN.starting("pay a pen") - before, paid);
    }
}

#[tokio::test]
async fn a_ruling_that_is_no_output_of_the_step_is_answered_with_the_doubt() {
    let whole = World::new();
    whole.run(buyer, "ink".into()).await.unwrap();
    let world = whole.cut(1);
    let key = key_of(&whole, "step.started");
    world.journal.rule(&key, Ruling::Done(Json::parse("7").unwrap()));
    world
        .journal
        .rule(&key, Ruling::Done(Json::parse(r#""paid""#).unwrap()));
    assert_eq!(world.run(buyer, "ink".into()).await.unwrap(), "paid");
    assert_eq!(world.count("step.doubted pay"), 2);
}

#[tokio::test]
async fn an_error_of_a_once_step_leaves_it_in_doubt_unless_it_says_not_done() {
    let world = World::new();
    let error = world.run(buyer, "refused".into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt);
    assert!(
        world.payloads("step.doubted")[0]["reason"]
            .as_str()
            .unwrap()
            .contains("no answer from the bank")
    );
    assert_eq!(World::new().run(retrier, ()).await.unwrap(), "done at attempt 3");
}

#[step(once, retry(5))]
async fn not_done(cx: &Cx) -> Result<String> {
    if cx.attempt() < 3 {
        return Err(Error::not_done("the connection was refused").into());
    }
    Ok(format!("done at attempt {}", cx.attempt()))
}

#[agent]
async fn retrier(cx: &Cx) -> Result<String> {
    Ok(not_done(cx).await?)
}

static AT_THE_BANK: AtomicU32 = AtomicU32::new(0);

#[step]
async fn ask_bank(cx: &Cx, order: String) -> Result<Option<String>> {
    SEEN.note(format!("asked about {order} by {}", cx.idempotency_key()));
    Ok((AT_THE_BANK.load(SeqCst) > 0).then(|| format!("the bank has {order}")))
}

#[step(once, resolve = ask_bank)]
async fn wire(_cx: &Cx, order: String) -> Result<String> {
    AT_THE_BANK.fetch_add(1, SeqCst);
    Ok(format!("wired {order}"))
}

#[agent]
async fn wirer(cx: &Cx, order: String) -> Result<String> {
    Ok(wire(cx, order).await?)
}

#[tokio::test]
async fn a_step_named_by_resolve_finds_out_whether_it_happened() {
    let whole = World::new();
    assert_eq!(whole.run(wirer, "rent".into()).await.unwrap(), "wired rent");
    let started = whole.cut(1);
    assert_eq!(started.run(wirer, "rent".into()).await.unwrap(), "the bank has rent");
    assert_eq!(AT_THE_BANK.load(SeqCst), 1);
    assert!(
        SEEN.all()
            .contains(&format!("asked about rent by {}", key_of(&whole, "step.started")))
    );
    assert_eq!(started.payloads("step.completed")[0]["resolved"], "step");
    AT_THE_BANK.store(0, SeqCst);
    assert_eq!(
        whole.cut(1).run(wirer, "rent".into()).await.unwrap(),
        "wired rent",
        "it had not happened"
    );
}

mod changed {
    use super::*;

    #[agent(name = "buyer_changed")]
    pub(super) async fn buyer(cx: &Cx, order: String) -> Result<String> {
        Ok(pay(cx, format!("{order} and more")).await?)
    }
}

#[tokio::test]
async fn a_once_step_whose_arguments_changed_is_held_and_not_run_beside_the_recorded_one() {
    let whole = World::new();
    whole.run(buyer, "paper".into()).await.unwrap();
    let world = whole.crash();
    let held = world.run(changed::buyer, "paper".into()).await.unwrap_err();
    assert_eq!(held.kind(), ErrorKind::InDoubt, "nobody rules here");
    assert_eq!(SEEN.starting("pay paper"), 1);
    let finding = world.payloads("replay.once_changed").remove(0);
    assert_eq!(finding["recorded"], key_of(&whole, "step.started"));
    let ruled = whole.crash();
    ruled.journal.rule(finding["key"].as_str().unwrap(), Ruling::Redo);
    assert_eq!(
        ruled.run(changed::buyer, "paper".into()).await.unwrap(),
        "paid paper and more"
    );
}

#[step(retry(2))]
async fn pays_inside(cx: &Cx, fresh: bool) -> Result<String> {
    let paid = pay(
        cx,
        if fresh {
            format!("attempt {}", cx.attempt())
        } else {
            "inside".into()
        },
    )
    .await?;
    if cx.attempt() == 1 {
        return Err("and then it failed".into());
    }
    Ok(paid)
}

#[agent]
async fn outside(cx: &Cx, fresh: bool) -> Result<String> {
    Ok(pays_inside(cx, fresh).await?)
}

#[tokio::test]
async fn a_payment_inside_a_step_answers_every_attempt_and_a_fresh_one_is_not_held() {
    assert_eq!(World::new().run(outside, false).await.unwrap(), "paid inside");
    assert_eq!(SEEN.starting("pay inside"), 1);
    assert_eq!(World::new().run(outside, true).await.unwrap(), "paid attempt 2");
    cut_at_completed(outside).await;
}

async fn cut_at_completed<M, F: neuron::Callable<M>>(agent: F)
where
    F::Def: neuron::def::Def<Args = (bool,), Output = String>,
{
    let whole = World::new();
    whole.run(agent, true).await.unwrap();
    let ends = whole
        .log()
        .into_iter()
        .enumerate()
        .filter(|(_, line)| line == "step.completed pay")
        .map(|(at, _)| at + 1);
    for cut in ends {
        let world = whole.cut(cut);
        assert_eq!(
            world.run(agent, true).await.unwrap(),
            "paid attempt 2",
            "cut {cut}: {:#?}",
            world.log()
        );
    }
}

// -- steps that stop the process --

#[step]
async fn fatal(_cx: &Cx) -> Result<()> {
    SEEN.note("fatal");
    std::future::pending().await
}

#[agent]
async fn doomed(cx: &Cx) -> Result<String> {
    let told = ping(cx).await.map(|()| "ping")?;
    fatal(cx).await?;
    Ok(told.into())
}

/// Drives an agent until nothing moves, then drops it as a crash would: nothing more reaches the log.
async fn killed(world: &World) -> World {
    let runtime = world.runtime();
    let run = world.run_in(&runtime, doomed, ());
    let stuck = tokio::time::timeout(Duration::from_secs(1), run);
    let before = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.crash()
    };
    let (stuck, left) = futures::join!(stuck, before);
    assert!(stuck.is_err());
    left
}

#[tokio::test(start_paused = true)]
async fn a_step_that_stops_the_process_each_time_ends_in_doubt() {
    let mut world = World {
        taken_over: true,
        ..World::new()
    };
    for round in 1..=3 {
        world = killed(&world).await;
        let committed = world.count("step.started fatal");
        // Once a new answer stands, starts ride with the next commit again; here none does after the first round.
        assert_eq!(committed, round - 1, "{:#?}", world.log());
    }
    world = killed(&world).await;
    assert_eq!(world.count("step.started fatal"), 3);
    let ended = tokio::time::timeout(Duration::from_secs(1), world.run(doomed, ())).await;
    let doubted = ended.expect("it is not run again").unwrap_err();
    assert_eq!(doubted.kind(), ErrorKind::InDoubt);
    assert_eq!(world.count("step.doubted fatal"), 1);
}

#[step(once)]
async fn never_ends(_cx: &Cx) -> Result<()> {
    std::future::pending().await
}

#[agent]
async fn hangs(cx: &Cx, once: bool) -> Result<()> {
    if once {
        return Ok(never_ends(cx).await?);
    }
    Ok(fatal(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn only_the_start_of_a_once_step_is_committed_before_it_acts() {
    for once in [true, false] {
        let world = World::new();
        let run = tokio::time::timeout(Duration::from_secs(1), world.run(hangs, once)).await;
        assert!(run.is_err());
        assert_eq!(world.payloads("step.started").len(), usize::from(once));
    }
}

// -- letting go --

#[agent]
async fn drops(cx: &Cx) -> Result<String> {
    let slow = fatal(cx);
    let timed = cx.timeout(Duration::from_secs(1), slow).await;
    let never = fatal(cx);
    drop(never);
    Ok(format!("{:?}", timed.unwrap_err().kind()))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_is_stopped_and_recorded_and_one_that_never_began_is_not() {
    let world = World::new();
    assert_eq!(world.run(drops, ()).await.unwrap(), "Timeout");
    world.flush().await;
    assert_eq!(world.count("step.started fatal"), 1);
    assert_eq!(world.count("step.abandoned fatal"), 1);
    assert_eq!(World::run(&world.crash(), drops, ()).await.unwrap(), "Timeout");
}

#[tokio::test(start_paused = true)]
async fn a_timer_goes_on_where_it_was() {
    let whole = World::new();
    whole.run(sleeper, ()).await.unwrap();
    assert_eq!(whole.log(), ["timer.started $sleep", "timer.fired $sleep"]);
    let set = whole.payloads("timer.started")[0]["deadline"].as_i64().unwrap();
    let resumed = whole.cut(1);
    resumed.run(sleeper, ()).await.unwrap();
    assert_eq!(resumed.log().len(), 2, "it is not set again");
    assert!(resumed.journal.now().0 >= set);
}

#[agent]
async fn sleeper(cx: &Cx) -> Result<()> {
    Ok(cx.sleep(Duration::from_hours(1)).await?)
}

// -- orders --

#[agent]
async fn two(cx: &Cx) -> Result<()> {
    ping(cx).await?;
    Ok(ping(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn a_pause_starts_nothing_until_it_is_over() {
    let world = World::new();
    let runtime = world.runtime();
    runtime.pause();
    let run = world.run_in(&runtime, two, ());
    let look = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.len(), 0);
        runtime.resume();
    };
    let (ran, ()) = futures::join!(run, look);
    ran.unwrap().unwrap();
    assert_eq!(world.completed(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_body_without_an_answer() {
    let world = World::new();
    let runtime = world.runtime();
    let order = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        runtime.stop(Stop::Cancelled);
    };
    let (ran, ()) = futures::join!(world.run_in(&runtime, doomed, ()), order);
    assert_eq!(ran.unwrap_err(), Stop::Cancelled);
    world.flush().await;
    assert_eq!(world.count("step.abandoned fatal"), 1);
    assert_eq!(world.count("step.failed fatal"), 0);
}

/// A log that another owner has taken over after some records.
#[derive(Debug)]
struct Fenced(Arc<neuron::scope::MemoryJournal>, AtomicU32);

impl Journal for Fenced {
    fn append(&self, record: Record, then: Then) -> BoxFuture<'static, Result<Committed, Error>> {
        if self.1.load(SeqCst) == 0 {
            return Box::pin(async { Err(Error::new(ErrorKind::Fenced, "another owner is in charge")) });
        }
        self.1.fetch_sub(1, SeqCst);
        self.0.append(record, then)
    }

    fn defer(&self, record: Record) {
        self.0.defer(record);
    }

    fn now(&self) -> Millis {
        self.0.now()
    }

    fn ruling(&self, key: &str, pos: u64) -> BoxFuture<'static, Result<Ruling, Error>> {
        self.0.ruling(key, pos)
    }
}

#[tokio::test]
async fn a_log_that_refuses_stops_the_body_with_its_error() {
    let world = World::new();
    let runtime = Arc::new(Runtime::new(Arc::new(Fenced(world.journal.clone(), AtomicU32::new(1)))));
    let stopped = world.run_in(&runtime, two, ()).await.unwrap_err();
    assert_eq!(stopped.into_error().kind(), ErrorKind::Fenced);
    assert_eq!(world.completed(), 1);
}

#[derive(Debug)]
struct Clearer;

impl Admission for Clearer {
    fn admit(&self, call: Fresh) -> BoxFuture<'static, Result<Option<Error>, Error>> {
        let denied = call
            .claims
            .once
            .contains("pay")
            .then(|| Error::new(ErrorKind::Denied, "not cleared"));
        Box::pin(async { Ok(denied) })
    }
}

#[tokio::test]
async fn a_step_that_is_not_admitted_fails_without_running() {
    let world = World::new();
    let runtime = Runtime::new(world.journal.clone()).admission(Arc::new(Clearer));
    let denied = world
        .run_in(&Arc::new(runtime), buyer, "gold".into())
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied);
    assert_eq!(SEEN.starting("pay gold"), 0);
    assert_eq!(world.log(), ["step.failed pay"]);
    let runtime = Runtime::new(world.journal.clone()).admission(Arc::new(Clearer));
    world.run_in(&Arc::new(runtime), two, ()).await.unwrap().unwrap();
}

// -- what is on the log --

#[step]
async fn echo(_cx: &Cx, text: String) -> Result<String> {
    Ok(text)
}

#[agent]
async fn carries(cx: &Cx, bytes: u32) -> Result<usize> {
    let text = "x".repeat(usize::try_from(bytes)?);
    let (echoed, again) = (echo(cx, text.clone()).await?, echo(cx, text).await?);
    Ok(echoed.len() + again.len())
}

#[tokio::test]
async fn a_large_value_stands_beside_its_payload_and_is_the_same_call() {
    cut_everywhere(carries, 100_000).await;
    let world = World::new();
    world.run(carries, 100_000).await.unwrap();
    let records: Vec<Record> = world.journal.lines().into_iter().map(|(_, record)| record).collect();
    assert!(
        records
            .iter()
            .all(|record| record.payload.len() < 1_000 && record.large.is_some())
    );
    let fields: Vec<_> = records.iter().map(|record| record.large.clone().unwrap().0).collect();
    assert_eq!(fields, ["args", "output", "args", "output"]);
}

#[step]
async fn login(_cx: &Cx, user: String, password: Secret<String>) -> Result<bool> {
    Ok(user == "ada" && password.expose() == "hunter2")
}

static PASSWORD: AtomicU32 = AtomicU32::new(2);

#[agent]
async fn visitor(cx: &Cx) -> Result<bool> {
    let password = format!("hunter{}", PASSWORD.load(SeqCst));
    Ok(login(cx, "ada".into(), password.into()).await?)
}

#[tokio::test]
async fn a_secret_is_used_never_recorded_and_no_part_of_identity() {
    let world = World::new();
    assert!(world.run(visitor, ()).await.unwrap());
    assert!(
        world
            .journal
            .lines()
            .iter()
            .all(|(_, record)| !record.payload.as_str().contains("hunter"))
    );
    PASSWORD.store(3, SeqCst);
    let again = world.crash();
    assert!(again.run(visitor, ()).await.unwrap(), "the same call with another key");
    assert_eq!(again.len(), world.len());
}

#[step]
async fn works(cx: &Cx, below: bool) -> Result<()> {
    neuron::Context::scope(cx).burn(Burn {
        tokens_in: 5,
        ..Burn::default()
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    if below {
        works(cx, false).await?;
    }
    Ok(())
}

#[agent]
async fn worker(cx: &Cx) -> Result<()> {
    Ok(works(cx, true).await?)
}

#[tokio::test(start_paused = true)]
async fn what_a_step_took_is_on_its_end_without_what_its_calls_took() {
    let world = World::new();
    world.run(worker, ()).await.unwrap();
    let burns: Vec<_> = world
        .journal
        .lines()
        .iter()
        .filter_map(|(_, record)| record.burn)
        .collect();
    let own = Burn {
        tokens_in: 5,
        duration_ms: 1_000,
        ..Burn::default()
    };
    assert_eq!(burns, [own, own]);
}

#[tokio::test]
async fn a_call_is_named_by_scope_name_and_arguments() {
    let world = World::new();
    world.run(buyer, "a brush".into()).await.unwrap();
    let text = r#"["run","pay",{"order":"a brush"}]"#;
    let hash = neuron::Digest::derive(neuron::CALL_CONTEXT, text.as_bytes());
    assert_eq!(key_of(&world, "step.started"), format!("{hash}#1"));
}

#[tokio::test]
async fn state_is_given_by_type() {
    let mut state = neuron::scope::State::default();
    state.insert(41_u64);
    let runtime = Arc::new(Runtime::new(World::new().journal).state(state));
    let scope = Scope::root(&runtime, "run", Millis(1), Manner::Replayed);
    let ran = contain(
        &scope,
        entry(reads_state).run(scope.clone(), Json::parse("{}").unwrap()),
    )
    .await
    .unwrap();
    assert_eq!(ran.unwrap().json.as_str(), "41");
}

#[agent]
async fn reads_state(cx: &Cx) -> Result<u64> {
    assert_eq!(cx.state::<String>().unwrap_err().kind(), ErrorKind::NotFound);
    Ok(*cx.state::<u64>()?)
}
