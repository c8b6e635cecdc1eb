//! Orders that are given on the command line.

use insta::assert_snapshot;
use neuron::{Author, store::Select, token::Control, topic::catalog, vocabulary::Message as _};

use crate::{
    digest::{run, token},
    world::World,
};

#[test]
fn an_order_stands_on_the_log_with_who_gave_it_and_why() {
    let world = World::with_run();
    assert_snapshot!(
        "pause",
        world
            .ask(&["pause", "digest-1", "--because", "lunch", "--as", "ada"])
            .whole()
    );
    let control = catalog::run_control(&run());
    let orders = world.ledger().fold(&Control::new(control.clone()), None).unwrap().state;
    assert!(orders.paused);
    let envelope = world
        .ledger()
        .read(Select::Topic(control.clone()))
        .envelopes()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(envelope.author, Author::human("ada").unwrap());
    let paused = neuron::vocabulary::control::ControlPaused::read(&envelope)
        .unwrap()
        .unwrap();
    assert_eq!(paused.because.as_deref(), Some("lunch"));
    assert_eq!(world.ask(&["resume", "digest-1"]).exit.code(), 0);
    let orders = world.ledger().fold(&Control::new(control), None).unwrap().state;
    assert!(!orders.paused);
}

#[test]
fn a_single_package_takes_orders_by_its_token_even_before_it_has_said_a_word() {
    let world = World::with_run();
    for package in ["payer b", "merge d"] {
        let token = token(package);
        let said = world.ask(&["cancel", token.as_str(), "--json"]);
        assert_eq!(said.exit.code(), 0, "{}", said.err);
        assert_eq!(said.values()[0]["topic"], format!("agent.{token}.control"));
        let envelope = world
            .ledger()
            .read(Select::Topic(catalog::control(&token)))
            .envelopes()
            .next();
        assert_eq!(envelope.unwrap().unwrap().author, Author::cli());
    }
}

#[test]
fn nobody_is_ordered_who_is_not_there_or_has_ended() {
    let world = World::with_run().and_an_ended_run();
    let before = world.ledger().store().last().unwrap();
    assert_snapshot!("order_unknown", world.ask(&["pause", "digest-2"]).whole());
    assert_snapshot!("order_ended", world.ask(&["cancel", "digest-0"]).whole());
    assert_eq!(world.ask(&["pause", "no such name!"]).exit.code(), 1);
    assert_eq!(world.ledger().store().last().unwrap(), before);
}

#[test]
fn a_cancel_is_final() {
    let world = World::with_run();
    assert_eq!(
        world.ask(&["cancel", "digest-1", "--because", "too dear"]).exit.code(),
        0
    );
    assert_snapshot!("order_cancelled", world.ask(&["resume", "digest-1"]).whole());
}

#[test]
fn a_name_that_no_author_may_have_is_refused() {
    let world = World::with_run();
    let said = world.ask(&["pause", "digest-1", "--as", &"x".repeat(200)]);
    assert_eq!(said.exit.code(), 2);
    assert!(said.err.contains("1 to 128 bytes"), "{}", said.err);
}
