//! What a developer does to a program between a crash and the restart, one edit a row: what runs again, what is answered
//! from the log, what is reported.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

mod world;

use futures::future::{BoxFuture, try_join_all};
use neuron::{Callable, Cx, Error, ErrorKind, Result, agent, def::Registry, step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use world::{Seen, World, entry};

static SEEN: Seen = Seen::new();

/// One line of a program. The code of a version is a list of them, so that an edit is another list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
enum Op {
    /// A step with this argument.
    Note(String),
    /// Steps at the same time.
    Join(Vec<String>),
    /// A step that makes other steps, and dies after these if the log was cut there.
    Nest(String, Vec<String>),
    /// A thread with a program of its own.
    Thread(String, Vec<Op>),
    /// A function that calls itself so often, with a step each time.
    Recur(u32),
    /// A step that must not happen twice.
    Pay(u32),
}

use Op::{Join, Nest, Note, Pay, Recur, Thread};

fn note_of(what: &str) -> Op {
    Note(what.into())
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|&word| word.to_owned()).collect()
}

fn notes(all: &[&str]) -> Vec<Op> {
    all.iter().map(|what| note_of(what)).collect()
}

#[step]
async fn note(_cx: &Cx, test: String, what: String) -> Result<String> {
    SEEN.note(format!("{test}: {what}"));
    Ok(what)
}

#[step]
async fn nest(cx: &Cx, test: String, name: String, inner: Vec<String>) -> Result<String> {
    SEEN.note(format!("{test}: nest {name}"));
    for what in inner {
        note(cx, test.clone(), what).await?;
    }
    Ok(name)
}

/// As `nest`, with the steps in it taken from the present code and not from an argument.
#[step(ignore(inner))]
async fn nest_code(cx: &Cx, test: String, name: String, inner: Vec<String>) -> Result<String> {
    SEEN.note(format!("{test}: nest {name}"));
    for what in inner {
        note(cx, test.clone(), what).await?;
    }
    Ok(name)
}

#[step(once)]
async fn pay(_cx: &Cx, test: String, cents: u32) -> Result<String> {
    SEEN.note(format!("{test}: pay {cents}"));
    Ok(format!("paid {cents}"))
}

async fn recur(cx: &Cx, test: &str, left: u32) -> Result<String> {
    if left == 0 {
        return Ok("bottom".into());
    }
    note(cx, test.into(), format!("level {left}")).await?;
    Box::pin(recur(cx, test, left - 1)).await
}

fn play<'a>(cx: &'a Cx, test: &'a str, program: Vec<Op>) -> BoxFuture<'a, Result<Vec<String>>> {
    Box::pin(async move {
        let mut said = Vec::new();
        for op in program {
            match op {
                Note(what) => said.push(note(cx, test.into(), what).await?),
                Join(all) => said.extend(try_join_all(all.into_iter().map(|what| note(cx, test.into(), what))).await?),
                Nest(name, inner) => said.push(nest_code(cx, test.into(), name, inner).await?),
                Thread(name, inner) => {
                    let test = test.to_owned();
                    let thread = cx.spawn_thread(&name, |cx| async move { play(&cx, &test, inner).await });
                    said.extend(thread.await?);
                }
                Recur(depth) => said.push(recur(cx, test, depth).await?),
                Pay(cents) => said.push(pay(cx, test.into(), cents).await?),
            }
        }
        Ok(said)
    })
}

#[agent]
async fn program(cx: &Cx, test: String, program: Vec<Op>) -> Result<Vec<String>> {
    play(cx, &test, program).await
}

/// What was done since.
fn since(before: usize, test: &str) -> Vec<String> {
    let all = SEEN.all().into_iter().skip(before);
    all.filter_map(|what| Some(what.strip_prefix(&format!("{test}: "))?.to_owned()))
        .collect()
}

fn reported(world: &World, kind: &str) -> Vec<String> {
    let found = world.payloads(kind).into_iter();
    found
        .map(|found| found["name"].as_str().unwrap_or("").to_owned())
        .collect()
}

/// One edit.
struct Edit {
    what: &'static str,
    before: Vec<Op>,
    after: Vec<Op>,
    /// How many steps had ended at the crash.
    ended: usize,
    /// What the new code does.
    ran: &'static [&'static str],
    /// What it gives.
    gives: &'static [&'static str],
    /// How many steps are reported as run before recorded ones.
    reordered: usize,
    /// How many recorded answers are reported as not asked for.
    diverged: usize,
}

#[rustfmt::skip]
fn edits() -> Vec<Edit> {
    let edit = |what, before, after, ended, ran, gives, reordered, diverged| Edit {
        what, before, after, ended, ran, gives, reordered, diverged,
    };
    let nested = |inner: &[&str]| vec![Nest("n".into(), words(inner)), note_of("z")];
    let thread = |name: &str, inner: &[&str]| vec![Thread(name.into(), notes(inner)), note_of("z")];
    vec![
        edit("nothing", notes(&["a", "b", "c"]), notes(&["a", "b", "c"]), 2, &["c"], &["a", "b", "c"], 0, 0),
        edit("a step inserted before the recorded ones", notes(&["a", "b"]), notes(&["x", "a", "b"]), 2, &["x"], &["x", "a", "b"], 1, 0),
        edit("a step inserted among them", notes(&["a", "b"]), notes(&["a", "x", "b"]), 2, &["x"], &["a", "x", "b"], 1, 0),
        edit("a step inserted after them", notes(&["a", "b"]), notes(&["a", "b", "x"]), 2, &["x"], &["a", "b", "x"], 0, 0),
        edit("a step inserted that equals its neighbour", notes(&["a", "b"]), notes(&["a", "a", "b"]), 2, &["a"], &["a", "a", "b"], 1, 0),
        edit("a step removed", notes(&["a", "b", "c"]), notes(&["b", "c"]), 2, &["c"], &["b", "c"], 0, 1),
        edit("the step in flight removed", notes(&["a", "b"]), notes(&["a"]), 1, &[], &["a"], 0, 0),
        edit("steps in another order", notes(&["a", "b", "c"]), notes(&["b", "a", "c"]), 2, &["c"], &["b", "a", "c"], 0, 0),
        edit("a constant changed", notes(&["a", "b", "c"]), notes(&["A", "b", "c"]), 2, &["A", "c"], &["A", "b", "c"], 1, 1),
        edit("a constant changed that nothing recorded follows", notes(&["a", "b"]), notes(&["A", "b"]), 1, &["A", "b"], &["A", "b"], 0, 1),
        edit("a loop of more rounds", notes(&["l", "l"]), notes(&["l", "l", "l"]), 2, &["l"], &["l", "l", "l"], 0, 0),
        edit("a loop of fewer rounds", notes(&["l", "l", "l"]), notes(&["l"]), 2, &[], &["l"], 0, 1),
        edit("a loop of more rounds before recorded steps", notes(&["l", "l", "z"]), notes(&["l", "l", "l", "z"]), 3, &["l"], &["l", "l", "l", "z"], 1, 0),
        edit("one after the other becomes at the same time", notes(&["a", "b", "c"]), vec![Join(words(&["a", "b", "c"]))], 2, &["c"], &["a", "b", "c"], 0, 0),
        edit("at the same time becomes one after the other", vec![Join(words(&["a", "b"])), note_of("c")], notes(&["b", "a", "c"]), 2, &["c"], &["b", "a", "c"], 0, 0),
        edit("one more at the same time", vec![Join(words(&["a", "b"]))], vec![Join(words(&["a", "x", "b"]))], 2, &["x"], &["a", "x", "b"], 0, 0),
        edit("a deeper recursion", vec![Recur(2)], vec![Recur(3)], 2, &["level 3"], &["bottom"], 1, 0),
        edit("a shallower recursion", vec![Recur(3)], vec![Recur(2)], 2, &["level 1"], &["bottom"], 0, 1),
        edit("a step inserted into a step that has ended", nested(&["a"]), nested(&["x", "a"]), 2, &["z"], &["n", "z"], 0, 0),
        edit("a step inserted into a step in flight", nested(&["a", "b"]), nested(&["a", "x", "b"]), 2, &["nest n", "x", "z"], &["n", "z"], 0, 0),
        edit("a step removed from a step in flight", nested(&["a", "b"]), nested(&["b"]), 2, &["nest n", "z"], &["n", "z"], 0, 0),
        edit("a step inserted into a thread", thread("t", &["a", "b", "c"]), thread("t", &["x", "a", "b", "c"]), 2, &["x", "c", "z"], &["x", "a", "b", "c", "z"], 1, 0),
        edit("a step removed from a thread", thread("t", &["a", "b", "c"]), thread("t", &["b", "c"]), 2, &["c", "z"], &["b", "c", "z"], 0, 1),
        edit("a thread that has ended is not looked into", thread("t", &["a"]), thread("t", &["x"]), 1, &["z"], &["a", "z"], 0, 0),
        edit("a thread under another name is another one", thread("t", &["a"]), thread("u", &["a"]), 1, &["a", "z"], &["a", "z"], 0, 1),
        edit("a thread dissolved into its body", thread("t", &["a"]), notes(&["a", "z"]), 1, &["a", "z"], &["a", "z"], 0, 1),
        edit("a payment that goes on as it was", vec![Pay(5), note_of("z")], vec![Pay(5), note_of("z")], 1, &["z"], &["paid 5", "z"], 0, 0),
        edit("a payment moved behind a new step", vec![Pay(5), note_of("z")], vec![note_of("x"), Pay(5), note_of("z")], 1, &["x", "z"], &["x", "paid 5", "z"], 1, 0),
        edit("a second payment", vec![Pay(5)], vec![Pay(5), Pay(6)], 1, &["pay 6"], &["paid 5", "paid 6"], 0, 0),
        edit("a payment removed", vec![Pay(5), note_of("z")], vec![note_of("z")], 1, &["z"], &["z"], 0, 1),
    ]
}

/// The log of a version as a crash left it, after so many steps had ended. A thread ends with its last step.
fn crashed(whole: &World, ended: usize) -> World {
    let log = whole.log();
    let ends = log
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("step.completed"));
    let last = ends.map(|(at, _)| at + 1).nth(ended - 1).unwrap();
    let thread = log.get(last).is_some_and(|line| line.starts_with("thread.completed"));
    whole.cut(last + usize::from(thread))
}

#[tokio::test(start_paused = true)]
async fn each_edit_runs_what_is_new_answers_what_is_recorded_and_reports_the_rest() {
    for edit in edits() {
        let test = edit.what;
        let whole = World::new();
        whole.run(program, (test.into(), edit.before)).await.unwrap();
        let world = crashed(&whole, edit.ended);
        let (before, completed) = (SEEN.all().len(), world.completed());
        let given = world.run(program, (test.into(), edit.after)).await.unwrap();
        world.flush().await;
        assert_eq!(since(before, test), edit.ran, "{test}: what ran: {:#?}", world.log());
        assert_eq!(given, edit.gives, "{test}: what it gave");
        let nested = edit.ran.iter().filter(|what| what.starts_with("nest")).count();
        assert!(
            world.completed() - completed >= edit.ran.len() - nested,
            "{test}: all of it is on the log"
        );
        let reordered = reported(&world, "replay.reordered").len();
        let diverged = reported(&world, "replay.diverged").len();
        assert_eq!(
            (reordered, diverged),
            (edit.reordered, edit.diverged),
            "{test}: {:#?}",
            world.log()
        );
        assert!(world.payloads("replay.unrecorded").is_empty(), "{test}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_payment_that_is_another_one_today_is_held_and_not_made() {
    let test = "held";
    let whole = World::new();
    whole.run(program, (test.into(), vec![Pay(5)])).await.unwrap();
    // In a world without rulings whoever waits for one is told so.
    let held = whole.crash();
    let error = held.run(program, (test.into(), vec![Pay(6)])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt);
    assert_eq!(held.payloads("replay.once_changed").len(), 1);
    assert_eq!(SEEN.starting("held: pay 6"), 0);
}

// -- another name --

mod renamed {
    use super::*;

    /// It was `note`, and `scribble` in between.
    #[step(was = "note", was = "scribble")]
    pub(super) async fn jot(_cx: &Cx, test: String, what: String) -> Result<String> {
        SEEN.note(format!("{test}: jot {what}"));
        Ok(what)
    }

    #[agent]
    pub(super) async fn jotter(cx: &Cx, test: String, all: Vec<String>) -> Result<Vec<String>> {
        let mut said = Vec::new();
        for what in all {
            said.push(jot(cx, test.clone(), what).await?);
        }
        Ok(said)
    }

    /// Another name, and nothing that says so.
    #[step]
    pub(super) async fn remark(_cx: &Cx, test: String, what: String) -> Result<String> {
        SEEN.note(format!("{test}: remark {what}"));
        Ok(what)
    }

    #[agent]
    pub(super) async fn remarker(cx: &Cx, test: String, all: Vec<String>) -> Result<Vec<String>> {
        let mut said = Vec::new();
        for what in all {
            said.push(remark(cx, test.clone(), what).await?);
        }
        Ok(said)
    }

    #[step(name = "scribble")]
    pub(super) async fn scribble(_cx: &Cx, test: String, what: String) -> Result<String> {
        SEEN.note(format!("{test}: scribble {what}"));
        Ok(what)
    }

    #[agent]
    pub(super) async fn scribbler(cx: &Cx, test: String, all: Vec<String>) -> Result<Vec<String>> {
        let mut said = Vec::new();
        for what in all {
            said.push(scribble(cx, test.clone(), what).await?);
        }
        Ok(said)
    }

    #[step(once, was = "pay")]
    pub(super) async fn transfer(_cx: &Cx, test: String, cents: u32) -> Result<String> {
        SEEN.note(format!("{test}: transfer {cents}"));
        Ok(format!("paid {cents}"))
    }

    #[step(once)]
    pub(super) async fn remit(_cx: &Cx, test: String, cents: u32) -> Result<String> {
        SEEN.note(format!("{test}: remit {cents}"));
        Ok(format!("paid {cents}"))
    }

    #[agent]
    pub(super) async fn payer(cx: &Cx, test: String, declared: bool) -> Result<String> {
        if declared {
            return Ok(transfer(cx, test, 5).await?);
        }
        Ok(remit(cx, test, 5).await?)
    }

    #[step(was = "nest_code", ignore(inner))]
    pub(super) async fn group(cx: &Cx, test: String, name: String, inner: Vec<String>) -> Result<String> {
        SEEN.note(format!("{test}: group {name}"));
        for what in inner {
            note(cx, test.clone(), what).await?;
        }
        Ok(name)
    }

    #[agent]
    pub(super) async fn grouper(cx: &Cx, test: String, inner: Vec<String>) -> Result<String> {
        Ok(group(cx, test, "n".into(), inner).await?)
    }
}

fn code<const N: usize>(entries: [&'static neuron::def::Entry; N]) -> Registry {
    let mut code = Registry::new();
    for entry in entries {
        code.register(entry).unwrap();
    }
    code
}

#[tokio::test(start_paused = true)]
async fn a_step_that_says_what_it_was_is_answered_as_what_it_was_at_every_cut() {
    let test = "renamed";
    let whole = World::new();
    whole
        .run(program, (test.into(), notes(&["a", "a", "b"])))
        .await
        .unwrap();
    for cut in 0..=whole.len() {
        let world = World {
            code: code([entry(renamed::jot)]),
            ..whole.cut(cut)
        };
        let given = world
            .run(renamed::jotter, (test.into(), words(&["a", "a", "b"])))
            .await
            .unwrap();
        assert_eq!(given, ["a", "a", "b"]);
        assert_eq!(world.completed(), 3, "cut {cut}: each once: {:#?}", world.log());
        world.flush().await;
        assert!(reported(&world, "replay.diverged").is_empty());
        // Whoever comes after that finds both names.
        let again = world.crash();
        let given = again
            .run(renamed::jotter, (test.into(), words(&["a", "a", "b"])))
            .await
            .unwrap();
        assert_eq!((given.len(), again.completed()), (3, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_were_recorded_under_two_names_are_told_apart_by_their_occurrence() {
    let test = "twice renamed";
    let first = World::new();
    first.run(program, (test.into(), notes(&["a"]))).await.unwrap();
    let mut between = Registry::new();
    between.register(entry(renamed::scribble)).unwrap();
    // A version in between had forgotten to say so: its call stands beside the first.
    let second = World {
        code: between,
        ..first.crash()
    };
    second
        .run(renamed::scribbler, (test.into(), words(&["a"])))
        .await
        .unwrap();
    second.flush().await;
    let third = World {
        code: code([entry(renamed::jot)]),
        ..second.crash()
    };
    let before = SEEN.all().len();
    third
        .run(renamed::jotter, (test.into(), words(&["a", "a", "a"])))
        .await
        .unwrap();
    assert_eq!(since(before, test), ["jot a"], "two are recorded, under either name");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_does_not_say_what_it_was_runs_and_the_old_answer_is_told() {
    let test = "unsaid";
    let whole = World::new();
    whole.run(program, (test.into(), notes(&["a"]))).await.unwrap();
    let world = World {
        code: code([entry(renamed::remark)]),
        ..whole.crash()
    };
    world
        .run(renamed::remarker, (test.into(), words(&["a"])))
        .await
        .unwrap();
    world.flush().await;
    assert_eq!(SEEN.starting("unsaid: remark"), 1);
    assert_eq!(reported(&world, "replay.diverged"), ["note"]);
}

#[tokio::test(start_paused = true)]
async fn what_stands_below_a_step_in_flight_stands_below_its_new_name() {
    let test = "below";
    let whole = World::new();
    let before = vec![Nest("n".into(), words(&["a", "b"]))];
    whole.run(program, (test.into(), before)).await.unwrap();
    let world = World {
        code: code([entry(renamed::group), entry(note)]),
        ..crashed(&whole, 1)
    };
    let before = SEEN.all().len();
    world
        .run(renamed::grouper, (test.into(), words(&["a", "b"])))
        .await
        .unwrap();
    assert_eq!(since(before, test), ["group n", "b"], "its first step is answered");
}

#[tokio::test(start_paused = true)]
async fn a_payment_under_another_name_is_found_and_one_that_does_not_say_so_is_held() {
    for (declared, held) in [(true, 0), (false, 1)] {
        let test = format!("pay renamed {declared}");
        let whole = World::new();
        whole.run(program, (test.clone(), vec![Pay(5)])).await.unwrap();
        let world = World {
            code: code([entry(renamed::transfer), entry(renamed::remit)]),
            ..whole.crash()
        };
        let mut only = Registry::new();
        only.register(entry(renamed::remit)).unwrap();
        let world = if declared { world } else { World { code: only, ..world } };
        let given = world.run(renamed::payer, (test.clone(), declared)).await;
        assert_eq!(given.is_ok(), declared, "{given:?}");
        assert_eq!(world.payloads("replay.once_changed").len(), held);
        assert_eq!(since(0, &test), ["pay 5"], "and it is not made twice");
    }
}

mod taken {
    use super::*;

    #[step(was = "jot_old")]
    pub(super) async fn one(_cx: &Cx) -> Result<()> {
        Ok(())
    }

    #[step(was = "jot_old")]
    pub(super) async fn two(_cx: &Cx) -> Result<()> {
        Ok(())
    }

    #[step(was = "one")]
    pub(super) async fn three(_cx: &Cx) -> Result<()> {
        Ok(())
    }

    /// Another kind has names of its own.
    #[agent(was = "one")]
    pub(super) async fn four(_cx: &Cx) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_former_name_belongs_to_one_definition_and_is_not_a_present_one() {
    let refused = |first, second| {
        let mut registry = Registry::new();
        registry.register(first).unwrap();
        let error = registry.register(second).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        let places = error.message().matches("neuron/tests/edits.rs:").count();
        assert_eq!(places, 2, "both places: {error}");
        error.message().to_owned()
    };
    let told = refused(entry(taken::one), entry(taken::two));
    assert!(
        told.contains("two definitions were the step `jot_old`: `one`") && told.contains("`two`"),
        "{told}"
    );
    for (first, second) in [
        (entry(taken::one), entry(taken::three)),
        (entry(taken::three), entry(taken::one)),
    ] {
        let told = refused(first, second);
        assert!(
            told.contains("the step `three`") && told.contains("says that it was `one`"),
            "{told}"
        );
    }
    let registry = code([entry(taken::one), entry(taken::four)]);
    assert_eq!(registry.get("step", "jot_old").unwrap().meta().name, "one");
    assert!(registry.get("agent", "jot_old").is_none());
}

// -- another form of its arguments --

mod old {
    use super::*;

    #[step(name = "send")]
    pub(super) async fn send(_cx: &Cx, test: String, to: String) -> Result<String> {
        SEEN.note(format!("{test}: old {to}"));
        Ok(to)
    }

    #[agent(name = "sender_old")]
    pub(super) async fn sender(cx: &Cx, test: String) -> Result<String> {
        Ok(send(cx, test, "ada 7".into()).await?)
    }
}

macro_rules! today {
    ($module:ident, ($($parameter:ident: $ty:ty = $value:expr),*)) => {
        mod $module {
            #[allow(unused_imports, reason = "of use to some")]
            use super::*;

            #[step(name = "send")]
            pub(super) async fn send(_cx: &Cx, test: String $(, $parameter: $ty)*) -> Result<String> {
                SEEN.note(format!("{test}: new"));
                $(drop($parameter);)*
                Ok("new".into())
            }

            #[agent(name = "sender_today")]
            pub(super) async fn sender(cx: &Cx, test: String) -> Result<String> {
                Ok(send(cx, test $(, $value)*).await?)
            }
        }
    };
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Whom {
    name: String,
    age: u32,
}

today!(optional, (to: String = "ada 7".into(), copy: Option<String> = None));
today!(added, (to: String = "ada 7".into(), copy: String = "nobody".into()));
today!(removed, ());
today!(retyped, (to: Whom = Whom { name: "ada".into(), age: 7 }));

type Upcast = fn(serde_json::Value) -> Result<serde_json::Value, Error>;

async fn resent<M, F>(test: &str, send: &'static neuron::def::Entry, sender: F, upcast: Option<Upcast>) -> World
where
    F: Callable<M>,
    F::Def: neuron::def::Def<Args = (String,), Output = String>,
{
    let whole = World::new();
    whole.run(old::sender, test.into()).await.unwrap();
    let mut code = code([send]);
    if let Some(upcast) = upcast {
        code.upcast_args("step", "send", upcast).unwrap();
    }
    let world = World { code, ..whole.crash() };
    let runtime = world.runtime();
    let scope = neuron::scope::Scope::root(&runtime, "run", neuron::Millis(1), neuron::scope::Manner::Replayed);
    let args = neuron::def::encode::<F::Def>(&(test.to_owned(),)).unwrap().revealed;
    let _ = sender;
    let driven = neuron::scope::contain(&scope, entry(sender).run(scope.clone(), args)).await;
    driven.unwrap().unwrap();
    world.flush().await;
    world
}

#[tokio::test(start_paused = true)]
async fn arguments_of_another_form_are_the_same_call_where_they_are_read_or_upcast_and_else_it_is_told() {
    let copied: Upcast = |mut old| {
        old["copy"] = "nobody".into();
        Ok(old)
    };
    let bare: Upcast = |old| Ok(serde_json::json!({ "test": old["test"] }));
    let typed: Upcast = |old| {
        let (name, age) = old["to"].as_str().and_then(|to| to.split_once(' ')).unwrap_or_default();
        let age: u32 = age.parse().unwrap_or_default();
        Ok(serde_json::json!({ "test": old["test"], "to": { "name": name, "age": age } }))
    };
    let worlds = [
        (
            "optional",
            resent("optional", entry(optional::send), optional::sender, None).await,
            true,
        ),
        (
            "added",
            resent("added", entry(added::send), added::sender, None).await,
            false,
        ),
        (
            "added, upcast",
            resent("added, upcast", entry(added::send), added::sender, Some(copied)).await,
            true,
        ),
        (
            "removed",
            resent("removed", entry(removed::send), removed::sender, None).await,
            false,
        ),
        (
            "removed, upcast",
            resent("removed, upcast", entry(removed::send), removed::sender, Some(bare)).await,
            true,
        ),
        (
            "retyped",
            resent("retyped", entry(retyped::send), retyped::sender, None).await,
            false,
        ),
        (
            "retyped, upcast",
            resent("retyped, upcast", entry(retyped::send), retyped::sender, Some(typed)).await,
            true,
        ),
    ];
    for (test, world, same) in worlds {
        let ran = SEEN.starting(&format!("{test}: new"));
        assert_eq!(ran, usize::from(!same), "{test}: what ran again");
        let told = reported(&world, "replay.diverged");
        assert_eq!(told.len(), usize::from(!same), "{test}: never in silence");
    }
}

// -- another form of its output --

mod outputs {
    use super::*;

    #[step(name = "measure")]
    pub(super) async fn before(_cx: &Cx) -> Result<Whom> {
        Ok(Whom {
            name: "ada".into(),
            age: 7,
        })
    }

    #[agent(name = "measurer_before")]
    pub(super) async fn measurer(cx: &Cx) -> Result<Whom> {
        Ok(before(cx).await?)
    }

    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    pub(super) struct Wider {
        pub(super) name: String,
        #[serde(default)]
        pub(super) town: String,
    }

    #[step(name = "measure")]
    pub(super) async fn wider(_cx: &Cx) -> Result<Wider> {
        Err("it runs again".into())
    }

    #[agent(name = "measurer_wider")]
    pub(super) async fn measurer_wider(cx: &Cx) -> Result<String> {
        Ok(wider(cx).await?.name)
    }

    #[step(name = "measure")]
    pub(super) async fn narrower(_cx: &Cx) -> Result<u64> {
        Err("it runs again".into())
    }

    #[agent(name = "measurer_narrower")]
    pub(super) async fn measurer_narrower(cx: &Cx) -> Result<u64> {
        Ok(narrower(cx).await.unwrap_or(0))
    }

    #[agent(name = "thread_before")]
    pub(super) async fn thread_before(cx: &Cx) -> Result<u32> {
        Ok(cx
            .spawn_thread("t", |_cx| async { Ok::<_, Error>(vec![1_u32]) })
            .await?
            .len()
            .try_into()?)
    }

    #[agent(name = "thread_after")]
    pub(super) async fn thread_after(cx: &Cx) -> Result<u32> {
        let given = cx
            .spawn_thread("t", |_cx| async { Ok::<_, Error>(String::new()) })
            .await;
        Ok(given.map_or(0, |_| 1))
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_that_the_present_type_reads_is_the_answer_and_another_holds_the_run_naming_both_types() {
    let whole = World::new();
    whole.run(outputs::measurer, ()).await.unwrap();
    assert_eq!(whole.crash().run(outputs::measurer_wider, ()).await.unwrap(), "ada");
    let held = whole.crash().run(outputs::measurer_narrower, ()).await.unwrap_err();
    assert_eq!(held.kind(), ErrorKind::ReplayDecode);
    for part in ["`measure`", "an object with `age`, `name`", "`u64`"] {
        assert!(held.message().contains(part), "{held}");
    }
    let whole = World::new();
    whole.run(outputs::thread_before, ()).await.unwrap();
    let held = whole.crash().run(outputs::thread_after, ()).await.unwrap_err();
    assert_eq!(held.kind(), ErrorKind::ReplayDecode, "of a thread too: {held}");
}
