//! Waits for an envelope of somebody else: found wherever it stands, used once, first come first recorded.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use neuron::{
    Author, Clock, Contract, Cx, Envelope, EnvelopeRef, ErrorKind, Filter, Json, Ledger, Millis, Pattern, Result,
    agent,
    ledger::From,
    limits,
    pipeline::Pipeline,
    scope::Stop,
    step,
    store::{Memory, Options, Select},
};
use proptest::{collection::vec, prelude::*};
use serde_json::json;
use tokio::time::Instant;
use world::{Log, Seen, say};

static SEEN: Seen = Seen::new();
const MINUTE: Duration = Duration::from_mins(1);

#[step]
async fn noted(_cx: &Cx, what: String) -> Result<String> {
    SEEN.note(what.clone());
    Ok(what)
}

fn who(envelope: &Envelope) -> String {
    format!(
        "{} {}",
        envelope.body.kind,
        envelope.body.payload.as_ref().map_or("", Json::as_str)
    )
}

/// Waits for what is meant for it, twice, and does something after each.
#[agent]
async fn reader(cx: &Cx, test: String) -> Result<Vec<String>> {
    let mut told = Vec::new();
    for _ in 0..2 {
        let meant = Filter::on("answers.*").of_type("answered").payload("/to", &7);
        let came = cx.wait_for(meant).await?;
        told.push(noted(cx, format!("{test}: {}", who(&came))).await?);
    }
    Ok(told)
}

#[tokio::test]
async fn what_came_before_during_and_after_is_found_in_the_order_of_the_log_and_used_once() {
    let whole = Log::with(&["answers.*"]).await;
    whole.say("answers.a", "answered", &json!({"to": 7, "n": 1})).await;
    whole.say("answers.a", "answered", &json!({"to": 8})).await;
    whole.say("answers.a", "refused", &json!({"to": 7})).await;
    let others = async {
        whole.reached("wait.started", 2).await;
        whole.say("answers.b", "answered", &json!({"to": 9})).await;
        whole.say("answers.b", "answered", &json!({"to": 7, "n": 2})).await;
        whole.say("answers.b", "answered", &json!({"to": 7, "n": 3})).await;
    };
    let (told, ()) = futures::join!(whole.run(reader, "order".into()), others);
    let told = told.unwrap();
    assert_eq!(told, [1, 2].map(|n| format!(r#"order: answered {{"n":{n},"to":7}}"#)));
    let own = whole.on(&Log::steps());
    let ends = own.iter().filter(|envelope| envelope.body.kind == "wait.ended");
    for end in ends {
        let named = end.body.payload.as_ref().unwrap().to_value()["envelope"].clone();
        let named: EnvelopeRef = serde_json::from_value(named).unwrap();
        assert_eq!(end.cause().as_ref(), Some(&named), "it is the cause of the answer");
        let start = &own[usize::try_from(end.parent_seq.unwrap()).unwrap() - 1];
        assert_eq!(start.body.kind, "wait.started");
    }
    let seen = SEEN.starting("order");
    let again = whole.crash();
    assert_eq!(again.run(reader, "order".into()).await.unwrap(), told);
    assert_eq!(SEEN.starting("order"), seen, "a replay does nothing again");
    assert_eq!(again.len(), whole.len(), "and says nothing again");
}

#[tokio::test]
async fn whatever_a_crash_has_left_of_a_wait_the_same_comes_to_the_same() {
    let whole = Log::with(&["answers.*"]).await;
    for n in 1..=3 {
        whole.say("answers.a", "answered", &json!({"to": 7, "n": n})).await;
    }
    let before = whole.len();
    let told = whole.run(reader, "crash".into()).await.unwrap();
    for cut in before..=whole.len() {
        let log = whole.cut(cut);
        assert_eq!(log.run(reader, "crash".into()).await.unwrap(), told, "cut {cut}");
        assert_eq!(
            (log.count("wait.started"), log.count("wait.ended")),
            (2, 2),
            "cut {cut}"
        );
        assert!(!log.kinds().iter().any(|kind| kind.starts_with("replay.")), "cut {cut}");
    }
}

/// Two equal waits at once.
#[agent]
async fn pair(cx: &Cx) -> Result<Vec<u64>> {
    let mut all = cx.join([cx.wait_for("calls"), cx.wait_for("calls")]).await?;
    all.sort_by_key(|came| came.seq);
    Ok(all.into_iter().map(|came| came.seq).collect())
}

#[tokio::test]
async fn one_envelope_answers_one_of_two_waits_and_the_other_waits_on() {
    for early in 0..=2 {
        let log = Log::with(&["calls"]).await;
        for _ in 0..early {
            log.say("calls", "called", &1).await;
        }
        let others = async {
            log.reached("wait.started", 2).await;
            log.reached("wait.ended", early).await;
            for ended in early + 1..=2 {
                log.say("calls", "called", &1).await;
                log.reached("wait.ended", ended).await;
                assert_eq!(log.count("wait.ended"), ended, "each answers one");
            }
        };
        let (told, ()) = futures::join!(log.run(pair, ()), others);
        assert_eq!(told.unwrap(), [1, 2], "{early} were there");
        assert_eq!(log.crash().run(pair, ()).await.unwrap(), [1, 2]);
    }
}

#[tokio::test]
async fn what_is_used_stays_used_after_a_crash() {
    let log = Log::with(&["calls"]).await;
    log.say("calls", "called", &1).await;
    let runtime = Arc::new(log.runtime());
    let others = async {
        log.reached("wait.ended", 1).await;
        runtime.stop(Stop::Cancelled);
    };
    let (stopped, ()) = futures::join!(log.run_in(&runtime, pair, ()), others);
    assert_eq!(stopped.unwrap_err(), Stop::Cancelled);
    let again = log.crash();
    again.say("calls", "called", &1).await;
    // The one that waits on would else be given the first call once more.
    assert_eq!(again.run(pair, ()).await.unwrap(), [1, 2]);
}

// -- which are meant --

#[agent]
async fn late_riser(cx: &Cx) -> Result<Vec<u64>> {
    let first = cx.wait_for("calls").await?;
    let third = cx.wait_for(Filter::on("calls").after(first.pos + 1)).await?;
    Ok(vec![first.seq, third.seq])
}

#[tokio::test]
async fn a_wait_begins_with_its_run_or_where_it_says() {
    let log = Log::with(&["calls"]).await;
    for n in 1..=4 {
        log.say("calls", "called", &n).await;
    }
    assert_eq!(log.run(late_riser, ()).await.unwrap(), [1, 3]);
    let later = Log::with(&["calls"]).await;
    for n in 1..=5 {
        later.say("calls", "called", &n).await;
    }
    let second = later.len() - 3;
    let runtime = Arc::new(later.runtime().born(second));
    let told = later.run_in(&runtime, late_riser, ()).await.unwrap().unwrap();
    assert_eq!(
        told,
        [3, 5],
        "what came before the run was created is none of its business"
    );
}

#[agent]
async fn stumbler(cx: &Cx) -> Result<Vec<String>> {
    let mut told = Vec::new();
    let large = "x".repeat(limits::FILTER_BYTES_MAX);
    let wrong = [
        Filter::on("nowhere"),
        Filter::on("flickers"),
        Filter::on("a..b"),
        Filter::on("calls").of_type(""),
        Filter::on("calls").payload("id", &1),
        Filter::on("calls").payload("/~2", &1),
        Filter::on("calls").header("k", &f64::NAN),
        Filter::on("calls").payload("", &large),
    ];
    for filter in wrong {
        let error = cx.wait_for(filter.clone()).await.unwrap_err();
        assert_eq!(cx.wait_within(filter, MINUTE).await.unwrap_err(), error);
        told.push(format!("{:?}", error.kind()));
    }
    Ok(told)
}

#[tokio::test]
async fn a_wait_for_what_can_never_come_says_so_and_a_replay_is_told_the_same() {
    let log = Log::with(&["calls"]).await;
    log.declare("flickers", Contract::EPHEMERAL).await;
    let told = log.run(stumbler, ()).await.unwrap();
    assert_eq!(told[..2], ["UnknownTopic", "Contract"]);
    assert!(told[2..7].iter().all(|kind| kind == "Malformed"), "{told:?}");
    assert_eq!(told[7], "TooLarge");
    let again = log.crash();
    again.declare("nowhere", Contract::Durable).await;
    assert_eq!(again.run(stumbler, ()).await.unwrap(), told);
}

/// What a filter may name, small enough that it often matches.
fn parts() -> impl Strategy<Value = (usize, BTreeMap<usize, u8>, BTreeMap<usize, u8>)> {
    let few = || proptest::collection::btree_map(0..2_usize, 0..2_u8, 0..2);
    (0..3_usize, few(), few())
}

const TYPES: [&str; 3] = ["", "asked", "told"];
const POINTERS: [&str; 2] = ["/a", "/b/0"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_filter_means_exactly_what_has_all_that_it_names(wanted in parts(), given in vec(parts(), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let log = Log::with(&["given.*"]).await;
            for (kind, headers, payload) in &given {
                let payload = json!({"a": payload.get(&0), "b": [payload.get(&1)], "c": 1});
                let topic = neuron::Topic::new("given.x").unwrap();
                let draft = neuron::Draft::new(topic, Author::cli(), TYPES[*kind.max(&1)]).unwrap();
                let draft = draft.json(Json::of(&payload).unwrap(), None);
                let draft = headers.iter().fold(draft, |draft, (key, value)| {
                    draft.header(&format!("h{key}"), value).unwrap()
                });
                log.ledger.publish(draft).await.unwrap();
            }
            let (kind, headers, payload) = &wanted;
            let filter = Filter::on("given.*");
            let filter = if *kind == 0 { filter } else { filter.of_type(TYPES[*kind]) };
            let filter = headers.iter().fold(filter, |filter, (key, value)| filter.header(&format!("h{key}"), value));
            let filter = payload.iter().fold(filter, |filter, (at, value)| filter.payload(POINTERS[*at], value));
            let has = |(is, theirs, held): &(usize, BTreeMap<usize, u8>, BTreeMap<usize, u8>)| {
                (*kind == 0 || *kind == *is.max(&1))
                    && headers.iter().all(|(key, value)| theirs.get(key) == Some(value))
                    && payload.iter().all(|(at, value)| held.get(at) == Some(value))
            };
            let all = log.ledger.read(Select::Topic(neuron::Topic::new("given.x").unwrap())).envelopes();
            let meant: Vec<bool> = all.map(|envelope| filter.matches(&envelope.unwrap())).collect();
            prop_assert_eq!(meant, given.iter().map(has).collect::<Vec<_>>());
            Ok(())
        })?;
    }
}

// -- the wire --

#[agent]
async fn spelled(cx: &Cx) -> Result<()> {
    let meant = Filter::on("approvals")
        .of_type("order.approved")
        .header("region", &"eu")
        .payload("/order", &7);
    cx.wait_within(meant, MINUTE).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_vector_of_a_wait_comes_out_as_written() {
    let log = Log::with(&["approvals"]).await;
    log.run(spelled, ()).await.unwrap();
    let wire = include_str!("../docs/WIRE.md");
    let started = log.on(&Log::steps())[0].body.payload.clone().unwrap().to_value();
    let (key, filter) = (started["key"].as_str().unwrap(), &started["filter"]);
    let row = wire
        .lines()
        .find(|line| line.contains("call of `$wait` in scope `run`"))
        .unwrap();
    assert!(row.contains(key.trim_end_matches("#1")), "{key}");
    let filter = Json::of(filter).unwrap();
    assert!(row.contains(filter.as_str()), "{filter}");
    let text = format!(r#"["run","$wait",{{"filter":{filter},"ms":60000}}]"#);
    let call = neuron::Digest::derive(neuron::CALL_CONTEXT, text.as_bytes());
    assert_eq!(key, format!("{call}#1"));
}

// -- the deadline --

#[agent]
async fn hasty(cx: &Cx) -> Result<Option<u64>> {
    let came = cx.wait_within("calls", MINUTE).await?;
    noted(cx, "after".into()).await?;
    Ok(came.map(|came| came.seq))
}

#[tokio::test(start_paused = true)]
async fn whichever_was_first_the_envelope_or_the_deadline_stays_first() {
    for (wait, first) in [(59, Some(1)), (61, None)] {
        let log = Log::with(&["calls"]).await;
        let others = async {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            log.say("calls", "called", &1).await;
        };
        let (told, ()) = futures::join!(log.run(hasty, ()), others);
        assert_eq!(told.unwrap(), first, "called after {wait} s");
        assert_eq!(
            log.crash().run(hasty, ()).await.unwrap(),
            first,
            "called after {wait} s"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_rest_is_waited_for_and_what_came_in_time_counts() {
    for (call, back, first) in [
        // Called in time and found in time; called in time and found late; called too late; not called.
        (Some(10), 20, Some(1)),
        (Some(10), 200, Some(1)),
        (Some(100), 200, None),
        (None, 20, None),
    ] {
        let log = Log::with(&["calls"]).await;
        let runtime = Arc::new(log.runtime());
        let began = tokio::time::Instant::now();
        let killed = async {
            log.reached("wait.started", 1).await;
        };
        tokio::select! {
            _ = log.run_in(&runtime, hasty, ()) => unreachable!("nobody called"),
            () = killed => {}
        }
        let log = log.crash();
        if let Some(call) = call {
            tokio::time::sleep_until(began + Duration::from_secs(call)).await;
            log.say("calls", "called", &1).await;
        }
        tokio::time::sleep_until(began + Duration::from_secs(back)).await;
        assert_eq!(
            log.run(hasty, ()).await.unwrap(),
            first,
            "called at {call:?}, back at {back}"
        );
        let over = if first.is_none() && back < 60 { 60 } else { back };
        assert_eq!(began.elapsed().as_secs(), over, "called at {call:?}, back at {back}");
    }
}

// -- orders, losers, steps --

#[tokio::test(start_paused = true)]
async fn a_pause_stops_no_wait_and_its_answer_is_given_when_the_body_goes_on() {
    let log = Log::with(&["calls"]).await;
    let runtime = Arc::new(log.runtime());
    let others = async {
        log.reached("wait.started", 1).await;
        runtime.pause();
        log.say("calls", "called", &1).await;
        log.reached("wait.ended", 1).await;
        tokio::time::sleep(10 * MINUTE).await;
        assert_eq!(log.count("step.started"), 0, "nothing starts");
        runtime.resume();
    };
    let (told, ()) = futures::join!(log.run_in(&runtime, hasty, ()), others);
    assert_eq!(told.unwrap().unwrap(), Some(1));
}

/// The first wait loses; what it waited for is there for the one after it.
#[agent]
async fn fickle(cx: &Cx) -> Result<(usize, Vec<u64>)> {
    let (first, won) = cx
        .race([cx.wait_for(Filter::on("calls").of_type("called")), cx.wait_for("rings")])
        .await?;
    noted(cx, "chosen".into()).await?;
    let called = cx.wait_for("calls").await?;
    Ok((first, vec![won.seq, called.seq]))
}

#[tokio::test]
async fn a_wait_that_lost_a_race_is_abandoned_and_uses_nothing_up() {
    let whole = Log::with(&["calls", "rings"]).await;
    let others = async {
        whole.reached("wait.started", 2).await;
        whole.say("rings", "rung", &1).await;
        whole.reached("step.completed", 1).await;
        whole.say("calls", "called", &1).await;
    };
    let (told, ()) = futures::join!(whole.run(fickle, ()), others);
    assert_eq!(told.unwrap(), (1, vec![1, 1]));
    assert_eq!(whole.count("wait.abandoned"), 1);
    let won = whole
        .on(&Log::steps())
        .into_iter()
        .find(|envelope| envelope.body.kind == "wait.ended");
    for cut in won.unwrap().pos..=whole.len() {
        let log = whole.cut(cut);
        // By now the loser would be answered at once.
        log.say("calls", "called", &1).await;
        assert_eq!(log.run(fickle, ()).await.unwrap().0, 1, "cut {cut}");
    }
}

#[step(retry(3, backoff = "1ms"))]
async fn stubborn(cx: &Cx) -> Result<u64> {
    let came = cx.wait_for("calls").await?;
    if cx.attempt() < 3 {
        Err("again".into())
    } else {
        Ok(came.seq)
    }
}

#[agent]
async fn patient(cx: &Cx) -> Result<(u64, u64)> {
    Ok((stubborn(cx).await?, cx.wait_for("calls").await?.seq))
}

#[tokio::test(start_paused = true)]
async fn what_came_to_a_step_holds_for_its_later_attempts_and_another_body_has_its_own() {
    let log = Log::with(&["calls"]).await;
    log.say("calls", "called", &1).await;
    log.say("calls", "called", &2).await;
    assert_eq!(log.run(patient, ()).await.unwrap(), (1, 1));
    assert_eq!(log.count("wait.ended"), 2);
}

/// So many at once, each for its own.
#[agent]
async fn crowd(cx: &Cx, size: u64) -> Result<u64> {
    let waits = (0..size).map(|n| cx.wait_for(Filter::on("calls").payload("", &n)));
    let came = cx.join(waits).await?;
    for (n, came) in came.iter().enumerate() {
        assert_eq!(came.decode::<usize>()?, n);
    }
    Ok(came.len() as u64)
}

#[tokio::test]
async fn of_a_thousand_waits_each_is_given_its_own() {
    let log = Log::with(&["calls"]).await;
    let others = async {
        log.reached("wait.started", 1_000).await;
        for n in (0..1_000).rev() {
            log.say("calls", "called", &n).await;
        }
    };
    let (told, ()) = futures::join!(log.run(crowd, 1_000), others);
    assert_eq!(told.unwrap(), 1_000);
    assert_eq!(log.crash().run(crowd, 1_000).await.unwrap(), 1_000);
}

// -- files --

#[agent]
async fn listener(cx: &Cx) -> Result<u64> {
    let first = cx.wait_for("calls").await?;
    noted(cx, "heard".into()).await?;
    Ok(first.decode::<u64>()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_handle_of_the_file_commits_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Ledger::open(folder.path().join("waits.db"), Options::default()).unwrap();
    let (ours, theirs) = (open(), open());
    let calls = Pattern::new("calls").unwrap();
    theirs.declare(&calls, Contract::Durable, &Author::cli()).await.unwrap();
    let runtime = Arc::new(Log::runtime_on(&ours, 0));
    let world = world::World::new();
    let others = async {
        while ours.store().head(&Log::steps()).unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        say(&theirs, "calls", "called", &41).await;
    };
    let (told, ()) = futures::join!(world.run_in(&runtime, listener, ()), others);
    assert_eq!(told.unwrap().unwrap(), 41);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_can_no_longer_be_read_stops_the_run_and_is_never_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("waits.db");
    let world = world::World::new();
    {
        let ledger = Ledger::open(&path, Options::default()).unwrap();
        let calls = Pattern::new("calls").unwrap();
        ledger.declare(&calls, Contract::Durable, &Author::cli()).await.unwrap();
        say(&ledger, "calls", "called", &41).await;
        let runtime = Arc::new(Log::runtime_on(&ledger, 0));
        assert_eq!(world.run_in(&runtime, listener, ()).await.unwrap().unwrap(), 41);
    }
    let shell = rusqlite::Connection::open(&path).unwrap();
    shell.execute_batch("DROP TRIGGER envelope_no_UPDATE").unwrap();
    let changed = shell
        .execute(
            "UPDATE envelope SET record = replace(record, ':41', ':42') WHERE record LIKE '%human:ada%'",
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    drop(shell);
    let ledger = Ledger::open(&path, Options::default()).unwrap();
    let runtime = Arc::new(Log::runtime_on(&ledger, 0));
    match world.run_in(&runtime, listener, ()).await {
        Err(Stop::Refused(error)) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("calls seq 1"), "{error}");
        }
        other => unreachable!("{other:?}"),
    }
}

// -- a machine that slept --

/// A clock that goes on while a suspended machine's own stands still.
#[derive(Debug, Default)]
struct Wall(AtomicI64);

impl Clock for Wall {
    fn now(&self) -> Millis {
        Millis(1_790_000_000_000 + self.0.load(Ordering::SeqCst))
    }
}

#[agent]
async fn sleeper(cx: &Cx) -> Result<Option<u64>> {
    let called = cx.wait_within("calls", MINUTE).await?;
    Ok(called.map(|called| called.decode()).transpose()?)
}

#[tokio::test(start_paused = true)]
async fn what_is_committed_after_the_deadline_is_no_answer_although_the_machine_slept_over_it() {
    let wall = Arc::new(Wall::default());
    let store = Memory::with(wall.clone(), None).unwrap();
    let ledger = Ledger::over(Arc::new(store), wall.clone(), Pipeline::default()).unwrap();
    let calls = Pattern::new("calls").unwrap();
    let durable = Contract::Durable;
    ledger.declare(&calls, durable, &Author::cli()).await.unwrap();
    let runtime = Arc::new(Log::runtime_on(&ledger, 0));
    let world = world::World::new();
    let others = async {
        let mut log = ledger.subscribe(Pattern::exactly(&Log::steps()), From::Start).unwrap();
        while log.next().await.unwrap().body.kind != *"wait.started" {}
        // By now it listens.
        tokio::time::sleep(Duration::from_secs(1)).await;
        wall.0.fetch_add(3_600_000, Ordering::SeqCst);
        say(&ledger, "calls", "called", &41).await;
    };
    let (told, ()) = futures::join!(world.run_in(&runtime, sleeper, ()), others);
    assert_eq!(told.unwrap().unwrap(), None, "it came an hour late");
}

// -- a step that is attempted again --

/// Its first attempt is over before its wait is.
#[step(retry(2), timeout = "40s")]
async fn look(cx: &Cx) -> Result<u64> {
    let began = Instant::now();
    let wait = cx.wait_within("calls", MINUTE);
    if cx.attempt() == 1 {
        tokio::time::timeout(MINUTE / 2, wait).await??;
        return Ok(0);
    }
    wait.await?;
    Ok(began.elapsed().as_secs())
}

#[agent]
async fn looker(cx: &Cx) -> Result<u64> {
    Ok(look(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_of_a_step_waits_as_long_as_it_says() {
    let log = Log::with(&["calls"]).await;
    let said = log.run(looker, ()).await.map_err(|error| error.to_string());
    assert!(
        said.as_ref().is_err_and(|why| why.contains("40s")),
        "a minute is longer than its time: {said:?}"
    );
}

// -- what an end responds to --

#[agent]
async fn hearer(cx: &Cx) -> Result<u64> {
    Ok(cx.wait_for("calls").await?.decode::<u64>()?)
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_wait_responds_to_its_start_also_after_a_restart() {
    let log = Log::with(&["calls"]).await;
    let runtime = Arc::new(log.runtime());
    let died = async { log.reached("wait.started", 1).await };
    tokio::select! {
        _ = log.run_in(&runtime, hearer, ()) => unreachable!(),
        () = died => {}
    }
    let again = log.crash();
    again.say("calls", "called", &1).await;
    again.run(hearer, ()).await.unwrap();
    let own = again.on(&Log::steps());
    let place = |kind: &str| own.iter().find(|envelope| envelope.body.kind == *kind).unwrap();
    assert_eq!(place("wait.ended").parent_seq, Some(place("wait.started").seq));
}
