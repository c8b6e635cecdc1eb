//! Requests into bodies that run: each is taken once, in order, and answered once.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::time::Duration;

use neuron::{Cx, ErrorKind, Json, Result, agent, limits, scope::Sought, step};
use world::{Seen, World};

static SEEN: Seen = Seen::new();

#[step]
async fn book(_cx: &Cx, amount: u64) -> Result<u64> {
    SEEN.note(format!("book {amount}"));
    Ok(amount)
}

/// Books what it is asked to until it has enough.
#[agent]
async fn till(cx: &Cx, enough: u64) -> Result<u64> {
    let (mut books, mut sum) = (cx.updates::<u64, u64>("book"), 0);
    while sum < enough {
        let update = books.next().await?;
        if update.request == 0 {
            update.refuse("nothing to book").await?;
            continue;
        }
        sum += book(cx, update.request).await?;
        update.answer(&sum).await?;
    }
    Ok(sum)
}

fn ask(world: &World, amount: impl serde::Serialize) {
    world
        .journal
        .give(Sought::Update("book".into()), Json::of(&amount).unwrap());
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_each_request_is_taken_once_in_order_and_answered_once() {
    let whole = World::new();
    for amount in [3, 0, 4, 5] {
        ask(&whole, amount);
    }
    assert_eq!(whole.run(till, 12).await.unwrap(), 12);
    for cut in 0..=whole.len() {
        let world = whole.cut(cut);
        assert_eq!(world.run(till, 12).await.unwrap(), 12, "cut {cut}");
        let asked = |kind: &str| -> Vec<u64> {
            let payloads = world.payloads(kind);
            payloads.iter().map(|word| word["asked"].as_u64().unwrap()).collect()
        };
        assert_eq!(asked("update.taken"), [1, 2, 3, 4], "cut {cut}: {:#?}", world.log());
        assert_eq!(asked("update.answered"), [1, 2, 3, 4], "cut {cut}");
        assert_eq!(world.count("update.accepting $update"), 1, "cut {cut}");
        let responses: Vec<_> = world
            .payloads("update.answered")
            .into_iter()
            .map(|word| word["response"].clone())
            .collect();
        let null = serde_json::Value::Null;
        assert_eq!(responses, [3.into(), null, 7.into(), 12.into()], "cut {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_refused_and_never_reaches_the_body() {
    let world = World::new();
    ask(&world, "much");
    ask(&world, 5);
    assert_eq!(world.run(till, 5).await.unwrap(), 5);
    let refused = world.payloads("update.refused");
    assert_eq!(refused.len(), 1);
    assert!(refused[0]["reason"].as_str().unwrap().contains("much"), "{refused:?}");
    let replayed = world.crash();
    assert_eq!(replayed.run(till, 5).await.unwrap(), 5);
    assert_eq!(replayed.len(), world.len());
}

/// Looks for a request only now and then, and loses none.
#[agent]
async fn distracted(cx: &Cx) -> Result<Vec<u64>> {
    let (mut books, mut seen) = (cx.updates::<u64, ()>("book"), Vec::new());
    while seen.len() < 2 {
        if let Ok(update) = cx.timeout(Duration::from_secs(1), books.next()).await {
            let update = update?;
            seen.push(update.request);
            update.answer(&()).await?;
        } else {
            seen.extend(seen.is_empty().then_some(0));
            cx.sleep(Duration::from_secs(10)).await?;
        }
    }
    Ok(seen)
}

#[tokio::test(start_paused = true)]
async fn a_next_that_is_dropped_loses_no_request() {
    let world = World::new();
    let later = async {
        // On the paused clock: while the body sleeps and nobody polls `next`.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(world.count("timer.started $sleep"), 2);
        ask(&world, 9);
    };
    // The request wakes the call that was left, though its `next` is gone.
    let (seen, ()) = tokio::join!(world.run(distracted, ()), later);
    assert_eq!(seen.unwrap(), [0, 9]);
    let replayed = world.crash();
    assert_eq!(replayed.run(distracted, ()).await.unwrap(), [0, 9]);
    assert_eq!(replayed.len(), world.len(), "{:#?}", replayed.log());
}

/// Two threads take from one queue.
#[agent]
async fn shared(cx: &Cx) -> Result<u64> {
    let take = |cx: Cx| async move {
        let mut books = cx.updates::<u64, ()>("book");
        let update = books.next().await?;
        let amount = update.request;
        update.answer(&()).await?;
        Ok::<_, neuron::Error>(amount)
    };
    let left = cx.spawn_thread("left", take);
    let right = cx.spawn_thread("right", take);
    Ok(left.await? + right.await?)
}

#[tokio::test(start_paused = true)]
async fn threads_share_the_requests_of_a_name() {
    let world = World::new();
    ask(&world, 30);
    ask(&world, 12);
    assert_eq!(world.run(shared, ()).await.unwrap(), 42);
    let taken: Vec<_> = world
        .payloads("update.taken")
        .iter()
        .map(|word| word["asked"].as_u64().unwrap())
        .collect();
    assert_eq!(taken, [1, 2]);
}

/// Takes one request a round.
#[agent]
async fn rounds(cx: &Cx, sum: u64) -> Result<u64> {
    let mut books = cx.updates::<u64, u64>("book");
    let update = books.next().await?;
    let sum = sum + update.request;
    update.answer(&sum).await?;
    if sum < 10 {
        return Ok(cx.continue_with(rounds, sum).await?);
    }
    Ok(sum)
}

#[tokio::test(start_paused = true)]
async fn requests_that_were_not_taken_are_there_for_the_body_that_begins_again() {
    let whole = World::new();
    for amount in [1, 2, 3, 4] {
        ask(&whole, amount);
    }
    assert_eq!(whole.run(rounds, 0).await.unwrap(), 10);
    for cut in 0..=whole.len() {
        let world = whole.cut(cut);
        assert_eq!(world.run(rounds, 0).await.unwrap(), 10, "cut {cut}: {:#?}", world.log());
        assert_eq!(world.count("update.taken $update"), 4, "cut {cut}");
    }
}

#[agent]
async fn named(cx: &Cx, bytes: usize) -> Result<u64> {
    let mut books = cx.updates::<u64, u64>(&"x".repeat(bytes));
    Ok(books.next().await?.request)
}

#[tokio::test(start_paused = true)]
async fn the_name_of_an_update_is_bounded_and_that_is_told_with_both_numbers() {
    for bytes in [0, limits::UPDATE_NAME_BYTES_MAX + 1] {
        let error = World::new().run(named, bytes).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        let told = error.to_string();
        assert!(
            told.contains(&bytes.to_string()) && told.contains(&limits::UPDATE_NAME_BYTES_MAX.to_string()),
            "{told}"
        );
    }
    let world = World::new();
    let name = "x".repeat(limits::UPDATE_NAME_BYTES_MAX);
    world.journal.give(Sought::Update(name.into()), Json::of(&9).unwrap());
    assert_eq!(world.run(named, limits::UPDATE_NAME_BYTES_MAX).await.unwrap(), 9);
}
