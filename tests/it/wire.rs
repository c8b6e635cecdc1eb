//! WIRE.md says what the engine writes, and the engine writes nothing else.

use std::collections::{BTreeMap, BTreeSet};

use neuron::{
    Ledger, Pattern, TopicDeclared,
    ledger::{ArtifactSettled, ArtifactSuperseded, HeaderInjected},
    ownership::{LeaseClaimed, LeaseReleased},
    store::Select,
    vocabulary::{Message, build, clearance, consumer, control, dialogue, orchestration, step},
};
use schemars::JsonSchema;

const WIRE: &str = include_str!("../../neuron/docs/WIRE.md");

/// A row of the type catalogue.
struct Row {
    /// Where it may stand; `None` for any durable topic.
    topics: Option<Vec<Pattern>>,
    fields: BTreeSet<String>,
}

/// The type catalogue, as written.
fn catalogue() -> BTreeMap<String, Row> {
    let section = WIRE.split("## 3. Types").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let quoted = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let fields = quoted(cells[4])
            .into_iter()
            .map(|field| field.trim_end_matches('?').to_owned());
        let topics =
            (cells[1] != "any durable").then(|| quoted(cells[1]).iter().map(|it| Pattern::new(it).unwrap()).collect());
        let row = Row {
            topics,
            fields: fields.collect(),
        };
        (quoted(cells[0]).remove(0), row)
    })
    .collect()
}

#[test]
fn every_type_of_the_vocabulary_is_in_the_catalogue_and_no_other() {
    let others = [
        TopicDeclared::TYPE,
        HeaderInjected::TYPE,
        ArtifactSuperseded::TYPE,
        ArtifactSettled::TYPE,
        LeaseClaimed::TYPE,
        LeaseReleased::TYPE,
    ];
    let modules = [
        orchestration::TYPES,
        clearance::TYPES,
        consumer::TYPES,
        control::TYPES,
        dialogue::TYPES,
        step::TYPES,
        build::TYPES,
    ];
    let code: BTreeSet<String> = modules
        .into_iter()
        .flatten()
        .chain(&others)
        .map(|kind| (*kind).to_owned())
        .collect();
    let written: BTreeSet<String> = catalogue().into_keys().collect();
    assert_eq!(written, code);
}

/// The fields of a payload, from its schema.
fn fields<T: JsonSchema>() -> BTreeSet<String> {
    let schema = schemars::schema_for!(T).to_value();
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    properties
        .into_iter()
        .flat_map(|properties| properties.keys().cloned())
        .collect()
}

/// Each envelope of a store is of a type in the catalogue, and on a topic that it names.
pub(crate) fn assert_catalogued(ledger: &Ledger) {
    let catalogue = catalogue();
    let topics = ledger.read(Select::All).envelopes().map(|envelope| {
        let envelope = envelope.unwrap();
        (envelope.body.kind.to_string(), envelope.topic)
    });
    for (kind, topic) in topics.collect::<BTreeSet<_>>() {
        let row = catalogue
            .get(&kind)
            .unwrap_or_else(|| panic!("`{kind}` on {topic} is not in the catalogue"));
        let is_there = row
            .topics
            .as_ref()
            .is_none_or(|topics| topics.iter().any(|it| it.matches(&topic)));
        assert!(is_there, "the catalogue has no `{kind}` on {topic}");
    }
}

#[test]
fn the_catalogue_names_every_field_of_every_payload() {
    macro_rules! check { ($($message:ty),* $(,)?) => {$(
        let row = catalogue().remove(<$message>::TYPE).unwrap();
        assert_eq!(row.fields, fields::<$message>(), "{}", <$message>::TYPE);
    )*}}
    check![
        TopicDeclared,
        HeaderInjected,
        ArtifactSuperseded,
        ArtifactSettled,
        LeaseClaimed,
        LeaseReleased,
        orchestration::OrchestrationCreated,
        orchestration::OrchestrationDecomposed,
        orchestration::OrchestrationCompleted,
        orchestration::OrchestrationFailed,
        orchestration::OrchestrationCancelled,
        orchestration::PackageAssigned,
        orchestration::EdgeDeclared,
        clearance::PlanDeclared,
        clearance::PlanAmended,
        clearance::PlanDeviated,
        clearance::ClearanceGo,
        clearance::ClearanceObjected,
        clearance::ClearanceDenied,
        consumer::ConsumerConfigured,
        consumer::ConsumerAdvanced,
        consumer::ConsumerDelivered,
        consumer::ConsumerAcknowledged,
        consumer::ConsumerRetried,
        consumer::ConsumerParked,
        consumer::ConsumerRedriven,
        consumer::ConsumerReset,
        consumer::ConsumerDeleted,
        control::ControlPaused,
        control::ControlResumed,
        control::ControlCancelled,
        control::ControlResolved,
        control::ControlAnswered,
        control::ControlRequested,
        dialogue::QuestionAsked,
        dialogue::QuestionAnswered,
        dialogue::QuestionLapsed,
        dialogue::QuestionRefused,
        dialogue::QuestionWithdrawn,
        dialogue::UpdateAccepting,
        dialogue::UpdateTaken,
        dialogue::UpdateRefused,
        dialogue::UpdateReturned,
        dialogue::UpdateAnswered,
        step::AgentContinued,
        step::StepStarted,
        step::StepAttempted,
        step::StepCompleted,
        step::StepFailed,
        step::StepAbandoned,
        step::StepDoubted,
        step::StepArtifact,
        step::StepProgressed,
        step::TimerStarted,
        step::TimerFired,
        step::WaitStarted,
        step::WaitEnded,
        step::WaitAbandoned,
        step::EmitCompleted,
        step::EmitFailed,
        step::TransactionCommitted,
        step::TransactionFailed,
        step::ThreadStarted,
        step::ThreadCompleted,
        step::ThreadFailed,
        step::PackageCompleted,
        step::PackageFailed,
        step::ReplayDiverged,
        step::ReplayReordered,
        step::ReplayOnceChanged,
        step::ReplayUnrecorded,
        build::BuildPinned,
        build::BuildDrained,
        build::BuildRetired,
        build::BuildReleased,
    ];
}

/// A store that stands at one moment, with one envelope whose every field is given.
fn vectors() -> Vec<(String, String)> {
    use std::sync::Arc;

    use neuron::{
        Author, Contract, Digest, Draft, Json, ManualClock, Millis, Parent, RunId, SchemaUse, TokenId, Topic,
        pipeline::Pipeline, store::Memory,
    };

    let clock = Arc::new(ManualClock::at(Millis(1_790_000_000_000)));
    let ledger = Ledger::over(
        Arc::new(Memory::with(clock.clone(), None).unwrap()),
        clock,
        Pipeline::default(),
    )
    .unwrap();
    let (topic, ada) = (Topic::new("notes.today").unwrap(), Author::human("ada").unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let definition = Json::parse(r#"{"type":"object","title":"not hashed"}"#).unwrap();
    let schema = SchemaUse::inline(definition).unwrap();
    let reference = schema.reference();
    runtime.block_on(async {
        ledger
            .declare(&Pattern::exactly(&topic), Contract::Durable, &ada)
            .await
            .unwrap();
        let first = Draft::new(topic.clone(), ada.clone(), "note.taken")
            .unwrap()
            .payload(&1u64)
            .unwrap();
        ledger.publish(first).await.unwrap();
        let payload = Json::parse(r#"{"z":9007199254740993,"a":1e21,"text":"\u20ac\n"}"#).unwrap();
        let second = Draft::new(topic.clone(), ada, "note.taken")
            .unwrap()
            .json(payload, Some(schema));
        let second = second
            .header("mood", &"glad")
            .unwrap()
            .key("k")
            .unwrap()
            .parent(Parent::Seq(1));
        ledger.publish(second).await.unwrap();
    });
    let rows = ledger.read(Select::Topic(topic)).page().unwrap();
    let head = rows.iter().fold(Digest::ZERO, |head, row| head.chain(row.id));
    let call = Json::of(&("run-1", "fetch", BTreeMap::from([("url", "https://example.org/")]))).unwrap();
    let token = TokenId::mint("researcher", &RunId::new("run-1").unwrap(), "package#1", 1).unwrap();
    vec![
        ("record".into(), rows[1].record.to_string()),
        ("id".into(), rows[1].id.to_string()),
        ("head of the topic, two envelopes".into(), head.to_string()),
        (
            "schema `{\"type\":\"object\",\"title\":\"not hashed\"}`".into(),
            reference.to_string(),
        ),
        (
            "call, before `#`".into(),
            Digest::derive(neuron::CALL_CONTEXT, call.as_str().as_bytes()).to_string(),
        ),
        (
            "token of `researcher` on `package#1`, attempt 1, run `run-1`".into(),
            token.to_string(),
        ),
        ("plane 0".into(), neuron::Schema::plane0().reference().to_string()),
    ]
}

#[test]
fn the_test_vectors_come_out_as_written() {
    let vectors = vectors().into_iter();
    let missing: Vec<_> = vectors.filter(|(_, value)| !WIRE.contains(value)).collect();
    assert!(missing.is_empty(), "WIRE.md lacks {missing:#?}");
}
