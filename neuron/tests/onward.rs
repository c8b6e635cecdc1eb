//! Bodies that begin again with other arguments, and leave nothing behind.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::{sync::Arc, time::Duration};

use neuron::{
    Author, Cx, ErrorKind, Filter, Json, Ledger, Millis, Result, Secret, SystemClock, TokenId, agent,
    agent::{LedgerJournal, Place, history},
    pipeline::Pipeline,
    schema::Upcasters,
    scope::{Ruling, Runtime, incarnations},
    step,
    store::{Memory, Select},
    topic::catalog,
};
use world::{Seen, World, entry};

static SEEN: Seen = Seen::new();

#[step]
async fn count(_cx: &Cx, round: u64, nth: u64) -> Result<u64> {
    SEEN.note(format!("count {round}.{nth}"));
    Ok(nth)
}

/// Takes `steps` steps a round, and ends after `rounds`.
#[agent]
async fn counter(cx: &Cx, round: u64, rounds: u64, steps: u64) -> Result<u64> {
    let mut sum = 0;
    for nth in 0..steps {
        sum += count(cx, round, nth).await?;
    }
    if round + 1 < rounds {
        return cx
            .continue_with(counter, (round + 1, rounds, steps))
            .await
            .map_err(Into::into);
    }
    Ok(sum)
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_a_body_goes_on_where_it_last_began_and_no_step_runs_twice() {
    let whole = World::new();
    assert_eq!(whole.run(counter, (0, 4, 3)).await.unwrap(), 3);
    assert_eq!(whole.count("agent.continued counter"), 3);
    for cut in 0..=whole.len() {
        let world = whole.cut(cut);
        assert_eq!(world.run(counter, (0, 4, 3)).await.unwrap(), 3, "cut {cut}");
        world.flush().await;
        assert_eq!(world.completed(), 12, "cut {cut}: {:#?}", world.log());
        assert_eq!(world.count("agent.continued counter"), 3, "cut {cut}");
        assert_eq!(
            world.payloads("replay.diverged").len(),
            0,
            "cut {cut}: {:#?}",
            world.log()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn each_beginning_has_a_scope_of_its_own_and_the_clock_of_its_beginning() {
    let world = World::new();
    world.run(counter, (0, 3, 1)).await.unwrap();
    let scopes: Vec<_> = world
        .payloads("step.completed")
        .iter()
        .map(|step| step["scope"].clone())
        .collect();
    assert_eq!(scopes, ["run", "run~1", "run~2"]);
}

fn ledger() -> Ledger {
    let store = Memory::new().unwrap();
    Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap()
}

fn token() -> TokenId {
    TokenId::new("counter-1").unwrap()
}

/// Runs the counter on a ledger, as far as its log goes; how many rows the way back took.
async fn run(ledger: &Ledger, rounds: u64, steps: u64) -> u64 {
    let place = Place {
        topic: catalog::steps(&token()),
        author: Author::from(&token()),
        owner: ("run:r".into(), 0),
        control: vec![catalog::control(&token())],
        given: catalog::control(&token()),
        cause: None,
        progress: None,
    };
    let past = history(ledger, [place.topic.clone()]).unwrap();
    let read = past.envelopes();
    let journal = LedgerJournal::new(ledger.clone(), place, Arc::new(Upcasters::default()));
    let runtime = Arc::new(Runtime::new(Arc::new(journal)).history(past));
    let counter = entry(counter);
    let args = Json::parse(&format!(r#"{{"round":0,"rounds":{rounds},"steps":{steps}}}"#)).unwrap();
    let first = move |scope| {
        let body = counter.run(scope, args);
        Ok(Box::pin(async move { body.await.map(|ran| ran.json) }) as _)
    };
    incarnations(&runtime, "package", Millis(1), counter, first)
        .await
        .unwrap()
        .unwrap();
    read
}

#[tokio::test]
async fn the_way_back_is_as_short_after_a_thousand_beginnings_as_after_one() {
    let mut read = Vec::new();
    for rounds in [2, 1_001] {
        let ledger = ledger();
        assert_eq!(run(&ledger, rounds, 10).await, 0);
        // The other tests of this file take fewer steps a round.
        let tenth = || SEEN.all().iter().filter(|what| what.ends_with(".9")).count();
        let before = tenth();
        read.push(run(&ledger, rounds, 10).await);
        assert_eq!(tenth(), before, "all of the last round is answered from the log");
        let all = ledger.read(Select::Topic(catalog::steps(&token()))).envelopes().count() as u64;
        assert!(all > rounds * 10, "the whole is still there: {all}");
    }
    assert_eq!(read[0], read[1], "rows read");
    assert!(
        read[0] <= 21,
        "{read:?}: its beginning, and a start and an end for each step"
    );
}

// -- what is in flight --

#[step]
async fn slow(_cx: &Cx) -> Result<()> {
    std::future::pending().await
}

#[step(once)]
async fn pay(cx: &Cx, cents: u64) -> Result<u64> {
    SEEN.note(format!("pay {cents}"));
    cx.sleep(Duration::from_secs(5)).await?;
    Ok(cents)
}

#[agent]
async fn busy(cx: &Cx, round: u64) -> Result<u64> {
    if round == 1 {
        return Ok(round);
    }
    let (slowed, onward) = futures::join!(slow(cx), cx.continue_with(busy, round + 1));
    slowed?;
    Ok(onward?)
}

#[tokio::test(start_paused = true)]
async fn calls_that_have_not_ended_are_let_go_of_before_the_body_begins_again() {
    let world = World::new();
    assert_eq!(world.run(busy, 0).await.unwrap(), 1);
    let log = world.log();
    let place = |line: &str| log.iter().position(|known| known == line).unwrap();
    assert!(place("step.abandoned slow") < place("agent.continued busy"), "{log:#?}");
}

#[agent]
async fn payer(cx: &Cx, round: u64) -> Result<u64> {
    if round == 1 {
        return Ok(round);
    }
    let (paid, onward) = futures::join!(pay(cx, 10 + round), cx.continue_with(payer, round + 1));
    paid?;
    Ok(onward?)
}

#[tokio::test(start_paused = true)]
async fn a_once_step_that_runs_is_waited_for() {
    let world = World::new();
    assert_eq!(world.run(payer, 0).await.unwrap(), 1);
    let log = world.log();
    let place = |line: &str| log.iter().position(|known| known == line).unwrap();
    assert!(place("step.completed pay") < place("agent.continued payer"), "{log:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_once_step_in_doubt_keeps_the_body_until_somebody_rules() {
    let world = World::new();
    world.run(payer, 0).await.unwrap();
    let started = world.log().iter().position(|line| line == "step.started pay").unwrap();
    let doubted = world.cut(started + 1);
    let key = world.payloads("step.started")[0]["key"].as_str().unwrap().to_owned();
    let before = SEEN.starting("pay 10");
    doubted.journal.rule(&key, Ruling::Done(Json::of(&10).unwrap()));
    assert_eq!(doubted.run(payer, 0).await.unwrap(), 1);
    assert_eq!(SEEN.starting("pay 10"), before, "it is not paid again");
    let log = doubted.log();
    let place = |line: &str| log.iter().position(|known| known == line).unwrap();
    assert!(place("step.doubted pay") < place("agent.continued payer"), "{log:#?}");
}

#[agent]
async fn fickle(cx: &Cx, round: u64) -> Result<String> {
    let _late = cx.timeout(Duration::from_secs(1), pay(cx, 70)).await;
    match cx.continue_with(fickle, round + 1).await {
        Ok(never) => Ok(never),
        Err(error) => Ok(format!("{:?} {error}", error.kind())),
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_let_go_of_a_once_step_is_told_and_so_is_its_replay() {
    let world = World::new();
    let said = world.run(fickle, 0).await.unwrap();
    assert!(said.starts_with("InDoubt") && said.contains("`pay`"), "{said}");
    assert_eq!(world.crash().run(fickle, 0).await.unwrap(), said);
}

// -- misuse --

#[agent]
async fn other(cx: &Cx) -> Result<u64> {
    Ok(cx.continue_with(busy, 1).await?)
}

#[step]
async fn within(cx: &Cx) -> Result<u64> {
    Ok(cx.continue_with(busy, 1).await?)
}

#[agent]
async fn nested(cx: &Cx) -> Result<u64> {
    Ok(within(cx).await?)
}

#[agent]
async fn secretive(cx: &Cx, key: Secret<String>) -> Result<u64> {
    Ok(cx.continue_with(secretive, key).await?)
}

#[tokio::test(start_paused = true)]
async fn only_an_agent_begins_again_as_itself_and_without_secrets() {
    for (error, why) in [
        (
            World::new().run(other, ()).await.unwrap_err(),
            "`other` cannot go on as `busy`",
        ),
        (
            World::new().run(nested, ()).await.unwrap_err(),
            "only an agent's own body",
        ),
        (
            World::new().run(secretive, Secret::new("k".into())).await.unwrap_err(),
            "cannot begin again with a secret",
        ),
    ] {
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[agent]
async fn listener(cx: &Cx, round: u64, after: Option<u64>) -> Result<Vec<u64>> {
    if round == 0 {
        for number in 0..3_u64 {
            cx.emit(cx.draft("news", "said")?.payload(&number)?).await?;
        }
    }
    let news = Filter::on("news");
    let news = match after {
        Some(pos) => news.after(pos),
        None => news,
    };
    let came = cx.wait_for(news).await?;
    if round == 2 {
        return Ok(vec![came.decode()?]);
    }
    Ok(cx.continue_with(listener, (round + 1, Some(came.pos))).await?)
}

#[agent]
async fn forgetful(cx: &Cx, round: u64) -> Result<u64> {
    cx.emit(cx.draft("news", "said")?.payload(&round)?).await?;
    let came = cx.wait_for(Filter::on("news")).await?;
    Ok(cx.continue_with(forgetful, round + came.decode::<u64>()? + 1).await?)
}

#[tokio::test(start_paused = true)]
async fn a_body_that_begins_again_says_from_where_it_waits_and_is_given_nothing_twice() {
    let heard = World::new().run(listener, (0, None)).await.unwrap();
    assert_eq!(heard, [2]);
    let refused = World::new().run(forgetful, 0).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misuse);
    assert!(refused.to_string().contains("Filter::after"), "{refused}");
}
