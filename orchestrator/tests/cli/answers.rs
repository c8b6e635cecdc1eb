//! What each command answers, to a person on a pipe, on a narrow and a wide terminal, and to a machine.

use insta::assert_snapshot;
use neuron::{Author, Digest, Envelope, store::Select};
use serde_json::{Value, json};

use crate::{
    digest,
    world::{World, ada, evidence, note, topic},
};

#[test]
fn the_log_is_told_line_by_line() {
    let world = World::with_notes();
    assert_snapshot!("log_pipe", world.ask(&["log"]).whole());
    assert_snapshot!("log_80", world.ask_on(80, &["log"]).whole());
    assert_snapshot!("log_200", world.ask_on(200, &["log"]).whole());
}

#[test]
fn the_log_of_a_run_fits_the_terminal() {
    let world = World::with_run();
    assert_snapshot!("log_run_80", world.ask_on(80, &["log", "agent.**"]).whole());
    assert_snapshot!("log_run_200", world.ask_on(200, &["log"]).whole());
    for columns in [40, 80, 120, 200] {
        let said = world.ask_on(columns, &["log"]);
        let wide = said
            .out
            .lines()
            .find(|line| line.chars().count() > usize::from(columns));
        assert_eq!(wide, None, "{columns} columns");
    }
}

#[test]
fn the_log_as_json_is_one_envelope_per_line() {
    let world = World::with_notes();
    let values = world.ask(&["log", "notes.**", "--json"]).values();
    let places: Vec<_> = values.iter().map(|it| (&it["pos"], &it["topic"], &it["seq"])).collect();
    let expected = [
        (json!(2), json!("notes.today"), json!(1)),
        (json!(3), json!("notes.today"), json!(2)),
        (json!(4), json!("notes.today"), json!(3)),
        (json!(5), json!("notes.replies"), json!(1)),
    ];
    assert_eq!(places, expected.each_ref().map(|(pos, topic, seq)| (pos, topic, seq)));
    let first = world
        .ledger()
        .read(Select::Topic(topic("notes.today")))
        .envelopes()
        .next()
        .unwrap()
        .unwrap();
    let mut told = values[0].clone();
    told.as_object_mut().unwrap().remove("pos");
    assert_eq!(told, serde_json::to_value(&first).unwrap());
}

#[test]
fn the_log_is_sorted_out_by_topic_type_and_time() {
    let world = World::with_run();
    let seqs = |args: &[&str]| -> Vec<u64> {
        let said = world.ask(&[&["log", "--json"], args].concat());
        assert_eq!((said.exit.code(), said.err.as_str()), (0, ""), "{args:?}");
        said.values().iter().map(|it| it["pos"].as_u64().unwrap()).collect()
    };
    let types = |args: &[&str]| -> Vec<String> {
        let said = world.ask(&[&["log", "--json"], args].concat());
        said.values()
            .iter()
            .map(|it| it["body"]["type"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = seqs(&[]);
    assert_eq!(all, (1..=u64::try_from(all.len()).unwrap()).collect::<Vec<_>>());
    assert_eq!(
        seqs(&["--reverse", "-n", "2"]),
        [all.len() as u64, all.len() as u64 - 1]
    );
    assert_eq!(seqs(&["-n", "3"]), [1, 2, 3]);
    assert_eq!(
        types(&["--type", "step.*", "--reverse", "-n", "2"]),
        ["step.doubted", "step.started"]
    );
    assert_eq!(
        types(&["--type", "clearance.go", "--type", "clearance.denied"]).len(),
        3
    );
    assert_eq!(
        types(&["orchestration.*.clearance", "--type", "clearance.denied"]),
        ["clearance.denied"]
    );
    let payer = format!("agent.{}.steps", digest::token("payer b"));
    assert_eq!(types(&[&payer, "--type", "step.started"]), ["step.started"]);
    // The store was made at 1790000000000; every batch takes a second.
    assert_eq!(seqs(&["--until", "1790000000000"]), [1, 2]);
    assert_eq!(
        seqs(&["--since", "2026-09-21T14:13:23Z"]),
        [all.len() as u64 - 1, all.len() as u64]
    );
    assert_eq!(
        seqs(&["--since", "2026-09-21", "--until", "2026-09-21T16:13:20"]),
        [1, 2]
    );
    assert_eq!(seqs(&["--since", "2m"]), all);
    assert_eq!(seqs(&["--since", "1 ms ago"]), [0; 0]);
}

#[test]
fn topics_are_listed_with_their_last_word() {
    let world = World::with_notes();
    assert_snapshot!("topics_pipe", world.ask(&["topics"]).whole());
    assert_snapshot!("topics_json", world.ask(&["topics", "--json"]).whole());
    let world = World::with_run();
    assert_snapshot!("topics_80", world.ask_on(80, &["topics"]).whole());
}

fn inject(world: &World, note: &Envelope, mood: &Value) {
    let author = ada();
    let injected = world.ledger().inject(note, "mood", mood, "it was sunny", &author);
    futures::executor::block_on(injected).unwrap();
}

#[test]
fn an_envelope_is_shown_whole() {
    let world = World::with_notes();
    let note = world
        .ledger()
        .read(Select::Topic(topic("notes.today")))
        .envelopes()
        .next()
        .unwrap()
        .unwrap();
    inject(&world, &note, &json!({"glad": true}));
    assert_snapshot!("show_pipe", world.ask(&["show", "notes.today@1"]).whole());
    assert_snapshot!("show_reply", world.ask(&["show", "notes.replies@1"]).whole());
    assert_snapshot!("show_json", world.ask(&["show", "notes.today@1", "--json"]).whole());
    let id = note.id().to_string();
    for name in [&id, &id[..6], &id[..10].to_uppercase()] {
        assert_eq!(
            world.ask(&["show", name]).whole(),
            world.ask(&["show", "notes.today@1"]).whole()
        );
    }
}

#[test]
fn causes_are_followed_both_ways() {
    let world = World::with_run();
    let steps = format!("agent.{}.steps@3", digest::token("researcher a"));
    assert_snapshot!("causes", world.ask(&["causes", &steps]).whole());
    let first = format!("agent.{}.steps@1", digest::token("researcher a"));
    assert_snapshot!("effects", world.ask(&["causes", &first, "--effects"]).whole());
    assert_snapshot!("effects_80", world.ask_on(80, &["causes", &first, "--effects"]).whole());
    let told = world.ask(&["causes", &first, "--effects", "--json"]).values();
    let depths: Vec<_> = told[0]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["depth"].as_u64().unwrap())
        .collect();
    assert_eq!(depths, [0, 1, 1]);
    let cut = world.ask(&["causes", &first, "--effects", "-n", "2"]);
    assert_eq!((cut.out.lines().count(), cut.exit.code()), (2, 0));
    assert!(cut.err.contains("there is more"), "{}", cut.err);
}

#[test]
fn injections_are_shown_when_asked_for() {
    let world = World::with_notes();
    let note = world
        .ledger()
        .read(Select::Topic(topic("notes.today")))
        .envelopes()
        .next()
        .unwrap()
        .unwrap();
    inject(&world, &note, &json!("glad"));
    assert_eq!(
        world.ask(&["causes", "notes.today@1", "--effects"]).out.lines().count(),
        2
    );
    let shown = world.ask(&["causes", "notes.today@1", "--effects", "--injections"]).out;
    assert_eq!(
        shown.lines().filter(|line| line.contains("header.injected")).count(),
        1,
        "{shown}"
    );
}

#[test]
fn schemas_are_listed_and_shown() {
    let world = World::with_notes();
    let listed = world.ask(&["schema"]).out;
    let line = listed.lines().find(|line| line.contains("Note")).unwrap();
    assert!(line.contains("Something that was noted."), "{line}");
    let hash = line.split_whitespace().next().unwrap();
    assert_snapshot!("schema", world.ask(&["schema", hash]).whole());
    let told = world.ask(&["schema", hash, "--json"]).values();
    assert!(told[0]["hash"].as_str().unwrap().starts_with(hash));
    assert_eq!(told[0]["definition"]["title"], "Note");
    let all = world.ask(&["schema", "--json"]).values();
    assert_eq!(
        all[0].as_array().unwrap().len(),
        world.ledger().store().schemas().unwrap().len()
    );
}

/// A store with a family of artifacts: one superseded twice, and one that nobody names.
fn with_artifacts() -> (World, [Digest; 3]) {
    let world = World::empty().opened();
    let stored = |text: &str| world.ledger().store_blob(text.as_bytes()).unwrap();
    let versions = ["first draft\n", "second draft\n", "another second draft\n"].map(stored);
    stored("nobody knows me");
    let named = |nth: usize| evidence("report.md", versions[nth], "report");
    world.append([
        note("a report").artifact(named(0)),
        note("and another").artifact(named(1)),
    ]);
    let author = Author::human("ada").unwrap();
    for next in [1, 2] {
        let superseded = world
            .ledger()
            .supersede(&versions[0], &versions[next], "the numbers were old", &author);
        futures::executor::block_on(superseded).unwrap();
    }
    (world, versions)
}

#[test]
fn artifacts_are_listed_with_who_names_them() {
    let (world, _) = with_artifacts();
    assert_snapshot!("artifacts_pipe", world.ask(&["artifacts"]).whole());
    assert_snapshot!("artifacts_80", world.ask_on(80, &["artifacts"]).whole());
    assert_snapshot!("artifacts_json", world.ask(&["artifacts", "--json"]).whole());
    assert_snapshot!("artifacts_none", World::with_notes().ask(&["artifacts"]).whole());
}

#[test]
fn the_content_of_an_artifact_comes_out_as_it_went_in() {
    let (world, versions) = with_artifacts();
    let whole = versions[1].to_string();
    for name in [&whole, &whole[..8]] {
        let said = world.ask(&["cat", name]);
        assert_eq!((said.out.as_str(), said.exit.code()), ("second draft\n", 0));
    }
    let large: Vec<u8> = (0..600_000_u32).flat_map(u32::to_le_bytes).collect();
    let hash = world.ledger().store_blob(large.as_slice()).unwrap().to_string();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let console = world.console(orchestrator::cli::Console::new(&mut out, &mut err));
    orchestrator::cli::run_on(["neuron", "cat", &hash], console);
    assert!(out == large && err.is_empty());
}

#[test]
fn the_lineage_of_an_artifact_tells_forks_and_settlements() {
    let (world, versions) = with_artifacts();
    let [first, second, third] = versions.map(|hash| hash.to_string());
    assert_snapshot!("lineage_fork", world.ask(&["lineage", &first]).whole());
    let author = ada();
    let settled = world.ledger().settle(&versions[2], "the other one was a slip", &author);
    futures::executor::block_on(settled).unwrap();
    assert_snapshot!("lineage_settled", world.ask(&["lineage", &second]).whole());
    assert_snapshot!("lineage_json", world.ask(&["lineage", &third, "--json"]).whole());
}
