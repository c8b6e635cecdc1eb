//! Several calls at once, moments of the wall and identifiers: what the first run was told, every replay is told.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use futures::FutureExt as _;
use neuron::{Cx, ErrorKind, Millis, Result, Uuid, agent, step};
use world::{Seen, World, cut_everywhere};

static SEEN: Seen = Seen::new();

// -- all of them, the first of them --

#[step]
async fn takes(_cx: &Cx, test: String, seconds: u64) -> Result<u64> {
    SEEN.note(format!("{test} {seconds}"));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(seconds)
}

#[step]
async fn breaks(_cx: &Cx, seconds: u64) -> Result<u64> {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Err("broken".into())
}

#[agent]
async fn gatherer(cx: &Cx) -> Result<Vec<u64>> {
    Ok(cx
        .join([3, 1, 2].map(|seconds| takes(cx, "join".into(), seconds)))
        .await?)
}

#[tokio::test(start_paused = true)]
async fn a_join_gives_all_in_their_order_at_every_cut() {
    let world = World::new();
    let began = tokio::time::Instant::now();
    assert_eq!(world.run(gatherer, ()).await.unwrap(), [3, 1, 2]);
    assert_eq!(began.elapsed().as_secs(), 3, "they ran side by side");
    cut_everywhere(gatherer, ()).await;
}

#[agent]
async fn unlucky(cx: &Cx) -> Result<String> {
    let calls = [takes(cx, "unlucky".into(), 60).boxed(), breaks(cx, 1).boxed()];
    Ok(cx.join(calls).await.unwrap_err().to_string())
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_of_a_join_is_the_wholes_and_the_others_are_let_go_of() {
    let world = World::new();
    let began = tokio::time::Instant::now();
    assert_eq!(world.run(unlucky, ()).await.unwrap(), "broken");
    assert_eq!(began.elapsed().as_secs(), 1);
    world.flush().await;
    assert_eq!(world.count("step.abandoned takes"), 1);
}

/// How long the loser takes; a replay may find it faster.
static LOSER: AtomicU64 = AtomicU64::new(100);

#[step]
async fn loser(_cx: &Cx) -> Result<u64> {
    SEEN.note("loser");
    tokio::time::sleep(Duration::from_secs(LOSER.load(SeqCst))).await;
    Ok(0)
}

#[agent]
async fn racer(cx: &Cx) -> Result<(usize, u64)> {
    let (first, gave) = cx
        .race([loser(cx).boxed(), takes(cx, "race".into(), 2).boxed()])
        .await?;
    let after = takes(cx, "after".into(), 1).await?;
    Ok((first, gave + after))
}

#[tokio::test(start_paused = true)]
async fn who_won_a_race_has_won_for_ever_however_fast_another_is_by_then() {
    let whole = World::new();
    assert_eq!(whole.run(racer, ()).await.unwrap(), (1, 3));
    whole.flush().await;
    assert_eq!(whole.count("step.abandoned loser"), 1);
    let won = whole
        .log()
        .iter()
        .position(|line| line == "step.completed takes")
        .unwrap();
    LOSER.store(0, SeqCst);
    for cut in won + 1..=whole.len() {
        let (world, begun) = (whole.cut(cut), SEEN.starting("loser"));
        assert_eq!(world.run(racer, ()).await.unwrap(), (1, 3), "cut {cut}");
        assert_eq!(SEEN.starting("loser"), begun, "cut {cut}: a replay does not start it");
    }
    // Nobody had won yet.
    assert_eq!(whole.cut(won).run(racer, ()).await.unwrap().0, 0);
}

#[tokio::test]
async fn a_race_of_nothing_says_so_and_a_join_of_nothing_is_empty() {
    type Never = futures::future::Ready<Result<u64, neuron::Error>>;
    let cx: Cx = neuron::test();
    let none = cx.race(Vec::<Never>::new()).await;
    assert_eq!(none.unwrap_err().kind(), ErrorKind::Misuse);
    assert!(cx.join(Vec::<Never>::new()).await.unwrap().is_empty());
}

// -- moments of the wall --

#[agent]
async fn punctual(cx: &Cx, at: i64) -> Result<(i64, i64)> {
    cx.sleep_until(Millis(at)).await?;
    let then = cx.now().0;
    cx.sleep_until(Millis(5)).await?;
    Ok((then, cx.now().0))
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_wakes_at_its_moment_and_at_once_if_that_has_passed() {
    let whole = World::new();
    let began = tokio::time::Instant::now();
    assert_eq!(whole.run(punctual, 90_001).await.unwrap(), (90_001, 90_001));
    assert_eq!(began.elapsed(), Duration::from_secs(90));
    let log = ["timer.started $sleep", "timer.fired $sleep"];
    assert_eq!(
        whole.log(),
        [log, log].concat(),
        "the one that has passed is recorded too"
    );
    let deadlines = whole.payloads("timer.started");
    assert_eq!(
        (&deadlines[0]["deadline"], &deadlines[1]["deadline"]),
        (&90_001.into(), &5.into())
    );
    cut_everywhere(punctual, 90_001).await;
}

// -- identifiers --

#[step(retry(2, backoff = "1ms"))]
async fn names(cx: &Cx) -> Result<Vec<String>> {
    let name = cx.uuid().to_string();
    SEEN.note(format!("uuid {name}"));
    if cx.attempt() == 1 {
        Err("again".into())
    } else {
        Ok(vec![name])
    }
}

#[agent]
async fn namer(cx: &Cx) -> Result<Vec<String>> {
    let mut all = names(cx).await?;
    all.extend([cx.uuid(), cx.uuid()].map(|id| id.to_string()));
    all.extend(names(cx).await?);
    Ok(all)
}

#[tokio::test(start_paused = true)]
async fn an_identifier_is_the_same_in_every_replay_and_attempt_and_nowhere_twice() {
    let world = World::new();
    let all = world.run(namer, ()).await.unwrap();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 4);
    let seen: Vec<_> = SEEN.all().into_iter().filter(|what| what.starts_with("uuid")).collect();
    assert_eq!(
        (&seen[0], &seen[2]),
        (&seen[1], &seen[3]),
        "each attempt names the same"
    );
    for id in &all {
        let id = Uuid::parse_str(id).unwrap();
        assert_eq!((id.get_version_num(), id.get_variant()), (4, uuid::Variant::RFC4122));
    }
    cut_everywhere(namer, ()).await;
}

#[agent]
async fn one(cx: &Cx) -> Result<String> {
    Ok(cx.uuid().to_string())
}

#[tokio::test]
async fn the_vector_of_an_identifier_comes_out_as_written() {
    let id = World::new().run(one, ()).await.unwrap();
    let wire = include_str!("../docs/WIRE.md");
    let row = wire
        .lines()
        .find(|line| line.contains("first identifier of a body with scope `run`"))
        .unwrap();
    assert!(row.contains(&id), "{id}");
}
