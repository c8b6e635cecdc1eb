//! Builds: a run is begun and taken up by the builds that orders on the log leave it to, and by no other.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::sync::Arc;

use neuron::{
    Author, Ledger, SystemClock,
    pipeline::Pipeline,
    store::{Memory, Select},
};
use orchestrator::{
    builds::{BuildOrder, order_build},
    cli::{self, Console, Exit},
    neuron::{self},
    prelude::*,
};

#[step]
async fn count(_cx: &Cx, word: String) -> Result<usize> {
    Ok(word.len())
}

#[agent]
async fn reader(cx: &Cx, word: String) -> Result<usize> {
    Ok(count(cx, word).await?)
}

#[orchestrator]
async fn letters(board: &Board, word: String) -> Result<usize> {
    Ok(board.assign(reader, word).await?)
}

async fn process(build: &str, store: &Memory) -> Neuron {
    let ledger = Ledger::over(Arc::new(store.clone()), Arc::new(SystemClock), Pipeline::default());
    Neuron::builder().build(build).over(ledger.unwrap()).await.unwrap()
}

async fn order(neuron: &Neuron, build: &str, order: BuildOrder) {
    let why = Some("a new one is out".to_owned());
    order_build(neuron.ledger(), build, order, why, Author::human("ada").unwrap())
        .await
        .unwrap();
}

/// What a process of `v1` left when it died: one open run.
async fn left() -> Memory {
    let store = Memory::new().unwrap();
    let neuron = process("v1", &store).await;
    neuron.run(letters, "word".into()).id("r").await.unwrap();
    let all = neuron.ledger().read(Select::All).envelopes();
    let assigned = all
        .map(Result::unwrap)
        .find(|envelope| envelope.body.kind == *"package.assigned");
    let pos = assigned.unwrap().pos;
    store.cut(usize::try_from(pos).unwrap()).unwrap()
}

fn denied<T: std::fmt::Debug>(outcome: Result<T, Error>, parts: [&str; 2]) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    for part in ["human:ada", "a new one is out", "neuron builds release"]
        .iter()
        .chain(&parts)
    {
        assert!(error.message().contains(part), "{part}: {error}");
    }
}

fn r() -> Vec<RunId> {
    vec![RunId::new("r").unwrap()]
}

#[tokio::test]
async fn the_open_runs_of_a_pinned_build_are_taken_up_by_the_same_build_only() {
    let store = left().await;
    let other = process("v2", &store).await;
    order(&other, "v1", BuildOrder::Pin).await;
    assert_eq!(other.recover().await.unwrap().refused, r());
    denied(
        other.run(letters, "word".into()).id("r").await,
        ["`v1` is pinned", "not taken up by `v2`"],
    );
    assert_eq!(
        other.run(letters, "new".into()).id("s").await.unwrap(),
        3,
        "its own it begins"
    );
    let same = process("v1", &store).await;
    assert_eq!(same.recover().await.unwrap().here, r());
    assert_eq!(same.run(letters, "word".into()).id("r").await.unwrap(), 4);
    assert_eq!(
        other.run(letters, "word".into()).id("r").await.unwrap(),
        4,
        "what has ended anybody reads"
    );
}

#[tokio::test]
async fn a_pinned_build_that_is_released_is_taken_up_by_any() {
    let store = left().await;
    let other = process("v2", &store).await;
    order(&other, "v1", BuildOrder::Pin).await;
    order(&other, "v1", BuildOrder::Release).await;
    assert_eq!(other.run(letters, "word".into()).id("r").await.unwrap(), 4);
}

#[tokio::test]
async fn a_drained_build_ends_its_own_runs_and_begins_none() {
    let store = left().await;
    let old = process("v1", &store).await;
    order(&old, "v1", BuildOrder::Drain).await;
    denied(
        old.run(letters, "new".into()).id("s").await,
        ["`v1` is drained", "begins a run"],
    );
    assert_eq!(old.recover().await.unwrap().here, r());
    assert_eq!(old.run(letters, "word".into()).id("r").await.unwrap(), 4);
    // A refused run leaves nothing behind: another build begins it.
    let new = process("v2", &store).await;
    assert_eq!(new.run(letters, "new".into()).id("s").await.unwrap(), 3);
    let store = left().await;
    let other = process("v2", &store).await;
    order(&other, "v2", BuildOrder::Drain).await;
    assert_eq!(other.recover().await.unwrap().refused, r(), "those of others it leaves");
}

#[tokio::test]
async fn a_retired_build_begins_and_takes_up_nothing_and_does_not_serve() {
    let store = left().await;
    let old = process("v1", &store).await;
    order(&old, "v1", BuildOrder::Retire).await;
    denied(
        old.run(letters, "new".into()).id("s").await,
        ["`v1` is retired", "begins a run"],
    );
    denied(
        old.run(letters, "word".into()).id("r").await,
        ["`v1` is retired", "takes up a run"],
    );
    assert_eq!(old.recover().await.unwrap().refused, r());
    denied(old.serve().await, ["`v1` is retired", "takes up a run"]);
    let new = process("v2", &store).await;
    assert_eq!(new.run(letters, "word".into()).id("r").await.unwrap(), 4);
    order(&old, "v1", BuildOrder::Release).await;
    assert_eq!(old.run(letters, "new".into()).id("s").await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_lists_builds_and_gives_orders_about_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let ask = |args: &[&str]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let console = Console::new(&mut out, &mut err);
        let store = ["--store", path.to_str().unwrap()];
        let exit = tokio::task::block_in_place(|| cli::run_on(["neuron"].iter().chain(args).chain(&store), console));
        (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    };
    let neuron = Neuron::builder().build("shop 1.2").open(&path).await.unwrap();
    neuron.run(letters, "word".into()).id("r").await.unwrap();
    let (exit, out, _) = ask(&["builds", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (exit, &told[0]["build"], &told[0]["runs"]),
        (Exit::Success, &"shop 1.2".into(), &1.into())
    );
    assert_eq!((&told[0]["open"], &told[0]["first"]), (&0.into(), &told[0]["last"]));
    let (exit, out, err) = ask(&[
        "builds",
        "drain",
        "shop 1.2",
        "--because",
        "a new one is out",
        "--as",
        "ada",
    ]);
    assert_eq!((exit, &*err), (Exit::Success, ""), "{out}");
    assert!(out.contains("build.drained is on the log: $builds@1"), "{out}");
    let (_, out, _) = ask(&["builds"]);
    assert!(out.contains("shop 1.2") && out.contains("drained"), "{out}");
    denied(
        neuron.run(letters, "new".into()).id("s").await,
        ["`shop 1.2` is drained", "begins a run"],
    );
    let (exit, ..) = ask(&["builds", "release", "shop 1.2"]);
    assert_eq!(exit, Exit::Success);
    assert_eq!(neuron.run(letters, "new".into()).id("s").await.unwrap(), 3);
    let (exit, _, err) = ask(&["builds", "release", "shop 1.2"]);
    assert_eq!(exit, Exit::Negative);
    assert!(err.contains("no order holds"), "{err}");
    let (_, _, err) = ask(&["builds", "pin", "nobody"]);
    assert!(err.contains("no run of this store was begun by that build"), "{err}");
}
