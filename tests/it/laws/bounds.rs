//! L13: every bound is named in one place; reaching it is a clear error or a recorded drop, never silence.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::FutureExt as _;
use neuron::{
    Append, Author, Digest, Draft, Error, ErrorKind, Expectation, Json, Kind, Millis, Pattern, Receipt, RunId,
    SchemaUse, Topic, limits,
    store::{Fault, Manifest, Options, Point, Select, Sqlite, conformance},
    transport::Lost,
};
use serde_json::{Value, json};
use telos_adapter::ScopeId;

use super::{BOTH, Backend, Home, note, options, rows, topic};

/// What becomes of whoever reaches a bound.
enum Reached {
    /// It is refused, by an error that names the bound.
    Refused(fn()),
    /// It is dropped, and that is told.
    Told(fn()),
    /// The work goes on in another way, and nothing is lost.
    GoesOn(fn()),
    /// What it bounds is measured by time, memory or threads alone; no caller can reach it.
    Within,
    /// Another test reaches it.
    In(&'static str),
}

use Reached::{GoesOn, In, Refused, Told, Within};

const BOUNDS: &[(&str, Reached)] = &[
    ("RECORD_BYTES_MAX", Refused(record)),
    ("INLINE_VALUE_BYTES_MAX", In("neuron/tests/agent.rs")),
    ("CHUNK_BYTES_MAX", GoesOn(chunks)),
    ("ARTIFACT_SLICE_BYTES_MAX", GoesOn(chunks)),
    ("INLINE_SCHEMA_BYTES_MAX", Refused(inline_schema)),
    ("TOPIC_BYTES_MAX", Refused(names)),
    ("SEGMENT_BYTES_MAX", Refused(names)),
    ("SCOPE_ID_BYTES_MAX", Refused(names)),
    ("KEY_BYTES_MAX", Refused(names)),
    ("NAME_BYTES_MAX", Refused(names)),
    ("HEADERS_MAX", Refused(headers)),
    ("BATCH_MAX", Refused(batch)),
    ("QUEUE_MAX", Refused(queue)),
    ("GROUP_MAX", GoesOn(batch)),
    ("LED_GROUPS_MAX", Within),
    ("COMPANY_LOOK", Within),
    ("DEFERRED_DELAY_MAX", In("neuron/src/store/conformance/defer.rs")),
    ("STORE_WAIT_MAX", Refused(wait)),
    ("TURN_MAX", In("tests/it/sharing.rs")),
    ("PASSED_OVER_AFTER", In("tests/it/sharing.rs")),
    ("CLOSE_WAIT_MAX", Within),
    ("FOREIGN_POLL", Within),
    ("PAGE_MAX", GoesOn(pages)),
    ("PAGE_BYTES_MAX", GoesOn(pages)),
    ("ID_PAGE_MAX", Within),
    ("VERIFIERS_MAX", Within),
    ("VERIFIED_PAGES_MAX", Within),
    ("PASSED_OVER_MAX", In("neuron/tests/paging.rs")),
    ("WALKED_MAX", In("neuron/src/store/conformance/read.rs")),
    ("READERS_MAX", Within),
    ("CACHED_PATTERNS_MAX", GoesOn(patterns)),
    ("MERGED_TOPICS_MAX", GoesOn(patterns)),
    ("WAL_BYTES_MAX", Within),
    ("EXPORT_LINE_BYTES_MAX", In("neuron/tests/store/archiving.rs")),
    ("BACKUP_STEP_PAGES", Within),
    ("WAL_RUN_AHEAD_BYTES_MAX", In("neuron/tests/store/wal.rs")),
    ("WAL_REST_BYTES_MAX", Within),
    ("WAL_KEPT_BYTES_MAX", In("neuron/tests/store/wal.rs")),
    ("WAL_LOOK", Within),
    ("READ_WAIT_MAX", Within),
    ("READ_AGAIN_MAX", Within),
    ("ID_INDEX_BATCH_MAX", In("neuron/tests/store/side.rs")),
    ("SIDE_WAIT_MAX", In("neuron/tests/store/side.rs")),
    ("SNAPSHOT_EVERY", In("neuron/tests/view.rs")),
    ("SNAPSHOT_BYTES_PER_ENVELOPE", Within),
    ("SNAPSHOT_BYTES_MAX", In("neuron/src/fold/snapshot.rs")),
    ("SNAPSHOTS_MAX", In("neuron/tests/store/side.rs")),
    ("SNAPSHOTS_BYTES_MAX", In("neuron/tests/store/side.rs")),
    ("ID_MATCHES_MAX", Told(ids)),
    ("QUOTED_BYTES_MAX", Told(quoted)),
    ("RING_MAX", In("tests/it/laws/control.rs")),
    ("RING_BYTES_MAX", In("neuron/src/bus/ring.rs")),
    ("EPHEMERAL_QUEUE_MAX", In("tests/it/laws/ephemeral.rs")),
    ("EPHEMERAL_QUEUE_BYTES_MAX", In("neuron/src/transport/queue.rs")),
    ("EPHEMERAL_TOPICS_MAX", In("neuron/src/bus/routes.rs")),
    ("RETAINED_MAX", GoesOn(retained)),
    ("RETAINED_BYTES_MAX", GoesOn(retained)),
    ("LOST_TOPICS_MAX", Told(lost)),
    ("BRIDGE_PEERS_MAX", In("neuron/tests/transport.rs")),
    ("BRIDGE_WRITE_BYTES", Within),
    ("BRIDGE_HELLO_WAIT", Within),
    ("BRIDGE_RETRY_MIN", Within),
    ("BRIDGE_RETRY_MAX", Within),
    ("BRIDGE_LINGER_MAX", Within),
    ("BRIDGE_ATTEMPTS_MAX", Within),
    ("CACHED_HEADS_MAX", Within),
    ("CACHED_VALIDATORS_MAX", Within),
    ("BACKOFF_MIN", In("neuron/tests/context.rs")),
    ("BACKOFF_MAX", In("neuron/tests/steps.rs")),
    ("CLOCK_LOOK", In("neuron/tests/clocks.rs")),
    ("BODY_POLLS_MAX", Within),
    ("REHEARSAL_TURNS_MAX", In("orchestrator/tests/replay.rs")),
    ("LONE_DEPTH_MAX", Within),
    ("JSON_DEPTH_MAX", Refused(depth)),
    ("FILTER_BYTES_MAX", In("neuron/tests/waits.rs")),
    ("STARTS_WITHOUT_END_MAX", In("neuron/tests/steps.rs")),
    ("CANCEL_GRACE", In("neuron/tests/cancelled.rs")),
    ("DRAIN_GRACE", In("orchestrator/tests/drained.rs")),
    ("TRANSACTION_TIME_MAX", In("neuron/tests/transactions.rs")),
    ("TRANSACTION_ROWS_MAX", In("neuron/tests/transactions.rs")),
    ("QUESTION_BYTES_MAX", In("neuron/tests/question.rs")),
    ("UPDATE_NAME_BYTES_MAX", In("neuron/tests/update.rs")),
    ("OWNER_TTL", In("neuron/tests/ownership.rs")),
    ("RECOVERED_AT_ONCE_MAX", Within),
    ("SIGNALS_AT_ONCE_MAX", Within),
    ("OWNER_LOOK", Within),
    ("SERVE_POLL", Within),
    ("RETAKE_WAIT_MAX", Within),
    ("CONSUMER_ACKS_MAX", In("neuron/tests/consumers.rs")),
    ("CONSUMER_ACK_DELAY_MAX", In("neuron/tests/consumers.rs")),
    ("CONSUMER_IN_FLIGHT_MAX", In("neuron/tests/consumers.rs")),
    ("CONSUMER_WINDOW_MAX", In("neuron/tests/consumers.rs")),
    ("CONSUMER_SCHEDULE_MAX", In("neuron/tests/consumers.rs")),
    ("CONSUMER_PARKED_MAX", In("neuron/src/consumer/plan.rs")),
    ("CONSUMER_REDRIVEN_MAX", In("neuron/tests/consumers.rs")),
    ("CONSUMER_LAG_MAX", In("neuron/tests/consumers.rs")),
    ("CONSUMER_REASON_BYTES_MAX", In("neuron/tests/consumers.rs")),
    ("TEST_STUCK_AFTER", In("orchestrator/tests/testing.rs")),
];

fn source(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The bounds as `limits.rs` itself lists them.
fn named() -> BTreeSet<String> {
    let text = source("neuron/src/limits.rs");
    let constants = text.lines().filter_map(|line| line.strip_prefix("pub const "));
    constants
        .map(|rest| rest.split(':').next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_bound_has_its_reason_and_a_word_on_what_reaching_it_does() {
    let known: BTreeSet<String> = BOUNDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let odd: Vec<_> = named().symmetric_difference(&known).cloned().collect();
    assert!(
        odd.is_empty(),
        "only in one of limits.rs and the table in this file: {odd:?}"
    );
    let text = source("neuron/src/limits.rs");
    let lines: Vec<&str> = text.lines().collect();
    for (before, line) in lines.iter().zip(&lines[1..]) {
        if line.starts_with("pub const") {
            assert!(before.starts_with("/// "), "{line} has no reason");
        }
    }
    for (name, reached) in BOUNDS {
        if let In(file) = reached {
            assert!(!source(file).is_empty(), "{name}: {file}");
        }
    }
}

/// All code of the crates but the list of bounds itself.
fn code(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            code(&path, into);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("src/limits.rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_bound_bounds_something() {
    let mut text = String::new();
    for krate in ["neuron", "orchestrator", "telos-adapter"] {
        code(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(krate).join("src"),
            &mut text,
        );
    }
    for name in named() {
        assert!(text.contains(&name), "{name} is looked at nowhere: use it or remove it");
    }
}

#[test]
fn whoever_reaches_a_bound_is_told_or_served_in_another_way() {
    for (name, reached) in BOUNDS {
        if let Refused(reach) | Told(reach) | GoesOn(reach) = reached {
            eprintln!("reaching {name}");
            reach();
        }
    }
}

fn refused<T>(outcome: Result<T, Error>, kind: ErrorKind, bound: usize) {
    let Err(error) = outcome else {
        panic!("one more than {bound} was taken");
    };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(
        error.to_string().contains(&bound.to_string()),
        "{bound} is not in: {error}"
    );
}

fn append(home: &Home, append: Append) -> Result<Vec<Receipt>, Error> {
    home.ledger.append_blocking(append)
}

fn names() {
    type Make = fn(&str) -> Result<(), Error>;
    let makes: [(usize, Make); 7] = [
        (limits::TOPIC_BYTES_MAX, |text| Topic::new(text).map(drop)),
        (limits::TOPIC_BYTES_MAX, |text| Pattern::new(text).map(drop)),
        (limits::SEGMENT_BYTES_MAX, |text| RunId::new(text).map(drop)),
        (limits::KEY_BYTES_MAX, |text| note("x").key(text).map(drop)),
        (limits::KEY_BYTES_MAX, |text| note("x").header(text, &1).map(drop)),
        (limits::NAME_BYTES_MAX, |text| Kind::new(text).map(drop)),
        (limits::NAME_BYTES_MAX, |text| Author::new(text).map(drop)),
    ];
    for (bound, make) in makes {
        make(&"x".repeat(bound)).unwrap();
        refused(make(&"x".repeat(bound + 1)), ErrorKind::Malformed, bound);
        assert_eq!(make("").unwrap_err().kind(), ErrorKind::Malformed);
    }
    let keyed = |key: String| Append::of([note("x")]).idempotency_key(key);
    keyed("x".repeat(limits::KEY_BYTES_MAX)).unwrap();
    refused(
        keyed("x".repeat(limits::KEY_BYTES_MAX + 1)),
        ErrorKind::Malformed,
        limits::KEY_BYTES_MAX,
    );
    "x".repeat(limits::SCOPE_ID_BYTES_MAX).parse::<ScopeId>().unwrap();
    let longer = "x".repeat(limits::SCOPE_ID_BYTES_MAX + 1).parse::<ScopeId>();
    let told = longer.unwrap_err().to_string();
    assert!(told.contains(&limits::SCOPE_ID_BYTES_MAX.to_string()), "{told}");
}

/// A note whose record has exactly so many bytes.
fn sized(home: &Home, bytes: usize) -> Draft {
    let receipt = append(home, Append::of([note("")])).unwrap().remove(0);
    let empty = home.ledger.store().row(&receipt.topic, receipt.seq).unwrap().unwrap();
    // The next one stands at another seq, which is written with as many digits here.
    note(&"x".repeat(bytes - empty.record.len()))
}

fn record() {
    for backend in BOTH {
        let home = Home::new(backend);
        let max = limits::RECORD_BYTES_MAX;
        let largest = append(&home, Append::of([sized(&home, max)])).unwrap().remove(0);
        let row = home.ledger.store().row(&largest.topic, largest.seq).unwrap().unwrap();
        assert_eq!(row.record.len(), max);
        let too_large = append(&home, Append::of([note("beside it"), sized(&home, max + 1)]));
        assert!(too_large.as_ref().unwrap_err().to_string().contains("use an artifact"));
        refused(too_large, ErrorKind::TooLarge, max);
    }
}

fn headers() {
    for backend in BOTH {
        let home = Home::new(backend);
        let with = |count: usize| (0..count).fold(note("x"), |draft, n| draft.header(&format!("h{n}"), &n).unwrap());
        append(&home, Append::of([with(limits::HEADERS_MAX)])).unwrap();
        let before = rows(&home.ledger);
        refused(
            append(&home, Append::of([with(limits::HEADERS_MAX + 1)])),
            ErrorKind::TooLarge,
            limits::HEADERS_MAX,
        );
        // What the engine adds counts as well.
        let keyed = with(limits::HEADERS_MAX).key("k").unwrap();
        refused(
            append(&home, Append::of([keyed])),
            ErrorKind::TooLarge,
            limits::HEADERS_MAX,
        );
        assert_eq!(rows(&home.ledger), before);
    }
}

fn batch() {
    let home = Home::new(Backend::Memory);
    let many = |count: usize| Append::of((0..count).map(|_| note("")));
    refused(
        append(&home, many(limits::BATCH_MAX + 1)),
        ErrorKind::TooLarge,
        limits::BATCH_MAX,
    );
    // A full batch is more than a group, and stays one.
    const { assert!(limits::BATCH_MAX > limits::GROUP_MAX) };
    let receipts = append(&home, many(limits::BATCH_MAX)).unwrap();
    assert_eq!(receipts.len(), limits::BATCH_MAX);
}

/// Holds every commit until it is opened.
#[derive(Debug, Default)]
struct Gate {
    shut: AtomicBool,
    inside: Mutex<bool>,
    changed: Condvar,
}

impl Fault for Gate {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == Point::BeforeCommit && self.shut.load(Ordering::SeqCst) {
            let mut inside = self.inside.lock().unwrap();
            *inside = true;
            self.changed.notify_all();
            drop(
                self.changed
                    .wait_while(inside, |_| self.shut.load(Ordering::SeqCst))
                    .unwrap(),
            );
        }
        Ok(())
    }
}

impl Gate {
    fn wait_until_somebody_is_inside(&self) {
        let inside = self.inside.lock().unwrap();
        drop(self.changed.wait_while(inside, |inside| !*inside).unwrap());
    }

    fn open(&self) {
        let inside = self.inside.lock().unwrap();
        self.shut.store(false, Ordering::SeqCst);
        drop(inside);
        self.changed.notify_all();
    }
}

fn queue() {
    let gate = Arc::new(Gate::default());
    let home = Home::with(Backend::Memory, Some(gate.clone()));
    gate.shut.store(true, Ordering::SeqCst);
    let ledger = home.ledger.clone();
    let first = std::thread::spawn(move || ledger.append_blocking(Append::of([note("first")])));
    gate.wait_until_somebody_is_inside();
    // Nothing is committed meanwhile, and a deferred append cannot wait for room.
    let defer = || home.ledger.defer(Append::of([note("later")]));
    let handles: Vec<_> = (0..limits::QUEUE_MAX).map(|_| defer().unwrap()).collect();
    refused(defer(), ErrorKind::TooLarge, limits::QUEUE_MAX);
    // An append waits for room; one that is dropped keeps its place until its batch is committed, so there is none left.
    let append = |kind| home.ledger.append(Append::of([note(kind)])).now_or_never();
    assert!((1..limits::QUEUE_MAX).all(|_| append("dropped").is_none()));
    assert!(append("never queued").is_none());
    gate.open();
    first.join().unwrap().unwrap();
    home.ledger.store().flush();
    let last = handles.last().unwrap()[0].place().unwrap();
    assert_eq!(last.seq, limits::QUEUE_MAX as u64 + 1);
    defer().unwrap();
    let all = home.ledger.read(Select::Topic(topic(0))).envelopes();
    let said: Vec<String> = all.map(|note| note.unwrap().decode().unwrap()).collect();
    let of = |text: &str| said.iter().filter(|said| *said == text).count();
    assert_eq!((of("dropped"), of("never queued")), (limits::QUEUE_MAX - 1, 0));
}

fn wait() {
    assert_eq!(Options::default().wait, limits::STORE_WAIT_MAX);
    let gate = Arc::new(Gate::default());
    let home = Home::with(Backend::Sqlite, Some(gate.clone()));
    let brief = Duration::from_millis(20);
    let impatient = Options {
        wait: brief,
        ..options(&home.clock, None)
    };
    let other = Sqlite::open_apart(home.path(), impatient).unwrap();
    gate.shut.store(true, Ordering::SeqCst);
    let ledger = home.ledger.clone();
    let first = std::thread::spawn(move || ledger.append_blocking(Append::of([note("first")])));
    gate.wait_until_somebody_is_inside();
    let say = || {
        let batch = conformance::batch(Append::of([note("other")]), Millis(0)).unwrap();
        neuron::store::Store::append_blocking(&other, batch)
    };
    let busy = say().unwrap_err();
    gate.open();
    first.join().unwrap().unwrap();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    for part in [
        format!("pid {}", std::process::id()),
        format!("{brief:?}"),
        "law.db".into(),
    ] {
        assert!(busy.to_string().contains(&part), "`{part}` is not in: {busy}");
    }
    say().unwrap();
}

fn inline_schema() {
    let schema = |bytes: usize| {
        let frame = json!({"title": ""}).to_string().len();
        let definition = json!({"title": "x".repeat(bytes - frame)});
        SchemaUse::inline(Json::of(&definition).unwrap())
    };
    schema(limits::INLINE_SCHEMA_BYTES_MAX).unwrap();
    refused(
        schema(limits::INLINE_SCHEMA_BYTES_MAX + 1),
        ErrorKind::TooLarge,
        limits::INLINE_SCHEMA_BYTES_MAX,
    );
}

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

/// A value may be as deep as the record around it can still be read back, to the last level.
fn depth() {
    let max = limits::JSON_DEPTH_MAX;
    Json::parse(&nested(max)).unwrap();
    refused(Json::parse(&nested(max + 1)), ErrorKind::TooLarge, max);
    for backend in BOTH {
        let home = Home::new(backend);
        // A payload stands two levels deep in its record, the value of a header three.
        let payload = |depth: usize| {
            let draft = Draft::new(topic(0), Author::cli(), "deep").unwrap();
            draft.json(Json::parse(&nested(depth)).unwrap(), None)
        };
        let header = |depth: usize| {
            let value: Value = serde_json::from_str(&nested(depth)).unwrap();
            note("x").header("deep", &value).unwrap()
        };
        let receipts = append(&home, Append::of([payload(max - 2), header(max - 3)])).unwrap();
        for receipt in receipts {
            let row = home.ledger.store().row(&receipt.topic, receipt.seq).unwrap().unwrap();
            let envelope = row.envelope().unwrap();
            assert!(envelope.is_intact().unwrap());
            assert_eq!(Json::parse(&row.record).unwrap().as_str(), &*row.record);
        }
        let before = rows(&home.ledger);
        refused(append(&home, Append::of([payload(max - 1)])), ErrorKind::TooLarge, max);
        refused(append(&home, Append::of([header(max - 2)])), ErrorKind::TooLarge, max);
        assert_eq!(rows(&home.ledger), before);
    }
}

fn chunks() {
    for backend in BOTH {
        let home = Home::new(backend);
        let content = vec![7_u8; 2 * limits::ARTIFACT_SLICE_BYTES_MAX + limits::CHUNK_BYTES_MAX + 1];
        let hash = home.ledger.store_blob(&*content).unwrap();
        let Manifest { bytes, chunks, .. } = home.ledger.store().manifest(&hash).unwrap().unwrap();
        assert_eq!((hash, bytes), (Digest::content(&content), content.len() as u64));
        assert_eq!(chunks.len(), content.len().div_ceil(limits::CHUNK_BYTES_MAX));
        let mut read = Vec::new();
        std::io::copy(&mut home.ledger.blob(&hash).unwrap(), &mut read).unwrap();
        assert!(read == content);
    }
}

fn pages() {
    for backend in BOTH {
        let home = Home::new(backend);
        let count = 2 * limits::PAGE_MAX + 1;
        append(&home, Append::of((0..count).map(|_| note("small")))).unwrap();
        let large = "x".repeat(limits::RECORD_BYTES_MAX - 1_000);
        let heavy = 2 * limits::PAGE_BYTES_MAX / large.len() + 1;
        append(&home, Append::of((0..heavy).map(|_| note(&large)))).unwrap();
        let wanted: Vec<u64> = (1..=(count + heavy) as u64).collect();
        let seqs = |reading: neuron::ledger::Reading| {
            let seqs = reading.envelopes().map(|envelope| envelope.unwrap().seq);
            seqs.collect::<Vec<_>>()
        };
        for select in [
            Select::Topic(topic(0)),
            Select::Pattern(Pattern::new("law.*").unwrap()),
            Select::Kind(Kind::new("said").unwrap()),
        ] {
            assert_eq!(seqs(home.ledger.read(select.clone())), wanted, "{select:?}");
            let mut backwards = seqs(home.ledger.read(select).newest_first());
            backwards.reverse();
            assert_eq!(backwards, wanted);
        }
    }
}

fn patterns() {
    let home = Home::new(Backend::Sqlite);
    let count = 2 * limits::MERGED_TOPICS_MAX.max(limits::CACHED_PATTERNS_MAX);
    // So much besides that the log is not simply walked.
    append(&home, Append::of((0..limits::WALKED_MAX).map(|_| note("")))).unwrap();
    let name = |n: usize| Topic::new(format!("law.{n}.x")).unwrap();
    home.declare("law.*.x", neuron::Contract::Durable);
    let drafts = (0..count).map(|n| Draft::new(name(n), Author::cli(), "said").unwrap());
    append(&home, Append::of(drafts)).unwrap();
    for turn in 0..2 {
        for n in 0..count {
            let one = Pattern::new(format!("law.{n}.*")).unwrap();
            assert_eq!(
                home.ledger.read(Select::Pattern(one)).envelopes().count(),
                1,
                "turn {turn}"
            );
        }
        let all = Select::Pattern(Pattern::new("law.*.*").unwrap());
        assert_eq!(home.ledger.read(all).envelopes().count(), count);
    }
}

/// The newest are kept, whatever they are bounded by.
fn retained() {
    let topic = |n: usize| Topic::new(format!("air.{n}")).unwrap();
    let kept = |home: &Home| {
        let mut listener = home.ledger.bus().listen(Pattern::new("air.*").unwrap());
        let mut seen = BTreeSet::new();
        loop {
            match listener.try_next() {
                Ok(Some(envelope)) => seen.insert(envelope.topic.clone()),
                Ok(None) => break seen.len() as u64,
                Err(lagged) => break seen.len() as u64 + lagged.0,
            };
        }
    };
    for (count, bytes, most) in [
        (limits::RETAINED_MAX + 10, 1, limits::RETAINED_MAX),
        (80, 1_000_000, limits::RETAINED_BYTES_MAX / 1_000_000),
    ] {
        let home = Home::new(Backend::Memory);
        home.declare("air.*", neuron::Contract::RETAINED);
        for n in 0..count {
            let draft = Draft::new(topic(n), Author::cli(), "wind").unwrap();
            let draft = draft.json(Json::of(&"x".repeat(bytes)).unwrap(), None);
            home.ledger.bus().publish(draft).unwrap();
        }
        assert_eq!(kept(&home), most as u64);
        let last = || home.ledger.bus().listen(Pattern::exactly(&topic(count - 1)));
        assert!(last().try_next().unwrap().is_some(), "the newest is kept");
        let first = home.ledger.bus().listen(Pattern::exactly(&topic(0))).try_next();
        assert!(first.unwrap().is_none(), "the oldest is let go of");
    }
}

fn lost() {
    let mut lost = Lost::default();
    let count = limits::LOST_TOPICS_MAX as u64 + 5;
    for n in 0..count {
        lost.add(&Topic::new(format!("air.{n}")).unwrap(), 2);
    }
    let apart: u64 = lost.topics().map(|(_, count)| count).sum();
    assert_eq!((apart, lost.others()), (2 * (count - 5), 10));
}

fn ids() {
    for backend in BOTH {
        let home = Home::new(backend);
        append(
            &home,
            Append::of((0..limits::ID_MATCHES_MAX * 20).map(|n| note(&n.to_string()))),
        )
        .unwrap();
        let store = home.ledger.store();
        let all = rows(&home.ledger);
        for digit in "0123456789abcdef".chars() {
            let found = store.with_id(&digit.to_string()).unwrap();
            let count = all.iter().filter(|row| row.id.to_string().starts_with(digit)).count();
            assert_eq!(found.len(), count.min(limits::ID_MATCHES_MAX));
        }
    }
}

fn quoted() {
    let home = Home::new(Backend::Memory);
    let long = "x".repeat(limits::QUOTED_BYTES_MAX + 1);
    let schema = SchemaUse::inline(Json::of(&json!({"maxLength": 1})).unwrap()).unwrap();
    let draft = Draft::new(topic(0), Author::cli(), "said").unwrap();
    let broken = append(&home, Append::of([draft.json(Json::of(&long).unwrap(), Some(schema))])).unwrap_err();
    assert_eq!(broken.kind(), ErrorKind::Schema);
    let told = broken.to_string();
    assert!(told.contains("`$`") && !told.contains(&long), "{told}");
}

#[test]
fn an_expectation_that_failed_has_used_up_nothing() {
    for backend in BOTH {
        let home = Home::new(backend);
        let wrong = Expectation::Head(topic(0), 9);
        let refusal = append(&home, Append::of([note("x")]).expect(wrong)).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Conflict);
        assert_eq!(append(&home, Append::of([note("x")])).unwrap()[0].seq, 1);
    }
}
