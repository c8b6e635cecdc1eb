//! Time travel, and what a store's growth is made of.

use insta::assert_snapshot;

use crate::world::World;

#[test]
fn a_question_is_answered_as_of_a_place_or_a_moment() {
    let world = World::with_notes();
    let (now, then) = (
        world.ask(&["log", "--json"]),
        world.ask(&["log", "--json", "--at-pos", "2"]),
    );
    assert!(now.out.starts_with(&then.out) && now.out != then.out);
    assert_eq!(
        world.ask(&["log", "--json", "--at", "2026-09-21T16:13:20"]).out,
        then.out
    );
    let whole = world.ask(&["log", "--json", "--at", "0s"]);
    assert_eq!(whole.out, now.out);
    assert_snapshot!("past_topics", world.ask(&["topics", "--at-pos", "2"]).whole());
    let head = |args: &[&str]| world.ask(args).out;
    assert_ne!(head(&["head"]), head(&["head", "--at-pos", "2"]));
    assert!(head(&["verify", "--at-pos", "2"]).contains(head(&["head", "--at-pos", "2"]).trim()));
    assert_snapshot!("past_before_all", world.ask(&["topics", "--at", "2020-01-01"]).whole());
}

#[test]
fn every_question_of_the_past_has_the_answer_that_it_had_then() {
    let world = World::with_run();
    let last = world.ledger().store().last().unwrap().0.to_string();
    let questions: [&[&str]; 7] = [
        &["log", "--json"],
        &["topics", "--json"],
        &["board", "digest-1", "--json"],
        &["cost", "digest-1", "--json"],
        &["artifacts", "--json"],
        &["head", "--json"],
        &["waiting", "--json"],
    ];
    let ask = |at: &[&str]| questions.map(|question| world.ask(&[question, at].concat()).whole());
    let then = ask(&[]);
    world.ask(&["cancel", "digest-1"]);
    assert_ne!(ask(&[]), then);
    assert_eq!(ask(&["--at-pos", &last]), then);
}

#[test]
fn nobody_works_in_the_past() {
    let world = World::with_run();
    let last = world.ledger().store().last().unwrap().0.to_string();
    assert!(world.ask(&["runs"]).out.contains("interrupted"));
    let then = world.ask(&["runs", "--at-pos", &last]).out;
    assert!(then.contains("open") && !then.contains("interrupted"), "{then}");
}

#[test]
fn what_belongs_to_the_present_is_refused_in_the_past() {
    let world = World::with_run();
    let said = |args: &[&str]| world.ask(args).whole();
    assert_snapshot!("past_order", said(&["cancel", "digest-1", "--at-pos", "3"]));
    assert_snapshot!("past_follow", said(&["log", "--follow", "--at", "2h"]));
    assert_snapshot!(
        "past_check",
        said(&["check", "--since", world.ask(&["head"]).out.trim(), "--at-pos", "3"])
    );
    let head = world.ask(&["head"]).out;
    assert_eq!(
        world.ask(&["verify", "--since", head.trim(), "--at", "2h"]).exit.code(),
        2
    );
    assert_snapshot!("past_beyond", said(&["log", "--at-pos", "100000"]));
    assert_eq!(world.ask(&["log", "--at", "2h", "--at-pos", "3"]).exit.code(), 2);
}

#[test]
fn the_growth_of_a_store_is_told_by_topic_and_by_run() {
    let world = World::with_run();
    assert_snapshot!("topics_bytes", world.ask(&["topics", "--bytes"]).whole());
    assert_snapshot!("runs_bytes", world.ask(&["runs", "--bytes"]).whole());
    // What the columns say is what the records are.
    let topics = world.ask(&["topics", "--bytes", "--json"]).values().remove(0);
    let told: u64 = topics
        .as_array()
        .unwrap()
        .iter()
        .map(|topic| topic["bytes"].as_u64().unwrap())
        .sum();
    let mut reading = world.ledger().read(neuron::store::Select::All);
    let rows = reading.page().unwrap();
    assert_eq!(told, rows.iter().map(|row| row.record.len() as u64).sum::<u64>());
}
