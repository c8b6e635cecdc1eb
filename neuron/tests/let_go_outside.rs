//! What a step or a thread leaves that its caller lets go of: it is there for whoever comes next, and the log says so.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::time::Duration;

use neuron::{Cx, Json, Result, agent, scope::Sought, step};
use tokio::time::timeout;
use world::{Log, World};

const MINUTE: Duration = Duration::from_mins(1);

// -- a request --

/// Looks for a request, and looks away.
#[step]
async fn distracted(cx: &Cx) -> Result<()> {
    let mut books = cx.updates::<u64, u64>("book");
    let mut next = std::pin::pin!(books.next());
    assert!(futures::poll!(&mut next).is_pending());
    tokio::time::sleep(60 * MINUTE).await;
    drop(next.await?);
    Ok(())
}

#[agent]
async fn delegates(cx: &Cx) -> Result<u64> {
    let _late = cx.timeout(MINUTE, distracted(cx)).await;
    let mut books = cx.updates::<u64, u64>("book");
    let update = cx.timeout(MINUTE, books.next()).await??;
    let request = update.request;
    update.answer(&request).await?;
    Ok(request)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_step_was_not_told_of_is_there_for_whoever_let_go_of_it() {
    let world = World::new();
    let later = async {
        tokio::time::sleep(MINUTE / 2).await;
        world.journal.give(Sought::Update("book".into()), Json::of(&9).unwrap());
    };
    let (told, ()) = tokio::join!(world.run(delegates, ()), later);
    assert_eq!(told.map_err(|error| error.to_string()), Ok(9), "{:#?}", world.log());
}

/// Has a thread that looks for a request and then does something else; itself it begins again, and looks too.
#[agent]
async fn foreman(cx: &Cx, round: u64) -> Result<u64> {
    if round == 0 {
        let _thread = cx.spawn_thread("clerk", |cx| async move {
            let mut books = cx.updates::<u64, u64>("book");
            let mut next = std::pin::pin!(books.next());
            assert!(futures::poll!(&mut next).is_pending());
            cx.sleep(60 * MINUTE).await?;
            drop(next.await?);
            Ok::<(), neuron::Error>(())
        });
        cx.sleep(MINUTE).await?;
        return Ok(cx.continue_with(foreman, 1).await?);
    }
    let mut books = cx.updates::<u64, u64>("book");
    let update = cx.timeout(MINUTE, books.next()).await??;
    let request = update.request;
    update.answer(&request).await?;
    Ok(request)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_thread_was_not_told_of_is_there_for_the_body_that_begins_again() {
    let world = World::new();
    let later = async {
        tokio::time::sleep(MINUTE / 2).await;
        world.journal.give(Sought::Update("book".into()), Json::of(&9).unwrap());
    };
    let (told, ()) = tokio::join!(world.run(foreman, 0), later);
    assert_eq!(told.map_err(|error| error.to_string()), Ok(9), "{:#?}", world.log());
}

// -- of a thread --

#[step]
async fn work(_cx: &Cx) -> Result<()> {
    tokio::time::sleep(60 * MINUTE).await;
    Ok(())
}

/// Has a thread with something of every kind in flight when it begins again.
#[agent]
async fn restless(cx: &Cx, round: u64) -> Result<()> {
    if round == 0 {
        let _thread = cx.spawn_thread("busy", |cx| async move {
            futures::try_join!(
                async { cx.wait_for("calls").await.map(drop) },
                async { cx.ask_human::<bool>("Go on without?").await.map(drop) },
                async { work(&cx).await.map(drop) },
            )?;
            Ok::<(), neuron::Error>(())
        });
        cx.sleep(MINUTE).await?;
        return Ok(cx.continue_with(restless, 1).await?);
    }
    cx.sleep(MINUTE).await?;
    Ok(())
}

/// A step with such a thread, let go of after a while.
#[step]
async fn household(cx: &Cx) -> Result<()> {
    let thread = cx.spawn_thread("busy", |cx| async move {
        futures::try_join!(async { cx.wait_for("calls").await.map(drop) }, async {
            cx.ask_human::<bool>("Go on without?").await.map(drop)
        },)?;
        Ok::<(), neuron::Error>(())
    });
    Ok(thread.await?)
}

#[agent]
async fn landlord(cx: &Cx) -> Result<()> {
    let _late = cx.timeout(MINUTE, household(cx)).await;
    cx.sleep(MINUTE).await?;
    Ok(())
}

async fn ends_what_it_began<M, F: neuron::Callable<M>>(
    agent: F,
    args: <<F::Def as neuron::def::Def>::Args as neuron::def::Args>::Bare,
) where
    <<F::Def as neuron::def::Def>::Args as neuron::def::Args>::Bare: Clone,
{
    let whole = Log::with(&["calls"]).await;
    let before = whole.len();
    assert!(whole.run(agent, args.clone()).await.is_ok());
    whole.ledger.store().flush();
    assert!(whole.open().is_empty(), "{:#?}", whole.kinds());
    for cut in before..=whole.len() {
        let log = whole.cut(cut);
        assert!(log.run(agent, args.clone()).await.is_ok());
        log.ledger.store().flush();
        let open = log.open();
        assert!(
            open.is_empty(),
            "cut {cut}: {open:?} began and never ended: {:#?}",
            log.kinds()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_all_that_a_thread_has_begun_ends_when_the_body_begins_again() {
    ends_what_it_began(restless, 0).await;
}

/// Has such a thread, and ends without it.
#[agent]
async fn host(cx: &Cx) -> Result<()> {
    let _thread = cx.spawn_thread("busy", |cx| async move {
        futures::try_join!(
            async { cx.wait_for("calls").await.map(drop) },
            async { cx.ask_human::<bool>("Go on without?").await.map(drop) },
            async { work(&cx).await.map(drop) },
        )?;
        Ok::<(), neuron::Error>(())
    });
    cx.sleep(MINUTE).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_all_that_a_thread_has_begun_ends_with_its_body() {
    ends_what_it_began(host, ()).await;
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_all_that_the_thread_of_a_step_has_begun_ends_with_the_step() {
    ends_what_it_began(landlord, ()).await;
}

// -- a once step of a thread --

#[step(once)]
async fn pay(_cx: &Cx, cents: u64) -> Result<u64> {
    std::future::pending::<()>().await;
    Ok(cents)
}

/// Its thread lets go of a payment.
#[agent]
async fn fickle(cx: &Cx, round: u64) -> Result<String> {
    let payer = cx.spawn_thread("payer", |cx| async move {
        let _late = cx.timeout(Duration::from_secs(1), pay(&cx, 70)).await;
        Ok::<(), neuron::Error>(())
    });
    cx.sleep(MINUTE).await?;
    drop(payer);
    match cx.continue_with(fickle, round + 1).await {
        Ok(never) => Ok(never),
        Err(error) => Ok(format!("{:?} {error}", error.kind())),
    }
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_a_body_whose_thread_let_go_of_a_once_step_is_told() {
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

// -- of a step that is run again --

/// Whether the step has nothing to wait for any more.
static HURRIES: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Waits for a call, and asks besides, unless there is no need to.
#[step]
async fn thorough(cx: &Cx) -> Result<()> {
    if HURRIES.load(std::sync::atomic::Ordering::SeqCst) {
        return Ok(());
    }
    futures::try_join!(async { cx.wait_for("calls").await.map(drop) }, async {
        cx.ask_human::<bool>("Go on without?").await.map(drop)
    },)?;
    Ok(())
}

#[agent]
async fn clerk(cx: &Cx) -> Result<()> {
    thorough(cx).await?;
    cx.sleep(MINUTE).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_what_a_step_has_begun_and_not_come_to_again_ends_with_it() {
    let killed = Log::with(&["calls"]).await;
    let begun = async {
        killed.reached("question.asked", 1).await;
        killed.reached("wait.started", 1).await;
    };
    tokio::select! {
        _ = killed.run(clerk, ()) => unreachable!("nobody calls"),
        () = begun => {}
    }
    HURRIES.store(true, std::sync::atomic::Ordering::SeqCst);
    let whole = killed.crash();
    let before = whole.len();
    whole.run(clerk, ()).await.unwrap();
    for cut in before..=whole.len() {
        let log = whole.cut(cut);
        log.run(clerk, ()).await.unwrap();
        log.ledger.store().flush();
        let open = log.open();
        assert!(
            open.is_empty(),
            "cut {cut}: {open:?} began and never ended: {:#?}",
            log.kinds()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_a_request_that_a_step_was_not_told_of_is_there_for_whoever_let_go_of_it() {
    let whole = World::new();
    let later = async {
        tokio::time::sleep(MINUTE / 2).await;
        whole.journal.give(Sought::Update("book".into()), Json::of(&9).unwrap());
    };
    let (told, ()) = tokio::join!(whole.run(delegates, ()), later);
    assert_eq!(told.map_err(|error| error.to_string()), Ok(9), "{:#?}", whole.log());
    let looks = whole
        .log()
        .iter()
        .position(|line| line.starts_with("timer.fired"))
        .unwrap();
    for cut in looks + 1..=whole.len() {
        let world = whole.cut(cut);
        let told = world.run(delegates, ()).await.map_err(|error| error.to_string());
        assert_eq!(told, Ok(9), "cut {cut}: {:#?}", world.log());
    }
}
