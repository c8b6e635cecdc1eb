//! The rule of replay, part by part. Each test fails when its part of the rule is broken.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

mod world;

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    time::Duration,
};

use futures::{StreamExt as _, future::try_join_all, stream::FuturesUnordered};
use neuron::{Cx, ErrorKind, Node, Plan, Result, Secret, agent, def::Registry, plan, step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use world::{Seen, World, cut_everywhere, entry};

static SEEN: Seen = Seen::new();
static DRAWS: AtomicU32 = AtomicU32::new(0);

/// Never gives the same twice: equal arguments, different outputs.
#[step]
async fn draw(_cx: &Cx, test: String, wait: u64) -> Result<u32> {
    tokio::time::sleep(Duration::from_millis(wait)).await;
    let drawn = DRAWS.fetch_add(1, SeqCst);
    SEEN.note(format!("{test}: draw {drawn}"));
    Ok(drawn)
}

#[step]
async fn note(_cx: &Cx, test: String, what: String) -> Result<String> {
    SEEN.note(format!("{test}: {what}"));
    Ok(what)
}

// -- the order in which answers arrive --

#[agent]
async fn racer(cx: &Cx, test: String) -> Result<Vec<String>> {
    // Slowest first, so that answers arrive in the reverse of the order of the calls.
    let mut all: FuturesUnordered<_> = [30, 15, 0]
        .map(|wait| draw(cx, test.clone(), wait))
        .into_iter()
        .collect();
    let mut seen = Vec::new();
    while let Some(drawn) = all.next().await {
        seen.push(note(cx, test.clone(), format!("saw {}", drawn?)).await?);
    }
    Ok(seen)
}

#[tokio::test(start_paused = true)]
async fn answers_arrive_in_a_replay_in_the_order_of_the_log() {
    cut_everywhere(racer, "race".into()).await;
}

// -- equal calls, at the same time --

#[agent]
async fn twins(cx: &Cx, test: String) -> Result<Vec<String>> {
    let branch = async |who: &str, wait: u64| -> Result<String> {
        // Time decides in which order the branches make their equal calls.
        cx.sleep(Duration::from_millis(wait)).await?;
        let drawn = draw(cx, test.clone(), 0).await?;
        Ok(note(cx, test.clone(), format!("{who} {drawn}")).await?)
    };
    let (a, b) = tokio::join!(branch("a", 20), branch("b", 5));
    Ok(vec![a?, b?])
}

#[tokio::test(start_paused = true)]
async fn equal_calls_under_join_keep_their_branch() {
    cut_everywhere(twins, "twins".into()).await;
}

#[agent]
async fn storm(cx: &Cx, test: String) -> Result<Vec<String>> {
    let branch = async |who: u32| -> Result<String> {
        let mut path = format!("{who}:");
        for _ in 0..4 {
            cx.sleep(Duration::from_millis(cx.random() % 4)).await?;
            let drawn = draw(cx, test.clone(), 0).await?;
            // Only right if the branch gets its own answers back.
            path = note(cx, test.clone(), format!("{path} {drawn}")).await?;
        }
        Ok(path)
    };
    let mut all: FuturesUnordered<_> = (0..6).map(branch).collect();
    let mut arrived = Vec::new();
    while let Some(path) = all.next().await {
        arrived.push(path?);
    }
    Ok(arrived)
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_equal_calls_replays_at_every_cut() {
    cut_everywhere(storm, "storm".into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_storm_on_four_threads_replays() {
    for _ in 0..8 {
        let whole = World::new();
        let want = whole.run(storm, "threads".into()).await.unwrap();
        let again = whole.crash();
        assert_eq!(again.run(storm, "threads".into()).await.unwrap(), want);
        assert_eq!(again.completed(), whole.completed());
        let half = whole.cut(whole.len() / 2);
        half.run(storm, "threads".into()).await.unwrap();
        half.flush().await;
        assert!(half.payloads("replay.diverged").is_empty());
        assert_eq!(half.completed(), whole.completed());
    }
}

// -- the winner of a race, and its losers --

/// Tells when it begins, not only when it ends.
#[step]
async fn slow(_cx: &Cx, test: String) -> Result<String> {
    SEEN.note(format!("{test}: began"));
    std::future::pending().await
}

/// Ends once both others have begun.
#[step]
async fn late(_cx: &Cx, test: String) -> Result<String> {
    while SEEN.starting(&format!("{test}: began")) < 2 {
        tokio::task::yield_now().await;
    }
    Ok("late".into())
}

#[agent]
async fn chooser(cx: &Cx, test: String) -> Result<String> {
    // A busy body: a call that starts too early has the time to begin.
    let busy = std::future::poll_fn(|_| {
        (0..200).for_each(|_| std::thread::yield_now());
        std::task::Poll::<String>::Pending
    });
    let winner = tokio::select! {
        slow = slow(cx, test.clone()) => slow?,
        slow = slow(cx, test.clone()) => slow?,
        late = late(cx, test.clone()) => late?,
        never = busy => never,
    };
    Ok(note(cx, test, winner).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_loser_of_a_race_is_abandoned_and_no_replay_starts_it() {
    let whole = World::new();
    assert_eq!(whole.run(chooser, "select".into()).await.unwrap(), "late");
    assert_eq!(SEEN.starting("select: began"), 2, "both, live");
    whole.flush().await;
    assert_eq!(whole.count("step.abandoned slow"), 2);
    let ended = whole
        .log()
        .iter()
        .position(|line| line == "step.completed note")
        .unwrap();
    for _ in 0..50 {
        let world = whole.cut(ended);
        assert_eq!(world.run(chooser, "select".into()).await.unwrap(), "late");
    }
    assert_eq!(SEEN.starting("select: began"), 2, "and never again");
}

#[agent]
async fn photo_finish(cx: &Cx, test: String) -> Result<String> {
    // `select!` polls its branches in a random order, and both may be there.
    let first = tokio::select! {
        a = draw(cx, test.clone(), 0) => a?,
        b = draw(cx, test.clone(), 0) => b?,
    };
    Ok(note(cx, test, format!("first {first}")).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_photo_finish_has_one_winner_for_ever() {
    for _ in 0..40 {
        let whole = World::new();
        let want = whole.run(photo_finish, "photo".into()).await.unwrap();
        let again = whole.crash();
        assert_eq!(again.run(photo_finish, "photo".into()).await.unwrap(), want);
        assert_eq!(again.count("step.completed note"), 1);
    }
}

/// Lets several calls end before the body is polled again.
#[agent]
async fn crowd(cx: &Cx, test: String) -> Result<Vec<u32>> {
    let mut calls: Vec<_> = (0..8).map(|_| Some(Box::pin(draw(cx, test.clone(), 0)))).collect();
    let mut order = Vec::new();
    while calls.iter().any(Option::is_some) {
        let left = calls
            .iter_mut()
            .enumerate()
            .filter_map(|(at, call)| Some((at, call.as_mut()?)));
        let (at, drawn) = futures::future::select_all(left.map(|(at, call)| Box::pin(async move { (at, call.await) })))
            .await
            .0;
        calls[at] = None;
        drawn?;
        order.push(u32::try_from(at)?);
    }
    Ok(order)
}

#[tokio::test(start_paused = true)]
async fn of_several_answers_the_body_is_told_one_at_a_time_in_the_order_of_the_log() {
    cut_everywhere(crowd, "crowd".into()).await;
}

// -- occurrence --

static REVERSED: AtomicBool = AtomicBool::new(false);

#[agent]
async fn late_poll(cx: &Cx, test: String) -> Result<Vec<u32>> {
    let (first, second) = (draw(cx, test.clone(), 0), draw(cx, test, 0));
    let (first, second) = if REVERSED.load(SeqCst) {
        let second = second.await?;
        (first.await?, second)
    } else {
        (first.await?, second.await?)
    };
    Ok(vec![first, second])
}

#[tokio::test(start_paused = true)]
async fn equal_calls_awaited_in_another_order_keep_their_answers() {
    let whole = World::new();
    let want = whole.run(late_poll, "poll".into()).await.unwrap();
    REVERSED.store(true, SeqCst);
    assert_eq!(whole.crash().run(late_poll, "poll".into()).await.unwrap(), want);
}

// -- nested --

#[step(retry(3))]
async fn outer(cx: &Cx, test: String, fresh: bool) -> Result<u32> {
    let attempt = inner(cx, test, if fresh { cx.attempt() } else { 0 }).await?;
    if cx.attempt() == 1 {
        return Err("not good enough".into());
    }
    Ok(attempt)
}

#[step]
async fn inner(_cx: &Cx, test: String, attempt: u32) -> Result<u32> {
    SEEN.note(format!("{test}: attempt {attempt}"));
    Ok(attempt)
}

#[agent]
async fn nests(cx: &Cx, test: String, fresh: bool) -> Result<u32> {
    Ok(outer(cx, test, fresh).await?)
}

#[tokio::test(start_paused = true)]
async fn a_nested_answer_holds_for_every_attempt_unless_the_attempt_is_an_argument() {
    assert_eq!(World::new().run(nests, ("same".into(), false)).await.unwrap(), 0);
    assert_eq!(SEEN.starting("same: attempt"), 1);
    assert_eq!(World::new().run(nests, ("fresh".into(), true)).await.unwrap(), 2);
    assert_eq!(SEEN.starting("fresh: attempt"), 2);
    cut_everywhere(nests, ("nested".into(), true)).await;
}

// -- threads --

#[agent]
async fn threaded(cx: &Cx, test: String) -> Result<Vec<String>> {
    let thread = |wait: u64| {
        let test = test.clone();
        cx.spawn_thread("t", move |cx| async move {
            let drawn = draw(&cx, test.clone(), wait).await?;
            // Equal in each thread but for what was drawn.
            note(&cx, test, format!("thread {drawn}")).await
        })
    };
    Ok(try_join_all([15, 10, 5].map(thread)).await?)
}

#[tokio::test(start_paused = true)]
async fn a_thread_has_a_scope_of_its_own() {
    cut_everywhere(threaded, "threads".into()).await;
}

#[agent]
async fn detached(cx: &Cx, test: String) -> Result<(u32, u32)> {
    let aside = cx.spawn_thread("aside", |cx| async move { draw(&cx, "aside".into(), 0).await });
    let main = draw(cx, test, 10).await?;
    Ok((main, aside.await?))
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_ended_before_it_is_awaited_is_no_reordering() {
    let whole = World::new();
    let (_, aside) = whole.run(detached, "detached".into()).await.unwrap();
    let ended = whole
        .log()
        .iter()
        .position(|line| line == "thread.completed aside")
        .unwrap();
    let world = whole.cut(ended + 1);
    assert_eq!(world.run(detached, "detached".into()).await.unwrap().1, aside);
    world.flush().await;
    assert!(world.payloads("replay.reordered").is_empty());
    assert_eq!(world.count("thread.completed aside"), 1);
}

#[agent(allow(unrecorded))]
async fn smuggler(cx: &Cx, test: String) -> Result<String> {
    let thread = cx.spawn_thread("t", |cx| async move {
        let foreign = tokio::spawn(async move { draw(&cx, test, 0).await });
        Ok::<_, neuron::BoxError>(foreign.await??)
    });
    Ok(thread.await.unwrap_err().to_string())
}

#[tokio::test]
async fn a_call_on_a_foreign_task_is_refused() {
    let told = World::new().run(smuggler, "smuggle".into()).await.unwrap();
    assert!(told.contains("use `cx.spawn_thread`"), "{told}");
    assert_eq!(SEEN.starting("smuggle:"), 0);
}

#[agent]
async fn starter(_cx: &Cx) -> Result<bool> {
    Ok(neuron::scope::inside())
}

#[tokio::test]
async fn a_body_is_known_as_one_while_it_is_polled() {
    assert!(World::new().run(starter, ()).await.unwrap());
    assert!(!neuron::scope::inside());
}

// -- time and chance --

static CLOCK: AtomicU32 = AtomicU32::new(0);

#[agent]
async fn clocked(cx: &Cx, wall: bool) -> Result<String> {
    let now = if wall {
        CLOCK.fetch_add(1, SeqCst).to_string()
    } else {
        cx.now().to_string()
    };
    let first = note(cx, "clock".into(), now).await?;
    Ok(note(
        cx,
        "clock".into(),
        format!("after {first} at {} with {}", cx.now(), cx.random()),
    )
    .await?)
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_in_the_body_is_reported_and_the_context_clock_replays() {
    for (wall, diverged) in [(true, 1), (false, 0)] {
        let whole = World::new();
        whole.run(clocked, wall).await.unwrap();
        // The first answer stands, the second does not.
        let cut = whole.cut(2);
        cut.run(clocked, wall).await.unwrap();
        cut.flush().await;
        assert_eq!(cut.payloads("replay.diverged").len(), diverged);
        let strict = whole.cut(2).strict().run(clocked, wall).await;
        assert_eq!(
            strict.err().map(|error| error.kind()),
            wall.then_some(ErrorKind::Diverged)
        );
    }
}

// -- the code changed --

mod before {
    use super::*;

    #[agent(name = "worker_before")]
    pub(super) async fn worker(cx: &Cx, test: String) -> Result<Vec<String>> {
        let a = note(cx, test.clone(), "a".into()).await?;
        let b = note(cx, test.clone(), "b".into()).await?;
        let c = note(cx, test, "c".into()).await?;
        Ok(vec![a, b, c])
    }
}

mod after {
    use super::*;

    #[agent(name = "worker_after")]
    pub(super) async fn worker(cx: &Cx, test: String) -> Result<Vec<String>> {
        let new = note(cx, test.clone(), "new".into()).await?;
        let b = note(cx, test.clone(), "b".into()).await?;
        let a = note(cx, test, "a".into()).await?;
        Ok(vec![new, b, a])
    }
}

#[tokio::test(start_paused = true)]
async fn inserted_removed_and_reordered_steps_replay_and_are_told() {
    let whole = World::new();
    whole.run(before::worker, "edit".into()).await.unwrap();
    let world = whole.crash();
    assert_eq!(
        world.run(after::worker, "edit".into()).await.unwrap(),
        ["new", "b", "a"]
    );
    let ran: Vec<_> = SEEN
        .all()
        .into_iter()
        .filter(|what| what.starts_with("edit:"))
        .collect();
    assert_eq!(
        ran,
        ["edit: a", "edit: b", "edit: c", "edit: new"],
        "only the new one ran"
    );
    world.flush().await;
    let reordered = world.payloads("replay.reordered");
    assert_eq!((reordered.len(), reordered[0]["usedName"].as_str()), (1, Some("note")));
    let diverged = world.payloads("replay.diverged");
    assert_eq!(diverged.len(), 1);
    let (place, last) = whole.journal.lines().pop().unwrap();
    assert_eq!(diverged[0]["pos"], place.pos, "the answer of `c`: {last:?}");
    let strict = whole.crash().strict().run(after::worker, "edit".into()).await;
    assert_eq!(strict.unwrap_err().kind(), ErrorKind::Diverged);
}

// -- what is not on the log --

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Lossy {
    kept: u32,
    #[serde(skip)]
    dropped: u32,
}

#[step]
async fn lossy(_cx: &Cx) -> Result<Lossy> {
    Ok(Lossy { kept: 1, dropped: 2 })
}

#[agent]
async fn sees(cx: &Cx) -> Result<(u32, u32)> {
    let lossy = lossy(cx).await?;
    Ok((lossy.kept, lossy.dropped))
}

#[tokio::test]
async fn an_output_is_the_same_live_and_in_a_replay() {
    let whole = World::new();
    assert_eq!(whole.run(sees, ()).await.unwrap(), (1, 0));
    assert_eq!(whole.crash().run(sees, ()).await.unwrap(), (1, 0));
}

#[agent(allow(unrecorded))]
async fn unrecorded(cx: &Cx, foreign: bool) -> Result<()> {
    let wait = Duration::from_millis(1);
    if foreign {
        tokio::time::sleep(wait).await;
        ping(cx).await?;
    } else {
        cx.sleep(wait).await?;
    }
    Ok(())
}

#[step]
async fn ping(_cx: &Cx) -> Result<()> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_await_that_is_not_on_the_log_is_reported() {
    for foreign in [true, false] {
        let world = World::new();
        world.run(unrecorded, foreign).await.unwrap();
        assert_eq!(world.payloads("replay.unrecorded").len(), usize::from(foreign));
        let strict = World::new().strict().run(unrecorded, foreign).await;
        assert_eq!(strict.is_err(), foreign);
    }
}

/// Wakes itself without an answer: that is no idle moment.
#[agent]
async fn restless(cx: &Cx, test: String) -> Result<Vec<u32>> {
    let branch = async |turns: u32| -> Result<u32> {
        draw(cx, test.clone(), 0).await?;
        for _ in 0..turns {
            let mut woke = false;
            std::future::poll_fn(|task| {
                task.waker().wake_by_ref();
                if std::mem::replace(&mut woke, true) {
                    std::task::Poll::Ready(())
                } else {
                    std::task::Poll::Pending
                }
            })
            .await;
        }
        Ok(note(cx, test.clone(), turns.to_string()).await?.parse()?)
    };
    let mut all: FuturesUnordered<_> = [300, 2, 0].map(branch).into_iter().collect();
    let mut order = Vec::new();
    while let Some(turns) = all.next().await {
        order.push(turns?);
    }
    Ok(order)
}

#[tokio::test(start_paused = true)]
async fn a_body_that_wakes_itself_is_not_idle() {
    cut_everywhere(restless, "restless".into()).await;
}

// -- arguments of another form --

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    item: String,
}

mod today {
    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Order {
        pub(super) item: String,
        #[serde(default)]
        pub(super) gift: bool,
    }

    #[step(name = "pack")]
    pub(super) async fn pack(cx: &Cx, order: Order) -> Result<String> {
        Ok(note(cx, "pack".into(), order.item).await?)
    }

    #[agent(name = "packer_today")]
    pub(super) async fn packer(cx: &Cx) -> Result<Vec<String>> {
        let order = |item: &str| Order {
            item: item.into(),
            gift: false,
        };
        Ok(vec![pack(cx, order("pen")).await?, pack(cx, order("pen")).await?])
    }
}

#[step(name = "pack")]
async fn pack_once(cx: &Cx, order: Order) -> Result<String> {
    Ok(note(cx, "pack".into(), order.item).await?)
}

#[agent(name = "packer_once")]
async fn packer_once(cx: &Cx) -> Result<Vec<String>> {
    let order = |item: &str| Order { item: item.into() };
    Ok(vec![
        pack_once(cx, order("pen")).await?,
        pack_once(cx, order("pen")).await?,
    ])
}

#[tokio::test]
async fn recorded_arguments_of_an_older_form_are_the_same_call_and_so_is_what_lies_below() {
    let whole = World::new();
    whole.run(packer_once, ()).await.unwrap();
    let mut code = Registry::new();
    code.register(entry(today::pack)).unwrap();
    for cut in 0..=whole.len() {
        let world = World {
            code: code.clone(),
            ..whole.cut(cut)
        };
        assert_eq!(world.run(today::packer, ()).await.unwrap(), ["pen", "pen"]);
        assert_eq!(world.count("step.completed pack"), 2, "cut {cut}: {:#?}", world.log());
        assert_eq!(world.count("step.completed note"), 2, "cut {cut}: {:#?}", world.log());
        world.flush().await;
        assert!(world.payloads("replay.diverged").is_empty());
    }
}

mod keyed {
    use super::*;

    #[step(name = "open")]
    pub(super) async fn open(cx: &Cx, key: Secret<String>, order: today::Order) -> Result<String> {
        Ok(note(cx, "keyed".into(), key.expose().clone() + &order.item).await?)
    }

    #[agent(name = "opener_today")]
    pub(super) async fn opener(cx: &Cx) -> Result<String> {
        let order = today::Order {
            item: "box".into(),
            gift: false,
        };
        Ok(open(cx, "rotated".to_owned().into(), order).await?)
    }
}

#[step(name = "open")]
async fn open_once(cx: &Cx, key: Secret<String>, order: Order) -> Result<String> {
    Ok(note(cx, "keyed".into(), key.expose().clone() + &order.item).await?)
}

#[agent(name = "opener_once")]
async fn opener_once(cx: &Cx) -> Result<String> {
    Ok(open_once(cx, "first".to_owned().into(), Order { item: "box".into() }).await?)
}

#[tokio::test]
async fn an_older_form_beside_a_secret_is_the_same_call() {
    let whole = World::new();
    assert_eq!(whole.run(opener_once, ()).await.unwrap(), "firstbox");
    let mut code = Registry::new();
    code.register(entry(keyed::open)).unwrap();
    let again = World { code, ..whole.crash() };
    assert_eq!(
        again.run(keyed::opener, ()).await.unwrap(),
        "firstbox",
        "the recorded answer"
    );
    assert_eq!(again.len(), whole.len());
}

mod narrowed {
    use super::*;

    #[step(name = "lossy")]
    pub(super) async fn lossy(_cx: &Cx) -> Result<String> {
        Ok("text".into())
    }

    #[agent(name = "sees_text")]
    pub(super) async fn sees(cx: &Cx) -> Result<String> {
        Ok(lossy(cx).await.unwrap_or_else(|error| error.to_string()))
    }
}

#[tokio::test]
async fn an_output_that_no_longer_decodes_holds_the_run_instead_of_failing_the_body() {
    let whole = World::new();
    whole.run(sees, ()).await.unwrap();
    let held = whole.crash().run(narrowed::sees, ()).await.unwrap_err();
    assert_eq!(held.kind(), ErrorKind::ReplayDecode);
    assert!(held.message().contains("`lossy`"), "{held}");
}

// -- a plan is a body --

#[step]
async fn fetch(_cx: &Cx, url: String) -> Result<String> {
    Ok(format!("text of {url}"))
}

#[step]
async fn links(_cx: &Cx, count: u32) -> Result<Vec<String>> {
    Ok((0..count).map(|n| n.to_string()).collect())
}

#[step]
async fn is_many(_cx: &Cx, count: u32) -> Result<bool> {
    Ok(count > 2)
}

#[step]
async fn join(_cx: &Cx, pages: Vec<String>, extra: Option<String>) -> Result<String> {
    Ok(format!("{} {extra:?}", pages.join(", ")))
}

#[plan]
fn crawl(plan: &Plan, count: Node<u32>) -> Node<String> {
    let pages = plan.each(fetch, plan.step(links, count));
    let extra = plan.when(plan.step(is_many, count), fetch, "more");
    plan.after(extra, plan.step(ping, ()));
    plan.step(join, (pages, extra))
}

#[agent]
async fn planned(cx: &Cx, count: u32) -> Result<String> {
    let count = neuron::Json::of(&count)?;
    let given = neuron::plan::Input::Value(count.clone().into());
    let written = neuron::plan::write(crawl, &[given])?.ok_or("it takes nodes only")?;
    let scope = neuron::Context::scope(cx).clone();
    Ok(written.run(scope, vec![count]).await?.decode()?)
}

#[tokio::test]
async fn a_plan_runs_what_it_declares_and_resumes_at_every_cut() {
    let world = World::new();
    assert_eq!(world.run(planned, 2).await.unwrap(), "text of 0, text of 1 None");
    assert_eq!(world.count("step.completed fetch"), 2, "the condition was not met");
    let world = World::new();
    assert_eq!(
        world.run(planned, 3).await.unwrap(),
        r#"text of 0, text of 1, text of 2 Some("text of more")"#
    );
    assert_eq!(world.count("step.completed fetch"), 4);
    cut_everywhere(planned, 3).await;
}

static MEET: std::sync::LazyLock<tokio::sync::Barrier> = std::sync::LazyLock::new(|| tokio::sync::Barrier::new(3));

#[step]
async fn meet(_cx: &Cx, guest: u32) -> Result<u32> {
    MEET.wait().await;
    Ok(guest)
}

#[step]
async fn sum(_cx: &Cx, all: Vec<u32>) -> Result<u32> {
    Ok(all.iter().sum())
}

#[plan]
fn party(plan: &Plan) -> Node<u32> {
    plan.step(sum, (0..3).map(|guest| plan.step(meet, guest)).collect::<Vec<_>>())
}

#[agent]
async fn host(cx: &Cx) -> Result<u32> {
    let written = neuron::plan::write(party, &[])?.ok_or("it takes nothing")?;
    let scope = neuron::Context::scope(cx).clone();
    Ok(written.run(scope, Vec::new()).await?.decode()?)
}

#[tokio::test(start_paused = true)]
async fn what_has_its_edges_satisfied_runs_at_the_same_time() {
    let run = World::new();
    let met = tokio::time::timeout(Duration::from_secs(5), run.run(host, ())).await;
    assert_eq!(met.expect("all three meet").unwrap(), 3);
}
