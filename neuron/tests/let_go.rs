//! What a body let go of without having been told its answer: it is there for whoever comes next, and the log says so.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::{sync::Arc, time::Duration};

use neuron::{Cx, Json, Result, agent, scope::Sought, step};
use tokio::time::timeout;
use world::{Log, World};

const MINUTE: Duration = Duration::from_mins(1);

// -- an envelope --

/// Looks for a call within a minute, then does without, then looks again.
#[agent]
async fn patient(cx: &Cx) -> Result<Option<u64>> {
    tokio::select! {
        biased;
        called = cx.wait_for("calls") => return Ok(Some(called?.decode()?)),
        over = cx.sleep(MINUTE) => over?,
    }
    let called = cx.wait_within("calls", MINUTE).await?;
    Ok(called.map(|called| called.decode()).transpose()?)
}

#[tokio::test(start_paused = true)]
async fn an_envelope_that_came_while_the_body_was_busy_elsewhere_is_there_for_its_next_wait() {
    let log = Log::with(&["calls"]).await;
    let runtime = Arc::new(log.runtime());
    let others = async {
        log.reached("wait.started", 1).await;
        runtime.pause();
        log.reached("timer.fired", 1).await;
        log.say("calls", "called", &41).await;
        log.reached("wait.ended", 1).await;
        runtime.resume();
    };
    let (told, ()) = futures::join!(log.run_in(&runtime, patient, ()), others);
    assert_eq!(told.unwrap().unwrap(), Some(41), "{:#?}", log.kinds());
}

// -- a request --

/// Looks for a request each round, and does something else between two rounds.
#[agent]
async fn rounds(cx: &Cx, round: u64) -> Result<u64> {
    let mut books = cx.updates::<u64, u64>("book");
    if let Ok(update) = cx.timeout(Duration::from_secs(1), books.next()).await {
        let update = update?;
        let request = update.request;
        update.answer(&round).await?;
        return Ok(request);
    }
    if round == 3 {
        return Ok(0);
    }
    cx.sleep(Duration::from_secs(10)).await?;
    Ok(cx.continue_with(rounds, round + 1).await?)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_no_body_was_told_of_is_there_for_the_one_that_begins_again() {
    let world = World::new();
    let later = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.journal.give(Sought::Update("book".into()), Json::of(&9).unwrap());
    };
    let (told, ()) = tokio::join!(world.run(rounds, 0), later);
    assert_eq!(told.unwrap(), 9, "{:#?}", world.log());
    assert_eq!(world.payloads("update.answered").len(), 1);
}

/// Looks for a request, goes on with something else, and looks again under the same name.
#[agent]
async fn phases(cx: &Cx) -> Result<u64> {
    let mut first = cx.updates::<u64, u64>("book");
    let _nobody = cx.timeout(Duration::from_secs(1), first.next()).await;
    let mut second = cx.updates::<u64, u64>("book");
    let update = cx.timeout(60 * MINUTE, second.next()).await??;
    let request = update.request;
    update.answer(&request).await?;
    Ok(request)
}

#[tokio::test(start_paused = true)]
async fn a_request_is_given_to_whoever_awaits_one_and_not_to_who_has_gone_on() {
    let world = World::new();
    let later = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.journal.give(Sought::Update("book".into()), Json::of(&9).unwrap());
    };
    let (told, ()) = tokio::join!(world.run(phases, ()), later);
    assert_eq!(told.map_err(|error| error.to_string()), Ok(9), "{:#?}", world.log());
}

/// Two take requests of a name in turn; the first looks away when one has been taken for it.
#[agent]
async fn desks(cx: &Cx) -> Result<u64> {
    let first = async {
        let mut books = cx.updates::<u64, u64>("book");
        let mut next = Box::pin(books.next());
        tokio::select! {
            biased;
            update = &mut next => drop(update?),
            over = cx.sleep(MINUTE) => over?,
        }
        cx.sleep(MINUTE).await
    };
    let second = async {
        let mut books = cx.updates::<u64, u64>("book");
        let update = cx.timeout(60 * MINUTE, books.next()).await??;
        let request = update.request;
        update.answer(&request).await?;
        Ok(request)
    };
    Ok(futures::try_join!(first, second)?.1)
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_a_request_that_nobody_was_told_of_goes_to_another_who_takes_them() {
    let whole = World::new();
    let later = async {
        tokio::time::sleep(MINUTE + MINUTE / 2).await;
        whole.journal.give(Sought::Update("book".into()), Json::of(&9).unwrap());
    };
    let (told, ()) = tokio::join!(whole.run(desks, ()), later);
    assert_eq!(told.map_err(|error| error.to_string()), Ok(9), "{:#?}", whole.log());
    assert_eq!(whole.payloads("update.returned").len(), 1);
    // Before that the first looks, and is told.
    let looks = whole
        .log()
        .iter()
        .position(|line| line.starts_with("timer.fired"))
        .unwrap();
    for cut in looks + 1..=whole.len() {
        let world = whole.cut(cut);
        assert_eq!(world.run(desks, ()).await.unwrap(), 9, "cut {cut}: {:#?}", world.log());
        assert_eq!(world.payloads("update.answered").len(), 1, "cut {cut}");
    }
}

// -- a once step --

#[step(once)]
async fn pay(_cx: &Cx, cents: u64) -> Result<u64> {
    std::future::pending::<()>().await;
    Ok(cents)
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
async fn cut_anywhere_a_body_that_let_go_of_a_once_step_is_told_and_never_waits_for_nobody() {
    let whole = World::new();
    let said = whole.run(fickle, 0).await.unwrap();
    assert!(said.starts_with("InDoubt"), "{said}");
    let log = whole.log();
    let fired = log.iter().position(|line| line.starts_with("timer.fired")).unwrap();
    for cut in fired + 1..=log.len() {
        let world = whole.cut(cut);
        let again = timeout(60 * MINUTE, world.run(fickle, 0)).await;
        assert!(again.is_ok(), "cut {cut} of {log:#?}: never ends: {:#?}", world.log());
        assert_eq!(again.unwrap().unwrap(), said, "cut {cut}");
    }
}

// -- a wait that lost --

#[agent]
async fn loser(cx: &Cx) -> Result<()> {
    tokio::select! {
        biased;
        called = cx.wait_for("calls") => drop(called?),
        over = cx.sleep(MINUTE) => over?,
    }
    cx.sleep(MINUTE).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_a_wait_that_lost_is_abandoned_on_the_log() {
    let whole = Log::with(&["calls"]).await;
    let before = whole.len();
    whole.run(loser, ()).await.unwrap();
    for cut in before..=whole.len() {
        let log = whole.cut(cut);
        log.run(loser, ()).await.unwrap();
        log.ledger.store().flush();
        let (started, abandoned) = (log.count("wait.started"), log.count("wait.abandoned"));
        assert_eq!((started, abandoned), (1, 1), "cut {cut}: {:#?}", log.kinds());
    }
}

// -- of a step --

/// Is called by nobody, and asks whether to go on without.
#[step(retry(2))]
async fn inquire(cx: &Cx) -> Result<bool> {
    Ok(cx.ask_human::<bool>("Go on without?").await?)
}

/// Waits for a call, and asks besides.
#[step]
async fn call(cx: &Cx) -> Result<u64> {
    let (called, _) = futures::try_join!(cx.wait_for("calls"), inquire(cx))?;
    Ok(called.decode()?)
}

#[agent]
async fn hurried(cx: &Cx) -> Result<()> {
    let _late = cx.timeout(MINUTE, call(cx)).await;
    cx.sleep(MINUTE).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_all_that_a_step_has_begun_ends_with_it() {
    let whole = Log::with(&["calls"]).await;
    let before = whole.len();
    whole.run(hurried, ()).await.unwrap();
    for cut in before..=whole.len() {
        let log = whole.cut(cut);
        log.run(hurried, ()).await.unwrap();
        log.ledger.store().flush();
        for (start, end) in [
            ("wait.started", "wait.abandoned"),
            ("question.asked", "question.withdrawn"),
        ] {
            let counts = (log.count(start), log.count(end));
            assert!(
                counts.0 > 0 && counts.0 == counts.1,
                "cut {cut}: {counts:?} of {start}: {:#?}",
                log.kinds()
            );
        }
        let open = log.open();
        assert!(
            open.is_empty(),
            "cut {cut}: {open:?} began and never ended: {:#?}",
            log.kinds()
        );
    }
}

// -- of several at once --

/// Two wait for the same; the first of them is let go of when it has been found and not told.
#[agent]
async fn two(cx: &Cx) -> Result<Option<u64>> {
    let first = async {
        let mut called = Box::pin(cx.wait_for("calls"));
        tokio::select! {
            biased;
            called = &mut called => drop(called?),
            over = cx.sleep(MINUTE) => over?,
        }
        // It goes on waiting, and nobody looks.
        cx.sleep(MINUTE).await
    };
    let second = cx.wait_within("calls", 10 * MINUTE);
    let ((), called) = futures::try_join!(first, second)?;
    Ok(called.map(|called| called.decode()).transpose()?)
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_an_envelope_that_nobody_was_told_of_goes_to_another_who_waits() {
    let whole = Log::with(&["calls"]).await;
    let before = whole.len();
    let others = async {
        whole.reached("timer.fired", 1).await;
        tokio::time::sleep(MINUTE / 2).await;
        whole.say("calls", "called", &41).await;
    };
    let (told, ()) = futures::join!(whole.run(two, ()), others);
    assert_eq!(told.unwrap(), Some(41), "{:#?}", whole.kinds());
    let said = whole.on(&neuron::Topic::new("calls").unwrap())[0].pos;
    for cut in said.max(before)..=whole.len() {
        let log = whole.cut(cut);
        assert_eq!(
            log.run(two, ()).await.unwrap(),
            Some(41),
            "cut {cut}: {:#?}",
            log.kinds()
        );
    }
}

// -- of an attempt --

/// Its first attempt lets go of a wait that was found, is given the envelope by the next one, and fails.
#[step(retry(2))]
async fn listen(cx: &Cx) -> Result<(u64, u64)> {
    let mut first = Box::pin(cx.wait_for("calls"));
    if cx.attempt() == 1 {
        assert!(futures::poll!(&mut first).is_pending());
        // It is found while nobody looks.
        tokio::time::sleep(MINUTE).await;
        drop(first);
        let called: u64 = cx.wait_for("calls").await?.decode()?;
        return Err(format!("only {called} has called").into());
    }
    let first = first.await?.decode()?;
    Ok((first, cx.wait_for("calls").await?.decode()?))
}

#[agent]
async fn listener(cx: &Cx) -> Result<(u64, u64)> {
    Ok(listen(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_of_a_step_is_given_each_envelope_once() {
    let log = Log::with(&["calls"]).await;
    let others = async {
        log.reached("wait.started", 1).await;
        log.say("calls", "called", &41).await;
        log.reached("step.attempted", 1).await;
        log.say("calls", "called", &42).await;
    };
    let (told, ()) = futures::join!(log.run(listener, ()), others);
    // What its second wait was given holds, and the first waits anew.
    assert_eq!(told.unwrap(), (42, 41), "{:#?}", log.kinds());
}
