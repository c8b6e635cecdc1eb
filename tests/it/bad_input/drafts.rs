//! Drafts, values and names, as a program or a file gives them.

use std::sync::Arc;

use neuron::{
    Append, Artifact, Author, Cause, Contract, Digest, Draft, EnvelopeRef, Error, ErrorKind, Expectation, Json, Ledger,
    Parent, Pattern, Schema, SchemaUse, SystemClock, Topic,
    pipeline::Pipeline,
    schema::BodyContract,
    store::{Durability, Memory, Options, Row, Select, Sqlite, Store, verify::verify},
};
use neuron_workspace::scratch;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// A ledger with the topics `notes.*` (durable) and `air.*` (ephemeral), two notes and one lease on it.
struct World {
    ledger: Ledger,
}

impl World {
    fn over(store: Arc<dyn Store>) -> Self {
        let ledger = Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap();
        let world = Self { ledger };
        world.declare("notes.*", Contract::Durable).unwrap();
        world.declare("air.*", Contract::EPHEMERAL).unwrap();
        world.append([note().key("k").unwrap(), note()]).unwrap();
        world
    }

    fn declare(&self, family: &str, contract: Contract) -> Result<(), Error> {
        let pattern = Pattern::new(family)?;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.ledger.declare(&pattern, contract, &Author::cli()))
    }

    fn append(&self, drafts: impl IntoIterator<Item = Draft>) -> Result<(), Error> {
        self.ledger.append_blocking(Append::of(drafts)).map(drop)
    }

    fn expect(&self, expectation: Expectation) -> Result<(), Error> {
        let append = Append::of([note()]).expect(expectation);
        self.ledger.append_blocking(append).map(drop)
    }

    fn rows(&self) -> Vec<Row> {
        self.ledger.read(Select::All).page().unwrap()
    }
}

fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

fn on(name: &str) -> Draft {
    Draft::new(topic(name), Author::cli(), "note.taken").unwrap()
}

fn note() -> Draft {
    on("notes.a")
}

fn outside(text: &str) -> Result<Draft, Error> {
    Json::parse(text).map(|json| note().json(json, None))
}

fn inline(definition: &serde_json::Value) -> Result<SchemaUse, Error> {
    SchemaUse::inline(Json::of(definition)?)
}

#[derive(Serialize, JsonSchema)]
struct Bill {
    lines: Vec<Line>,
}

#[derive(Serialize, JsonSchema)]
struct Line {
    cost: f64,
}

fn bill(cost: f64) -> Bill {
    Bill {
        lines: vec![Line { cost: 1.0 }, Line { cost }],
    }
}

#[derive(Serialize, JsonSchema)]
struct Count {
    // Its schema says less than its type: what the type lets through, the schema catches.
    #[schemars(with = "u8")]
    count: String,
}

#[derive(Serialize, JsonSchema)]
struct Wide {
    atoms: u128,
}

/// What is done, what it fails as, and what the message says of what, where and what to do.
type Case = (fn(&World) -> Result<(), Error>, ErrorKind, &'static [&'static str]);

use ErrorKind::{
    Conflict, Contract as Contracted, Fenced, IdempotencyConflict, Malformed, NotFound, Reserved, TooLarge,
};
use ErrorKind::{Schema as Schematic, UnknownTopic};

const NAMES: &[Case] = &[
    (|_| Topic::new("").map(drop), Malformed, &["topic", "is empty"]),
    (
        |_| Topic::new("notes..a").map(drop),
        Malformed,
        &["topic `notes..a`", "empty segment"],
    ),
    (
        |_| Topic::new("notes.\u{7}").map(drop),
        Malformed,
        &["topic `notes.\\u{7}`", "control character"],
    ),
    (
        |_| Topic::new("notes.*").map(drop),
        Malformed,
        &["topic `notes.*`", "wildcard", "only a pattern may"],
    ),
    (
        |_| Pattern::new("notes.**.a").map(drop),
        Malformed,
        &["pattern `notes.**.a`", "`**`", "only at the end"],
    ),
    (
        |_| Draft::new(topic("notes.a"), Author::cli(), "").map(drop),
        Malformed,
        &["type ``", "1 to 128 bytes"],
    ),
    (
        |_| Author::human("a\nb").map(drop),
        Malformed,
        &["author `human:a\\nb`", "without control characters"],
    ),
    (
        |_| neuron::RunId::new("a.b").map(drop),
        Malformed,
        &["run id `a.b`", "A-Z a-z 0-9 _ -"],
    ),
    (
        |_| note().key("").map(drop),
        Malformed,
        &["key has 0 bytes", "1 to 256"],
    ),
    (
        |_| note().header("", &1).map(drop),
        Malformed,
        &["header key has 0 bytes", "1 to 256"],
    ),
    (
        |world| world.ledger.store().with_id("XYZ").map(drop),
        Malformed,
        &["XYZ", "hex digits"],
    ),
];

const VALUES: &[Case] = &[
    (
        |_| note().payload(&bill(f64::NAN)).map(drop),
        Malformed,
        &["`$.lines[1].cost`", "NaN is no JSON number"],
    ),
    (
        |_| note().payload(&bill(f64::NEG_INFINITY)).map(drop),
        Malformed,
        &["`$.lines[1].cost`", "-inf is no JSON number"],
    ),
    (
        |_| note().header("cost", &f64::NAN).map(drop),
        Malformed,
        &["header `cost`", "NaN"],
    ),
    (
        |_| note().payload(&Wide { atoms: u128::MAX }).map(drop),
        Malformed,
        &["`$.atoms`", "i64", "u64"],
    ),
    (
        |_| outside(r#"{"atoms": 340282366920938463463374607431768211455}"#).map(drop),
        Malformed,
        &[
            "`$.atoms`",
            "outside i64 and u64",
            "write it as a string",
            "line 1, column 11",
        ],
    ),
    (
        |_| outside("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}").map(drop),
        Malformed,
        &["`$.b.c`", "stands twice", "line 2, column 16"],
    ),
    (
        |_| outside(r#"{"a": 1"#).map(drop),
        Malformed,
        &["line 1, column 8", "expected"],
    ),
    (
        |_| outside(r#""\ud800""#).map(drop),
        Malformed,
        &["line 1", "surrogate"],
    ),
    (
        |_| outside(&"[".repeat(200)).map(drop),
        TooLarge,
        &["nested deeper than 127 levels"],
    ),
    (
        |world| world.append([note(), note().json(Json::of(&"x".repeat(1 << 20))?, None)]),
        TooLarge,
        &["`note.taken` for topic notes.a", "1048576", "use an artifact"],
    ),
];

const PLACES: &[Case] = &[
    (|world| world.append([]), Malformed, &["without drafts", "at least one"]),
    (
        |world| world.append([note(), note().parent(Parent::Seq(9))]),
        Malformed,
        &["draft `note.taken` for topic notes.a", "parent seq 9", "its own is 4"],
    ),
    (
        |world| world.append([on("notes.b"), note().parent(Parent::Index(0))]),
        Malformed,
        &[
            "for topic notes.a",
            "parent, draft 0",
            "no earlier draft for the same topic",
        ],
    ),
    (
        |world| world.append([note().cause(Cause::Index(0))]),
        Malformed,
        &["cause, draft 0", "no earlier draft"],
    ),
    (
        |world| {
            let (topic, id) = (topic("notes.a"), Digest::ZERO);
            world.append([note().cause(Cause::Envelope(EnvelopeRef { topic, seq: 1, id }))])
        },
        Malformed,
        &["cause notes.a seq 1 has id", "not 0000"],
    ),
    (
        |world| {
            let (topic, id) = (topic("notes.z"), Digest::ZERO);
            world.append([note().cause(Cause::Envelope(EnvelopeRef { topic, seq: 3, id }))])
        },
        Malformed,
        &["cause notes.z seq 3", "not in this store"],
    ),
    (
        |_| note().header("key", &"x").map(drop),
        Reserved,
        &["header `key`", "engine alone", "`Draft::key`"],
    ),
    (
        |_| note().header("cost-usd", &1).map(drop),
        Reserved,
        &["header `cost-usd`", "choose another key"],
    ),
    (
        |world| world.append([note(), on("mail.a")]),
        UnknownTopic,
        &["topic mail.a is not declared", "declare it"],
    ),
    (
        |world| world.append([note(), on("$leases")]),
        Contracted,
        &["topic $leases belongs to the engine"],
    ),
    (
        |world| world.append([note(), on("air.wind")]),
        Contracted,
        &["topic air.wind is ephemeral", "publish to it on the bus"],
    ),
    (
        |world| world.ledger.bus().publish(note()).map(drop),
        Contracted,
        &["topic notes.a is durable", "append to it through the ledger"],
    ),
    (
        |world| world.ledger.bus().publish(on("mail.a")).map(drop),
        UnknownTopic,
        &["topic mail.a is not declared"],
    ),
    (
        |world| world.declare("notes.*", Contract::RETAINED),
        Contracted,
        &["topic notes.*", "Durable", "fixed at creation"],
    ),
    (
        |world| world.declare("air.wind", Contract::Durable),
        Contracted,
        &["topic air.wind", "Ephemeral", "fixed at creation"],
    ),
    (
        |world| world.declare("$mine", Contract::Durable),
        Contracted,
        &["$mine", "choose a name without `$`"],
    ),
];

const EXPECTATIONS: &[Case] = &[
    (
        |world| world.expect(Expectation::Head(topic("notes.a"), 7)),
        Conflict,
        &["head of notes.a to be 7, found 2", "read again"],
    ),
    (
        |world| world.expect(Expectation::Key(topic("notes.a"), "k".into(), None)),
        Conflict,
        &["key `k` of notes.a to be absent, found 1", "read again"],
    ),
    (
        |world| world.expect(Expectation::Key(topic("notes.a"), "l".into(), Some(1))),
        Conflict,
        &["key `l` of notes.a to be 1, found absent"],
    ),
    (
        |world| world.expect(Expectation::Epoch("run:r".into(), 3)),
        Conflict,
        &["epoch of `run:r` to be 3, found 0"],
    ),
    (
        |world| {
            let append = Append::of([note()]).owner("run:r", 4);
            world.ledger.append_blocking(append).map(drop)
        },
        Fenced,
        &["`run:r` is owned under epoch 0", "epoch 4 may no longer write"],
    ),
    (
        |world| {
            let append = |text: &str| Append::of([note().json(Json::of(text)?, None)]).idempotency_key("once");
            world.ledger.append_blocking(append("first")?)?;
            world.ledger.append_blocking(append("second")?).map(drop)
        },
        IdempotencyConflict,
        &[
            "idempotency key `once`",
            "first written as notes.a seq",
            "use another key",
        ],
    ),
];

const SCHEMAS: &[Case] = &[
    (
        |world| world.append([note().payload(&Count { count: "three".into() })?]),
        Schematic,
        &["the payload breaks its schema", "`$.count`"],
    ),
    (
        |world| world.append([note().typed_header("count", &Count { count: "x".into() })?]),
        Schematic,
        &["header `count` breaks its schema", "`$.count`"],
    ),
    (
        |world| world.append([note().json(Json::of(&7)?, Some(inline(&json!({"type": "string"}))?))]),
        Schematic,
        &["the payload breaks its schema", "`$`", "7"],
    ),
    (
        |world| {
            let contract = BodyContract::new(["report"]).schema()?;
            world.append([note().contract(SchemaUse::Inline(Arc::new(contract)))])
        },
        Schematic,
        &["the body breaks its contract", "report"],
    ),
    (
        |world| {
            let unknown = Schema::new(Json::of(&json!({"type": "null"}))?)?.reference();
            world.append([note().json(Json::null(), Some(SchemaUse::Ref(unknown)))])
        },
        Schematic,
        &["is not registered", "give its definition"],
    ),
    (
        |_| inline(&json!({"type": "strnig"})).map(drop),
        Schematic,
        &["not a JSON Schema", "`$.type`", "strnig"],
    ),
    (
        |_| inline(&json!({"$id": "https://example.org/a"})).map(drop),
        Schematic,
        &["$id"],
    ),
    (
        |world| {
            let schema = json!({"properties": {"all": {"items": {"x-neuron-ref": "run"}}}});
            world.append([note().json(Json::of(&json!({}))?, Some(inline(&schema)?))])
        },
        Schematic,
        &[
            "`$.all[*]` is a reference (run) inside an array",
            "append one envelope for each edge",
        ],
    ),
    (
        |_| inline(&json!({"title": "x".repeat(2_000)})).map(drop),
        TooLarge,
        &["1024", "register it and use its hash"],
    ),
];

const ARTIFACTS: &[Case] = &[
    (
        |world| world.ledger.blob(&Digest::ZERO).map(drop),
        NotFound,
        &["artifact 0000", "not in this store"],
    ),
    (
        |world| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let here = world.ledger.store_blob(&b"here"[..])?;
            let author = Author::cli();
            let supersede = world.ledger.supersede(&here, &Digest::ZERO, "why", &author);
            runtime.block_on(supersede).map(drop)
        },
        NotFound,
        &["artifact 0000", "store it first"],
    ),
    (
        |world| {
            world.append([note()
                .artifact(Artifact {
                    name: "r".into(),
                    hash: None,
                    kind: None,
                })
                .contract(SchemaUse::Inline(Arc::new(BodyContract::new(["report"]).schema()?)))])
        },
        Schematic,
        &["the body breaks its contract"],
    ),
];

/// What is not as it should be about one case.
fn faults(world: &World, (reach, kind, says): &Case) -> Vec<String> {
    let before = world.rows();
    let Err(error) = reach(world) else {
        return vec![format!("{says:?}: was taken")];
    };
    let told = format!("{error} ({:?})", error.kind());
    let missing = says.iter().filter(|part| !told.contains(**part));
    let mut faults: Vec<String> = missing.map(|part| format!("`{part}` is not in: {told}")).collect();
    if error.kind() != *kind {
        faults.push(format!("wanted {kind:?}: {told}"));
    }
    // The case that repeats a batch has written it the first time.
    let written = before.len() + usize::from(*kind == IdempotencyConflict);
    let after = world.rows();
    if after.len() != written || after[..before.len()] != before[..] {
        faults.push(format!("something was written: {told}"));
    }
    faults
}

fn hold_all(world: &World) {
    let cases = [NAMES, VALUES, PLACES, EXPECTATIONS, SCHEMAS, ARTIFACTS].concat();
    let faults: Vec<String> = cases.iter().flat_map(|case| faults(world, case)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    world.append([note()]).unwrap();
    verify(&**world.ledger.store()).unwrap();
}

#[test]
fn what_is_wrong_is_refused_by_name_and_the_store_in_memory_goes_on() {
    hold_all(&World::over(Arc::new(Memory::new().unwrap())));
}

#[test]
fn what_is_wrong_is_refused_by_name_and_the_file_goes_on_and_opens_again() {
    let folder = scratch();
    let path = folder.path().join("notes.db");
    let open = || {
        let options = Options {
            durability: Durability::Process,
            ..Options::default()
        };
        Sqlite::open(&path, options).unwrap()
    };
    let world = World::over(Arc::new(open()));
    hold_all(&world);
    let rows = world.rows();
    drop(world);
    let again = Ledger::over(Arc::new(open()), Arc::new(SystemClock), Pipeline::default()).unwrap();
    assert_eq!(again.read(Select::All).page().unwrap(), rows);
    verify(&**again.store()).unwrap();
}
