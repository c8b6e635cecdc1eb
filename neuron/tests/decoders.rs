//! Whatever is read from outside, or from a file that somebody has changed: any bytes are refused or read as what they say,
//! and what was read is written the same again. Nothing panics and nothing hangs.
//!
//! Valid texts are cut, doubled, spliced and overwritten; `NEURON_LONG=1` does so fifty times as often.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::{
    fs,
    sync::LazyLock,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, executor::block_on};
use neuron::{
    Append, Artifact, Author, Cause, ConversationId, Digest, Draft, ENVELOPE_CONTEXT, EnvelopeRef, ErrorKind, Json,
    Kind, Ledger, Millis, Parent, Pattern, RunId, Schema, SchemaRef, SchemaUse, Topic, limits,
    ownership::{Ownership, Takeover},
    schema::Validator,
    store::{Memory, Options, Range, Row, Select, Store, conformance, verify::Head},
};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

fn cases(count: u32) -> ProptestConfig {
    let long = std::env::var_os("NEURON_LONG").is_some_and(|value| value != "0");
    ProptestConfig {
        cases: if long { count * 50 } else { count },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

// -- damage --

/// One change of a text; places are parts of its length.
#[derive(Clone, Debug)]
enum Edit {
    Overwrite(u16, String),
    Insert(u16, String),
    Delete(u16, u8),
    /// Some bytes once more, elsewhere.
    Copy(u16, u8, u16),
    Truncate(u16),
}

/// What decoders stumble over.
const WORDS: [&str; 43] = [
    "",
    "0",
    "-",
    "-0",
    "1e999",
    "1E5",
    "1.0",
    "01",
    "+1",
    "18446744073709551616",
    "-9223372036854775809",
    "9007199254740993",
    "0.1e-400",
    "null",
    "true",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\\",
    ",",
    ":",
    ".",
    "/",
    "*",
    "**",
    ">",
    "$",
    "..",
    " ",
    "\n",
    "\u{0}",
    "\\u0000",
    "\\ud800",
    "\\udc00\\ud800",
    "é",
    "\u{10ffff}",
    "\u{feff}",
    "NaN",
    "\"seq\":1,",
    "\"parentSeq\":null,",
    "#",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned),
        2 => any::<char>().prop_map(String::from),
        1 => "[a-z0-9]{1,8}",
        1 => Just("[".repeat(200)),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<u16>(), word()).prop_map(|(at, word)| Edit::Overwrite(at, word)),
        (any::<u16>(), word()).prop_map(|(at, word)| Edit::Insert(at, word)),
        (any::<u16>(), 0..40_u8).prop_map(|(at, count)| Edit::Delete(at, count)),
        (any::<u16>(), 0..80_u8, any::<u16>()).prop_map(|(from, count, to)| Edit::Copy(from, count, to)),
        any::<u16>().prop_map(Edit::Truncate),
    ]
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    vec(edit(), 1..4)
}

/// The text after these edits. They are made to its bytes; what is no text afterwards is made one.
fn damaged(text: &str, edits: &[Edit]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for edit in edits {
        let at = |part: u16| usize::from(part) * bytes.len() / usize::from(u16::MAX);
        match edit {
            Edit::Overwrite(place, word) => {
                let from = at(*place);
                let to = (from + word.len()).min(bytes.len());
                bytes.splice(from..to, word.bytes());
            }
            Edit::Insert(place, word) => {
                let place = at(*place);
                bytes.splice(place..place, word.bytes());
            }
            Edit::Delete(place, count) => {
                let from = at(*place);
                let to = (from + usize::from(*count)).min(bytes.len());
                bytes.drain(from..to);
            }
            Edit::Copy(from, count, to) => {
                let (from, to) = (at(*from), at(*to));
                let part = bytes[from..(from + usize::from(*count)).min(bytes.len())].to_vec();
                bytes.splice(to..to, part);
            }
            Edit::Truncate(place) => bytes.truncate(at(*place)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One of these texts, damaged; now and then whole.
fn of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    let edits = prop_oneof![1 => Just(Vec::new()), 12 => edits()];
    (prop::sample::select(texts), edits).prop_map(|(text, edits)| damaged(text, &edits))
}

// -- JSON --

const DOCUMENTS: [&str; 6] = [
    r#"{"a":[1,-2.5,1e21,"x\u00e9\n",{"b":null,"é":true}],"z":18446744073709551615}"#,
    "[9007199254740993,-9223372036854775808,5e-324,1.7976931348623157e308,0.000001,1e-7]",
    r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\nA'B\"\\\\\"/"}"#,
    "\"\\ud83d\\ude02 and \u{2028}\"",
    "[[[[[[[[]]]]]]]]",
    "-0.0",
];

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn json_is_refused_or_written_the_same_again(text in of(&DOCUMENTS)) {
        let Ok(json) = Json::parse(&text) else { return Ok(()) };
        prop_assert_eq!(&Json::parse(json.as_str()).unwrap(), &json);
        // Through a tree, and through typed values: the same text.
        let value: Value = serde_json::from_str(json.as_str()).unwrap();
        prop_assert_eq!(&json.to_value(), &value);
        prop_assert_eq!(&Json::of(&value).unwrap(), &json);
        prop_assert_eq!(&Json::of(&json).unwrap(), &json);
        prop_assert_eq!(json.decode::<Value>().unwrap(), value);
    }

    #[test]
    fn a_number_is_refused_or_keeps_its_value(text in of(&["-12.5e3", "9007199254740993", "18446744073709551615", "0.1"])) {
        let Ok(json) = Json::parse(&text) else { return Ok(()) };
        let number = json.as_str();
        let number_is_an_integer = text.trim().trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        if !number.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return Ok(());
        }
        if number_is_an_integer {
            prop_assert_eq!(number.parse::<i128>().unwrap(), text.trim().parse::<i128>().unwrap());
        } else {
            let (said, written): (f64, f64) = (text.trim().parse().unwrap(), number.parse().unwrap());
            // Canonical text has one zero.
            prop_assert_eq!((said + 0.0).to_bits(), (written + 0.0).to_bits());
        }
    }
}

// -- names --

/// What a pattern selects, told without the code that is tested.
fn selects(pattern: &[&str], topic: &[&str]) -> bool {
    match (pattern, topic) {
        ([], []) | (["**"], _) | ([">"], [_, ..]) => true,
        (["*", pattern @ ..], [_, topic @ ..]) => selects(pattern, topic),
        ([want, pattern @ ..], [have, topic @ ..]) => want == have && selects(pattern, topic),
        _ => false,
    }
}

fn parts(name: &str) -> (bool, Vec<&str>) {
    match name.strip_prefix('/') {
        Some(rest) => (true, rest.split('/').collect()),
        None => (false, name.split('.').collect()),
    }
}

const TOPICS: [&str; 6] = [
    "agent.researcher-7fq3m2kd.steps",
    "/input/mouse/left",
    "$leases",
    "$consumer.indexer",
    "a",
    "conversation.é.x",
];
const PATTERNS: [&str; 9] = [
    "agent.*.steps",
    "agent.**",
    "/input/>",
    "$consumer.*",
    "**",
    "/**",
    "/**|**",
    "a.>",
    "*",
];

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_topic_is_refused_or_is_what_its_rules_allow(name in of(&TOPICS)) {
        let segments = parts(&name).1;
        let legal = (1..=limits::TOPIC_BYTES_MAX).contains(&name.len())
            && !name.chars().any(char::is_control)
            && segments.iter().all(|one| !one.is_empty() && !one.contains(['*', '>']));
        match Topic::new(&name) {
            Ok(topic) => {
                prop_assert!(legal, "{:?} is accepted", name);
                prop_assert_eq!(topic.as_str(), &*name);
                prop_assert_eq!(topic.segments().collect::<Vec<_>>(), segments);
                prop_assert_eq!(Json::of(&topic).unwrap().decode::<Topic>().unwrap(), topic);
            }
            Err(error) => {
                prop_assert!(!legal, "{:?} is refused: {}", name, error);
                prop_assert_eq!(error.kind(), ErrorKind::Malformed);
            }
        }
    }

    #[test]
    fn a_pattern_is_refused_or_selects_what_its_segments_say(pattern in of(&PATTERNS), topic in of(&TOPICS)) {
        let Ok(wanted) = Pattern::new(&pattern) else { return Ok(()) };
        prop_assert_eq!(wanted.as_str(), &*pattern);
        prop_assert_eq!(&pattern.parse::<Pattern>().unwrap(), &wanted);
        prop_assert_eq!(wanted.literal().is_some(), Topic::new(&pattern).is_ok());
        for name in TOPICS.into_iter().chain([&*topic]) {
            let Ok(topic) = Topic::new(name) else { continue };
            let ((slashed, pattern_parts), (is_slashed, topic_parts)) = (parts(&pattern), parts(name));
            let hidden = topic.is_reserved() && !pattern.starts_with('$');
            let expected = if wanted == Pattern::all() {
                !topic.is_reserved()
            } else {
                slashed == is_slashed && !hidden && selects(&pattern_parts, &topic_parts)
            };
            prop_assert_eq!(wanted.matches(&topic), expected, "{:?} on {:?}", pattern, name);
        }
    }

    #[test]
    fn an_id_is_refused_or_is_one_segment(text in of(&["run-1", "A_b-9", "x"])) {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let legal = plain && (1..=limits::SEGMENT_BYTES_MAX).contains(&text.len());
        prop_assert_eq!(RunId::new(&text).is_ok(), legal);
        if let Ok(id) = ConversationId::new(&text) {
            let topic = neuron::topic::catalog::conversation(&id);
            prop_assert_eq!(topic.segments().last(), Some(&*text));
        }
    }

    #[test]
    fn types_and_authors_are_refused_or_kept(text in of(&["step.completed", "cli", "human:ada"])) {
        if let Ok(kind) = Kind::new(&text) {
            prop_assert_eq!(kind.as_str(), &*text);
        }
        if let Ok(author) = Author::new(&text) {
            prop_assert_eq!(&author.to_string(), &text);
            prop_assert_eq!(Json::of(&author).unwrap().decode::<Author>().unwrap(), author);
        }
    }
}

// -- hashes and references --

const HASHES: [&str; 2] = [
    "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    "0000000000000000000000000000000000000000000000000000000000000000",
];
const HEADS: [&str; 2] = [
    "3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    "0:0000000000000000000000000000000000000000000000000000000000000000",
];
const REFERENCES: [&str; 1] =
    [r#"{"id":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","seq":12,"topic":"agent.a.steps"}"#];

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_hash_is_refused_or_is_the_very_text(text in of(&HASHES)) {
        let legal = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        prop_assert_eq!(text.parse::<Digest>().is_ok(), legal);
        match text.parse::<SchemaRef>() {
            Ok(reference) => prop_assert_eq!(reference.to_string(), text),
            Err(_) => prop_assert!(!legal),
        }
    }

    #[test]
    fn a_head_is_refused_or_is_the_very_text(text in of(&HEADS)) {
        if let Ok(head) = text.parse::<Head>() {
            prop_assert_eq!(head.to_string(), text.trim());
        }
    }

    #[test]
    fn a_reference_is_refused_or_written_the_same_again(text in of(&REFERENCES)) {
        let Ok(json) = Json::parse(&text) else { return Ok(()) };
        if let Ok(reference) = json.decode::<EnvelopeRef>() {
            prop_assert_eq!(Json::of(&reference).unwrap(), json);
        }
    }

    #[test]
    fn the_beginning_of_an_id_is_refused_or_finds_what_begins_so(text in of(&["af1349b9", "0", "ffff"])) {
        let (store, rows) = &*WRITTEN;
        let legal = (1..=64).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match store.with_id(&text) {
            Ok(found) => {
                prop_assert!(legal, "{:?} is accepted", text);
                let begin_so = rows.iter().filter(|row| row.id.to_string().starts_with(&text));
                let wanted: Vec<u64> = begin_so.map(|row| row.pos).take(limits::ID_MATCHES_MAX).collect();
                prop_assert_eq!(found, wanted);
            }
            Err(error) => prop_assert!(!legal && error.kind() == ErrorKind::Malformed, "{:?}: {}", text, error),
        }
    }
}

// -- records --

/// A log with everything that a record may hold.
static WRITTEN: LazyLock<(Memory, Vec<Row>)> = LazyLock::new(|| {
    let store = Memory::new().unwrap();
    let draft = |kind: &str, value: &Value| {
        let topic = Topic::new("records.a").unwrap();
        let draft = Draft::new(topic, Author::cli(), kind).unwrap();
        draft.json(Json::of(value).unwrap(), None)
    };
    let inline = SchemaUse::inline(Json::parse(r#"{"type":"object"}"#).unwrap()).unwrap();
    let full = draft(
        "said",
        &json!({"text": "é\n\"", "number": -1.5e-9, "list": [null, true, u64::MAX]}),
    )
    .key("key")
    .unwrap()
    .header("colour", &json!(["red", 1]))
    .unwrap()
    .artifact(Artifact {
        name: "report".into(),
        hash: Some(Digest::content(b"report")),
        kind: Some("report".into()),
    });
    let bare = Draft::new(Topic::new("records.b").unwrap(), Author::cli(), "bare").unwrap();
    let outside = bare.clone().artifact(Artifact {
        name: "https://example.org/x".into(),
        hash: None,
        kind: None,
    });
    let with_schema = Draft::new(Topic::new("records.b").unwrap(), Author::cli(), "typed").unwrap();
    let with_schema = with_schema.json(Json::parse("{}").unwrap(), Some(inline));
    let batch = Append::of([
        full,
        bare.cause(Cause::Index(0)),
        draft("said", &json!(7)).parent(Parent::Index(0)),
        draft("said", &Value::Null),
        outside,
        with_schema,
    ]);
    let batch = batch.idempotency_key("batch").unwrap().owner("owner", 0);
    store
        .append_blocking(conformance::batch(batch, Millis(1_790_000_000_000)).unwrap())
        .unwrap();
    let rows = store.page(&Select::All, Range::ALL).unwrap().rows;
    (store, rows)
});

/// A row that says this, and whose id says so too, as somebody leaves it who knows how ids are made.
fn forged(row: &Row, record: &str) -> Row {
    Row {
        id: Digest::derive(ENVELOPE_CONTEXT, record.as_bytes()),
        record: record.into(),
        ..row.clone()
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn a_record_is_refused_or_read_as_what_it_says(place in 0..6_usize, edits in edits()) {
        let row = &WRITTEN.1[place];
        let text = damaged(&row.record, &edits);
        let forged = forged(row, &text);
        let Ok(envelope) = forged.envelope() else { return Ok(()) };
        match Json::parse(&text) {
            // The id that it has by its bytes is the one that it has by what was read.
            Ok(json) if json.as_str() == text => {
                prop_assert_eq!(envelope.record().unwrap(), json);
                prop_assert!(envelope.is_intact().unwrap());
            }
            // Another way to write what it says, or a key twice deep inside of a value: `verify` takes neither.
            _ => {}
        }
        // Under its old id it is none, if it says something else.
        if Json::parse(&text).ok().is_none_or(|json| json.as_str() != &*row.record) {
            let kept = Row { id: row.id, ..forged };
            prop_assert!(!kept.envelope().unwrap().is_intact().unwrap_or(false));
        }
    }
}

#[test]
fn every_record_is_read_as_what_it_says() {
    for row in &WRITTEN.1 {
        let envelope = row.envelope().unwrap();
        assert_eq!(envelope.record().unwrap().as_str(), &*row.record);
        assert!(envelope.is_intact().unwrap());
    }
    let nothing = WRITTEN.1[3].envelope().unwrap();
    assert_eq!(nothing.body.payload, Some(Json::null()), "a payload of `null` is one");
    assert_eq!(nothing.decode::<Option<u32>>().unwrap(), None);
}

// -- schemas --

const DEFINITIONS: [&str; 4] = [
    r#"{"type":"object","properties":{"url":{"type":"string","format":"uri"},"n":{"type":"integer","minimum":0}},"required":["url"]}"#,
    r##"{"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}},"$ref":"#/$defs/node"}"##,
    r#"{"oneOf":[{"const":"a"},{"type":"array","items":{"type":"number"},"maxItems":3},{"pattern":"^(?:[0-9a-f]{64})$"}]}"#,
    r#"{"type":["null","string"],"enum":[null,"x"],"title":"t","description":"d","x-neuron-ref":"artifact"}"#,
];

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn a_definition_is_refused_or_judges_any_value(text in of(&DEFINITIONS), value in of(&DOCUMENTS)) {
        let Ok(definition) = Json::parse(&text) else { return Ok(()) };
        let Ok(schema) = Schema::new(definition.clone()) else { return Ok(()) };
        prop_assert_eq!(schema.definition(), &definition);
        prop_assert_eq!(Schema::new(definition).unwrap().reference(), schema.reference());
        let Ok(validator) = Validator::new(&schema, &|_| Ok(None)) else { return Ok(()) };
        for value in [&value, "{}", "[]", "null", r#"{"next":{"next":{}}}"#] {
            if let Ok(value) = Json::parse(value) {
                let verdicts = [validator.check(&value), validator.check(&value)];
                prop_assert_eq!(verdicts[0].is_ok(), verdicts[1].is_ok());
            }
        }
    }
}

// -- slots --

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn whatever_lies_among_the_slots_keeps_nobody_from_owning(
        litter in vec(("[0-9]{1,9}-[0-9a-f]{16}|\\PC{1,20}|[0-9]{1,22}-[0-9a-f]{15,17}", vec(any::<u8>(), 0..60)), 0..6),
        folders in vec("[0-9]{1,6}-[0-9a-f]{16}", 0..2),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owned.db");
        let ledger = Ledger::open(&path, Options::default()).unwrap();
        let owners = folder.path().join("owned.db.owners");
        fs::create_dir_all(&owners).unwrap();
        for (name, bytes) in litter.iter().filter(|(name, _)| !name.contains('/') && !name.starts_with('.')) {
            fs::write(owners.join(name), bytes).unwrap();
        }
        for name in &folders {
            let _ = fs::create_dir(owners.join(name));
        }
        let own = Ownership::join(ledger.clone(), Duration::from_secs(9)).unwrap();
        prop_assert_eq!(own.peers().len(), 1);
        let claimed = block_on(own.claim("run:a")).unwrap();
        prop_assert_eq!((claimed.epoch, claimed.from), (1, Takeover::Free));
        // Its own slot, overwritten by somebody, still holds the lock that says that it lives.
        let other = Ownership::join(ledger, Duration::from_secs(9)).unwrap();
        for (_, bytes) in &litter {
            fs::write(owners.join(own.incarnation()), bytes).unwrap();
            let refused = other.claim("run:a").now_or_never().unwrap().unwrap_err();
            prop_assert_eq!(refused.kind(), ErrorKind::Owned);
        }
        drop(own);
        // Its heart may be beating at this moment, and lets go of the slot after that.
        let until = Instant::now() + Duration::from_secs(90);
        let claimed = loop {
            match block_on(other.claim("run:a")) {
                Err(error) if error.kind() == ErrorKind::Owned && Instant::now() < until => std::thread::yield_now(),
                outcome => break outcome.unwrap(),
            }
        };
        prop_assert_eq!(claimed.epoch, 2);
    }
}
