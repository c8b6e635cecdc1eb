//! The payloads of the engine's own types, as other programs read them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails is meant to panic"
)]

use std::collections::BTreeSet;

use neuron::{
    Json,
    vocabulary::{
        clearance, control,
        control::{ControlResolved, StepRuling},
        orchestration,
        orchestration::{Claims, OrchestrationCompleted},
    },
};

#[test]
fn an_output_of_null_is_not_an_absent_output() {
    let done = OrchestrationCompleted {
        output: Some(Json::null()),
    };
    let json = Json::of(&done).unwrap();
    assert_eq!(json.as_str(), r#"{"output":null}"#);
    assert_eq!(json.decode::<OrchestrationCompleted>().unwrap(), done);
    let elsewhere: OrchestrationCompleted = Json::parse("{}").unwrap().decode().unwrap();
    assert_eq!(elsewhere.output, None);
}

#[test]
fn a_ruling_reads_as_it_is_written_by_hand() {
    let json = Json::parse(r#"{"key":"k#1","ruling":"done","output":3}"#).unwrap();
    let ruling: ControlResolved = json.decode().unwrap();
    assert_eq!(ruling.ruling, StepRuling::Done);
    assert_eq!(
        Json::of(&ruling).unwrap(),
        Json::parse(r#"{"key":"k#1","output":3,"ruling":"done"}"#).unwrap()
    );
}

#[test]
fn no_two_payloads_share_a_type_name() {
    let all: Vec<&str> = [orchestration::TYPES, clearance::TYPES, control::TYPES].concat();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

#[test]
fn two_owners_or_an_owner_and_a_user_collide_and_two_users_do_not() {
    let owns = |name: &str| Claims {
        owns: [name.to_string()].into(),
        ..Claims::default()
    };
    let uses = |name: &str| Claims {
        uses: [(name.to_string(), 1)].into(),
        ..Claims::default()
    };
    assert_eq!(owns("gpu").conflict(&owns("gpu")), Some("gpu"));
    assert_eq!(owns("gpu").conflict(&uses("gpu")), Some("gpu"));
    assert_eq!(uses("gpu").conflict(&owns("gpu")), Some("gpu"));
    assert_eq!(uses("gpu").conflict(&uses("gpu")), None);
    assert_eq!(owns("gpu").conflict(&owns("net")), None);
}
