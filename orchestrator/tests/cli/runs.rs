//! What is told of runs: their boards, what they burnt, what waits in them.

use std::{fs, sync::Arc};

use insta::assert_snapshot;
use neuron::{
    Json, RunId,
    agent::{LedgerJournal, Place},
    ownership::Ownership,
    schema::Upcasters,
    scope::{Burn, Journal as _, Record},
    topic::catalog,
    vocabulary::{Message as _, control::ControlResolved, step::StepCompleted},
};

use crate::{
    digest::{key, run, token},
    world::World,
};

#[test]
fn runs_are_listed_newest_first_with_how_they_stand() {
    let world = World::with_run().and_an_ended_run();
    assert_snapshot!("runs_pipe", world.ask(&["runs"]).whole());
    assert_snapshot!("runs_80", world.ask_on(80, &["runs"]).whole());
    assert_snapshot!("runs_json", world.ask(&["runs", "--json"]).whole());
    assert_eq!(world.ask(&["runs", "-n", "1"]).out.lines().count(), 2);
    assert_snapshot!("runs_none", World::with_notes().ask(&["runs"]).whole());
}

#[test]
fn a_run_is_running_only_while_the_process_that_owns_it_lives() {
    let world = World::with_run();
    let state = || world.ask(&["runs", "--json"]).values()[0][0]["owner"]["pid"].as_u64();
    assert_eq!(state(), None);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let owners = Ownership::join(world.ledger().clone(), neuron::limits::OWNER_TTL).unwrap();
    runtime.block_on(owners.claim("run:digest-1")).unwrap();
    assert_eq!(state(), Some(u64::from(std::process::id())));
    assert!(world.ask(&["board", "digest-1"]).out.contains("running"));
    // A slot whose process is gone shows nothing that runs.
    let mut folder = world.path().into_os_string();
    folder.push(".owners");
    for slot in fs::read_dir(folder).unwrap() {
        fs::write(slot.unwrap().path(), format!("{:010} {:020}\n", i32::MAX, 1)).unwrap();
    }
    assert_eq!(state(), None);
}

#[test]
fn the_state_of_a_run_follows_its_orders() {
    let world = World::with_run();
    let state = || world.ask(&["runs", "--json"]).values()[0][0]["state"].clone();
    assert_eq!(state(), "open");
    world.ask(&["pause", "digest-1"]);
    assert_eq!(state(), "paused");
    world.ask(&["resume", "digest-1"]);
    assert_eq!(state(), "open");
    world.ask(&["cancel", "digest-1"]);
    assert!(world.ask(&["runs"]).out.contains("cancelling"));
}

#[test]
fn the_board_tells_every_package_and_every_ruling() {
    let world = World::with_run();
    assert_snapshot!("board_pipe", world.ask(&["board", "digest-1"]).whole());
    assert_snapshot!("board_80", world.ask_on(80, &["board", "digest-1"]).whole());
    assert_snapshot!("board_200", world.ask_on(200, &["board", "digest-1"]).whole());
    let told = world.ask(&["board", "digest-1", "--json"]).values();
    let phases: Vec<_> = told[0]["board"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["phase"].clone())
        .collect();
    assert_eq!(phases, ["done", "running", "denied", "waiting"]);
    assert_eq!(told[0]["board"][1]["waitsFor"][0]["why"], "clearance");
    assert_eq!(told[0]["board"][1]["token"], token("payer b").as_str());
    let ended = World::with_run().and_an_ended_run().ask(&["board", "digest-0"]);
    assert_snapshot!("board_empty", ended.whole());
    assert_snapshot!("board_unknown", world.ask(&["board", "digest-9"]).whole());
}

/// A step that has ended, as the engine itself writes it down, with what the meter says.
fn metered(world: &World, burn: Burn) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let place = Place {
        topic: catalog::steps(&token("researcher a")),
        author: (&token("researcher a")).into(),
        owner: ("run:digest-1".into(), 0),
        control: Vec::new(),
        given: catalog::control(&token("researcher a")),
        cause: None,
        progress: None,
    };
    let journal = LedgerJournal::new(world.ledger().clone(), place, Arc::new(Upcasters::default()));
    let message = StepCompleted {
        scope: key("researcher a"),
        key: key("summarise a"),
        name: "summarise".into(),
        attempt: 1,
        output: Some(Json::null()),
        output_schema: None,
        resolved: None,
    };
    let mut record = Record::of(&key("researcher a").into(), &key("summarise a").into(), &message).unwrap();
    record.burn = Some(burn);
    runtime.block_on(journal.append(record, Box::new(|_| {}))).unwrap();
}

#[test]
fn the_cost_of_a_run_is_told_by_package_and_by_step() {
    let world = World::with_run();
    metered(
        &world,
        Burn {
            tokens_in: 12_345,
            tokens_out: 678,
            tool_calls: 2,
            duration_ms: 61_000,
        },
    );
    assert_snapshot!("cost_pipe", world.ask(&["cost", "digest-1"]).whole());
    assert_snapshot!("cost_80", world.ask_on(80, &["cost", "digest-1"]).whole());
    let told = world.ask(&["cost", "digest-1", "--json"]).values();
    assert_eq!(told[0]["total"]["tokensIn"], 12_345);
    assert_eq!(told[0]["packages"][0]["burn"]["tokensOut"], 678);
    assert_eq!(told[0]["agents"]["researcher"]["toolCalls"], 2);
    assert_eq!(told[0]["steps"]["summarise"]["durationMs"], 61_000);
    let empty = World::with_run().and_an_ended_run().ask(&["cost", "digest-0"]);
    assert_snapshot!("cost_empty", empty.whole());
}

#[test]
fn what_waits_is_told_until_it_is_ruled_on() {
    let world = World::with_run();
    assert_snapshot!("waiting_none", World::with_notes().ask(&["waiting"]).whole());
    assert_snapshot!("waiting_pipe", world.ask(&["waiting"]).whole());
    world.ask(&["pause", "digest-1", "--because", "the bank is closed"]);
    assert_snapshot!("waiting_80", world.ask_on(80, &["waiting"]).whole());
    let told = world.ask(&["waiting", "--json"]).values();
    assert_eq!(told[0][0]["key"], key("pay b"));
    assert_eq!(told[0][0]["run"], "digest-1");
    assert_eq!(told[0][1]["what"], "paused");
    let step = &key("pay b")[..8];
    let ruled = world.ask(&[
        "resolve",
        step,
        "done",
        "--output",
        r#"{"receipt": 7}"#,
        "--as",
        "ada",
        "--because",
        "the bank says so",
    ]);
    assert_snapshot!("resolve", ruled.whole());
    let envelope = world
        .ledger()
        .read(neuron::store::Select::Topic(catalog::control(&token("payer b"))))
        .envelopes()
        .next();
    let resolved = ControlResolved::read(&envelope.unwrap().unwrap()).unwrap().unwrap();
    assert_eq!(resolved.key, key("pay b"));
    assert_eq!(resolved.output.unwrap().as_str(), r#"{"receipt":7}"#);
    assert_snapshot!("waiting_ruled", world.ask(&["waiting"]).whole());
}

/// The command of this name that `waiting` tells, as it would be pasted, with `given` for what it leaves open.
fn pasted(world: &World, name: &str, given: (&str, &str)) -> Vec<String> {
    let said = world.ask(&["waiting"]).whole();
    let told = said.split('`').find(|text| text.starts_with(name));
    let told = told.unwrap_or_else(|| panic!("no `{name}` in {said}"));
    let words = told.replace(given.0, given.1);
    words.split(' ').skip(1).map(str::to_owned).collect()
}

#[test]
fn what_is_told_to_do_about_what_waits_is_done_by_pasting_it() {
    let world = World::with_run();
    world.ask(&["pause", "digest-1"]);
    world.ask(&["pause", token("researcher a").as_str()]);
    let paste = |name, given| {
        let words = pasted(&world, name, given);
        let done = world.ask(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(done.exit.code(), 0, "{words:?}: {}", done.err);
    };
    paste("neuron resolve", ("JSON", "7"));
    paste("neuron resume", ("", ""));
    paste("neuron resume", ("", ""));
    let told = world.ask(&["waiting", "--json"]).values();
    let waits: Vec<_> = told[0].as_array().unwrap().iter().map(|item| &item["what"]).collect();
    assert_eq!(waits, ["inDoubt"], "its process has not taken the ruling up");
    assert!(!world.ask(&["waiting"]).whole().contains("neuron resume"));
}

#[test]
fn nothing_waits_in_a_run_that_has_ended() {
    let world = World::with_run();
    world.ask(&["pause", "digest-1"]);
    world.append([crate::digest::failed(&run(), "the bank never answered")]);
    assert_eq!(world.ask(&["waiting", "--json"]).out, "[]\n");
    assert_eq!(
        world.ask(&["runs", "--json"]).values()[0][0]["error"],
        "the bank never answered"
    );
    assert!(
        world
            .ask(&["board", "digest-1"])
            .out
            .contains("it failed: the bank never answered")
    );
}

#[test]
fn a_step_that_went_on_waits_no_longer() {
    let world = World::with_run();
    world.append([crate::digest::completed("payer b", "pay b")]);
    assert_eq!(world.ask(&["waiting", "--json"]).out, "[]\n");
}

#[test]
fn a_ruling_says_what_it_needs_and_finds_its_step() {
    let world = World::with_run();
    let whole = key("pay b");
    let before = world.ledger().store().last().unwrap();
    assert_snapshot!(
        "resolve_output_missing",
        world.ask(&["resolve", &whole, "done"]).whole()
    );
    assert_eq!(world.ask(&["resolve", &whole, "redo", "--output", "1"]).exit.code(), 2);
    assert_eq!(world.ask(&["resolve", &whole, "done", "--output", "{"]).exit.code(), 2);
    assert_eq!(
        world
            .ask(&["resolve", &whole, "done", "--output", r#"{"a":1,"a":2}"#])
            .exit
            .code(),
        2
    );
    assert_snapshot!("resolve_unknown", world.ask(&["resolve", "ffff", "redo"]).whole());
    assert_eq!(
        world
            .ask(&["resolve", &format!("{}#2", &whole[..6]), "redo"])
            .exit
            .code(),
        1
    );
    assert_eq!(world.ledger().store().last().unwrap(), before);
    assert_eq!(
        world
            .ask(&["resolve", &format!("{}#1", &whole[..6]), "redo"])
            .exit
            .code(),
        0
    );
    assert_eq!(RunId::new("digest-1").unwrap(), run());
}

#[test]
fn a_beginning_that_several_steps_share_is_told_with_all_of_them() {
    let world = World::with_run();
    let first = key("pay b").chars().next().unwrap();
    let other = (0..10_000)
        .map(|nth| format!("wire {nth}"))
        .find(|step| key(step).starts_with(first))
        .unwrap();
    world.append([crate::digest::doubted("payer b", &other)]);
    let said = world.ask(&["resolve", &first.to_string(), "redo"]);
    assert_eq!(said.exit.code(), 2);
    assert!(
        said.err.contains(&key("pay b")) && said.err.contains(&key(&other)),
        "{}",
        said.err
    );
}

#[test]
fn the_graph_of_a_run_is_drawn_for_a_terminal_and_as_documents() {
    let world = World::with_run();
    assert_snapshot!("graph_pipe", world.ask(&["graph", "digest-1"]).whole());
    assert_snapshot!("graph_80", world.ask_on(80, &["graph", "digest-1"]).whole());
    for format in ["mermaid", "svg", "dot"] {
        let drawn = world.ask(&["graph", "digest-1", "--format", format]);
        assert_snapshot!(format!("graph_{format}"), drawn.whole());
    }
    let told = world.ask(&["graph", "digest-1", "--json"]).values();
    assert_eq!(told[0]["packages"][1]["token"], token("payer b").as_str());
    assert!(world.ask(&["graph", "digest-9"]).whole().contains("digest-9"));
}
