//! Exports and the archives made of them: what went in comes out, and nothing that was changed gets in.

use std::{fs, path::Path, sync::Arc};

use neuron::{
    Append, Artifact, Author, Cause, Contract, Digest, Draft, Error, ErrorKind, Json, Ledger, Parent, Pattern, Topic,
    ledger::Direction,
    limits,
    pipeline::Pipeline,
    store::{Access, AsOf, Memory, Options, Part, Range, Select, Sqlite, Store, export, verify},
};
use proptest::{
    collection::vec,
    prelude::{Just, any},
    prop_assert, prop_assert_eq, prop_oneof, proptest,
    sample::Index,
    strategy::Strategy,
    test_runner::Config,
};
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{rows, topic};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Note {
    text: String,
}

/// What is done to a store.
#[derive(Clone, Debug)]
enum Deed {
    Note {
        topic: u8,
        key: bool,
        artifact: Option<Vec<u8>>,
    },
    Batch {
        topics: Vec<u8>,
        caused: bool,
        keyed: bool,
    },
    Reply {
        topic: u8,
    },
    Caused {
        topic: u8,
        by: Index,
    },
    Blob(Vec<u8>),
}

fn deed() -> impl Strategy<Value = Deed> {
    let blob = || vec(any::<u8>(), 0..600);
    prop_oneof![
        (0..4u8, any::<bool>(), proptest::option::of(blob())).prop_map(|(topic, key, artifact)| Deed::Note {
            topic,
            key,
            artifact
        }),
        (vec(0..4u8, 1..5), any::<bool>(), any::<bool>()).prop_map(|(topics, caused, keyed)| Deed::Batch {
            topics,
            caused,
            keyed
        }),
        (0..4u8).prop_map(|topic| Deed::Reply { topic }),
        (0..4u8, any::<Index>()).prop_map(|(topic, by)| Deed::Caused { topic, by }),
        blob().prop_map(Deed::Blob),
    ]
}

fn named(number: u8) -> Topic {
    topic(["notes.a", "notes.b", "other.a", "other.b.c"][usize::from(number)])
}

fn plain(number: u8, text: &str) -> Draft {
    let draft = Draft::new(named(number), Author::cli(), "said").unwrap();
    draft.json(Json::of(text).unwrap(), None)
}

/// A store on which all of this was done.
fn done(store: Arc<dyn Store>, deeds: &[Deed]) -> Ledger {
    let ledger = Ledger::over(store, Arc::new(neuron::SystemClock), Pipeline::default()).unwrap();
    for pattern in ["notes.*", "other.**"] {
        let (pattern, author) = (Pattern::new(pattern).unwrap(), Author::cli());
        futures::executor::block_on(ledger.declare(&pattern, Contract::Durable, &author)).unwrap();
    }
    for (place, deed) in deeds.iter().enumerate() {
        let text = format!("deed {place}");
        let append = match deed {
            Deed::Note { topic, key, artifact } => {
                let draft = Draft::new(named(*topic), Author::cli(), "note.taken").unwrap();
                let mut draft = draft.payload(&Note { text }).unwrap();
                if *key {
                    draft = draft.key(format!("k{topic}")).unwrap();
                }
                if let Some(content) = artifact {
                    draft = draft.artifact(Artifact {
                        name: "page".into(),
                        hash: Some(ledger.store_blob(&content[..]).unwrap()),
                        kind: None,
                    });
                }
                Append::of([draft])
            }
            Deed::Batch { topics, caused, keyed } => {
                let drafts = topics.iter().enumerate().map(|(index, number)| match index {
                    1.. if *caused && topics[index - 1] != *number => {
                        plain(*number, &text).cause(Cause::Index(index - 1))
                    }
                    _ => plain(*number, &text),
                });
                let append = Append::of(drafts.collect::<Vec<_>>());
                if *keyed {
                    append.idempotency_key(text).unwrap()
                } else {
                    append
                }
            }
            Deed::Reply { topic } => {
                let head = ledger.store().head(&named(*topic)).unwrap();
                let draft = plain(*topic, &text);
                Append::of([if head > 0 {
                    draft.parent(Parent::Seq(head))
                } else {
                    draft
                }])
            }
            Deed::Caused { topic, by } => {
                let all = rows(&**ledger.store());
                let cause = all[by.index(all.len())].envelope().unwrap().reference();
                Append::of([plain(*topic, &text).cause(Cause::Envelope(cause))])
            }
            Deed::Blob(content) => {
                ledger.store_blob(&content[..]).unwrap();
                continue;
            }
        };
        ledger.append_blocking(append).unwrap();
    }
    ledger
}

fn exported(store: &dyn Store, part: &Part) -> Vec<u8> {
    let mut lines = Vec::new();
    let emit = |line: &str| {
        lines.extend_from_slice(line.as_bytes());
        Ok::<(), Error>(())
    };
    export::export(store, part, emit).unwrap();
    lines
}

fn reading(path: &Path) -> Sqlite {
    let options = Options {
        access: Access::Read,
        ..Options::default()
    };
    Sqlite::open(path, options).unwrap()
}

/// A store with something of everything.
fn sample() -> Vec<u8> {
    let deeds = [
        Deed::Note {
            topic: 0,
            key: true,
            artifact: Some(b"a page".to_vec()),
        },
        Deed::Batch {
            topics: vec![0, 2, 1],
            caused: true,
            keyed: true,
        },
        Deed::Blob(b"unnamed".to_vec()),
        Deed::Reply { topic: 0 },
        Deed::Note {
            topic: 3,
            key: false,
            artifact: None,
        },
        Deed::Batch {
            topics: vec![1, 1],
            caused: false,
            keyed: true,
        },
    ];
    let ledger = done(Arc::new(Memory::new().unwrap()), &deeds);
    exported(&**ledger.store(), &Part::ALL)
}

fn part() -> impl Strategy<Value = (Option<&'static str>, Index, Index)> {
    let patterns = prop_oneof![
        3 => Just(None),
        1 => Just(Some("notes.*")),
        1 => Just(Some("other.**")),
        1 => Just(Some("notes.b")),
        1 => Just(Some("$topics")),
        1 => Just(Some("nobody")),
    ];
    (patterns, any::<Index>(), any::<Index>())
}

proptest! {
    #![proptest_config(Config::with_cases(48))]

    #[test]
    fn what_was_exported_and_imported_is_read_as_it_was_in_the_store(
        deeds in vec(deed(), 0..25),
        part in part(),
        whole in any::<bool>(),
    ) {
        let store = Arc::new(Memory::new().unwrap());
        let ledger = done(store, &deeds);
        let store = &**ledger.store();
        let last = usize::try_from(store.last().unwrap().0).unwrap();
        let (a, b) = (part.1.index(last) as u64 + 1, part.2.index(last) as u64 + 1);
        let part = if whole {
            Part::ALL
        } else {
            Part { topics: part.0.map(|it| Pattern::new(it).unwrap()), from: a.min(b), to: a.max(b) }
        };
        let lines = exported(store, &part);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive.db");
        let imported = export::import(&lines[..], &path, |_| {}).unwrap();

        let archive = reading(&path);
        let wanted: Vec<_> = rows(store)
            .into_iter()
            .filter(|row| (part.from..=part.to).contains(&row.pos))
            .filter(|row| part.topics.as_ref().is_none_or(|topics| topics.matches(&row.topic)))
            .collect();
        let found = rows(&archive);
        let said = |rows: &[neuron::store::Row]| -> Vec<_> {
            rows.iter().map(|row| (row.pos, row.envelope().unwrap(), row.record.clone(), row.key.clone())).collect()
        };
        prop_assert_eq!(said(&found), said(&wanted));
        let verified = verify::verify(&archive).unwrap();
        prop_assert_eq!(&verified, &imported.verified);
        prop_assert_eq!(archive.schemas().unwrap(), store.schemas().unwrap());
        prop_assert_eq!(archive.archive().unwrap(), Some(imported.archive.clone()));
        if whole {
            prop_assert_eq!(verified.head, verify::head(store).unwrap());
            prop_assert_eq!(archive.manifests().unwrap(), store.manifests().unwrap());
        }
        for row in &wanted {
            for artifact in row.envelope().unwrap().body.artifacts {
                let manifest = archive.manifest(&artifact.hash.unwrap()).unwrap().unwrap();
                for chunk in &manifest.chunks {
                    prop_assert_eq!(archive.chunk(chunk).unwrap(), store.chunk(chunk).unwrap());
                }
            }
        }
        // Every question that the store answers within the part, the archive answers alike.
        for number in 0..4 {
            for from in [1, a.min(b), a.max(b)] {
                let range = Range { from, to: part.to, ..Range::ALL };
                let of = |store: &dyn Store| {
                    let page = store.page(&Select::Topic(named(number)), range).unwrap();
                    page.rows.into_iter().map(|row| row.pos).filter(|pos| *pos >= part.from).collect::<Vec<_>>()
                };
                if part.topics.as_ref().is_none_or(|topics| topics.matches(&named(number))) {
                    prop_assert_eq!(of(&archive), of(store));
                }
            }
        }
        let over = Ledger::over(Arc::new(reading(&path)), Arc::new(neuron::SystemClock), Pipeline::default()).unwrap();
        for row in &wanted {
            let until = |ledger: &Ledger| {
                let reading = ledger.read(Select::All).from(part.from).until(row.at).unwrap();
                reading.envelopes().filter_map(Result::ok).filter(|it| it.pos <= part.to).count()
            };
            if part.topics.is_none() {
                prop_assert_eq!(until(&over), until(&ledger));
            }
        }
        // And it gives the very lines that it was made of.
        prop_assert!(exported(&archive, &Part::ALL) == lines);
    }
}

#[test]
fn nothing_is_appended_to_an_archive_by_whatever_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive.db");
    export::import(&sample()[..], &path, |_| {}).unwrap();
    let before = fs::read(&path).unwrap();
    let ledger = Ledger::open(&path, Options::default()).unwrap();
    for error in [
        ledger.append_blocking(Append::of([plain(0, "more")])).unwrap_err(),
        ledger.store_blob(&b"more"[..]).unwrap_err(),
        futures::executor::block_on(ledger.publish(plain(0, "more"))).unwrap_err(),
        ledger
            .store()
            .defer(neuron::store::conformance::batch(Append::of([plain(0, "more")]), neuron::Millis(1)).unwrap())
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
        assert!(error.message().contains("sealed archive"), "{error}");
    }
    drop(ledger);
    // Nor by a program that knows nothing of archives.
    let shell = Connection::open(&path).unwrap();
    for table in ["topic", "type", "schema", "envelope", "chunk", "manifest", "archive"] {
        for statement in [
            format!("INSERT INTO {table} SELECT * FROM {table} LIMIT 1"),
            format!("INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1"),
            format!("DELETE FROM {table}"),
        ] {
            let refusal = shell.execute_batch(&statement).unwrap_err().to_string();
            assert!(
                refusal.contains("sealed archive") || refusal.contains("append only"),
                "{statement}: {refusal}"
            );
        }
    }
    drop(shell);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn causality_is_walked_in_an_archive_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Memory::new().unwrap());
    let ledger = done(
        store,
        &[Deed::Batch {
            topics: vec![0, 2, 0],
            caused: true,
            keyed: false,
        }],
    );
    let part = Part {
        topics: Some(Pattern::new("other.**").unwrap()),
        ..Part::ALL
    };
    let path = folder.path().join("archive.db");
    export::import(&exported(&**ledger.store(), &part)[..], &path, |_| {}).unwrap();
    let archive = Ledger::open(&path, Options::default()).unwrap();
    let caused = archive
        .read(Select::Topic(named(2)))
        .envelopes()
        .next()
        .unwrap()
        .unwrap();
    assert!(caused.cause().is_some());
    let walked = archive.walk(&caused.reference(), Direction::Causes, false, 10).unwrap();
    assert_eq!(walked.len(), 1, "its cause was not exported");
}

/// A file that is refused with all of these words, and leaves nothing.
fn refused(lines: &[u8], kind: ErrorKind, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let error = export::import(lines, &folder.path().join("archive.db"), |_| {}).unwrap_err();
    let told = error.to_string();
    assert_eq!(error.kind(), kind, "{told}");
    for word in words {
        assert!(told.contains(word), "`{word}` is not in: {told}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{told}");
}

fn lines() -> Vec<String> {
    let text = String::from_utf8(sample()).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The lines with a last one that counts and hashes them as they are: a file made with care.
fn resealed(lines: &[String]) -> Vec<u8> {
    let mut text = String::new();
    let count = |what: &str| lines.iter().filter(|line| line.starts_with(what)).count();
    for line in &lines[..lines.len() - 1] {
        text += line;
        text.push('\n');
    }
    let mut end: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    end["end"]["hash"] = Digest::content(text.as_bytes()).to_string().into();
    end["end"]["envelopes"] = count("{\"envelope\"").into();
    end["end"]["schemas"] = count("{\"schema\"").into();
    end["end"]["artifacts"] = count("{\"artifact\"").into();
    text += &end.to_string();
    text.push('\n');
    text.into_bytes()
}

fn place(lines: &[String], what: &str, nth: usize) -> usize {
    let mut places = (0..lines.len()).filter(|place| lines[*place].starts_with(&format!("{{\"{what}\"")));
    places.nth(nth).unwrap()
}

#[test]
fn a_file_that_is_no_export_is_refused_with_its_first_line() {
    use ErrorKind::{Malformed, NotAStore, TooLarge};
    refused(b"", Malformed, &["line 1", "empty"]);
    refused(b"\n", Malformed, &["line 1", "no line of an export"]);
    refused(b"# a note\n", Malformed, &["line 1", "no line of an export"]);
    refused(b"{\"a\":1}\n", Malformed, &["line 1"]);
    refused(&[0xff, 0xfe, b'\n'], Malformed, &["line 1", "UTF-8"]);
    refused(&sample()[..50], Malformed, &["line 1"]);
    refused(
        &vec![b'x'; limits::EXPORT_LINE_BYTES_MAX + 2],
        TooLarge,
        &["line 1", "more than"],
    );
    let mut all = lines();
    all[0] = all[0].replace("\"version\":1", "\"version\":2");
    refused(&resealed(&all), NotAStore, &["line 1", "version 2", "newer"]);
    let mut all = lines();
    all[0] = all[0].replace("\"root\":\"17067c", "\"root\":\"abcdef");
    refused(&resealed(&all), NotAStore, &["line 1", "root"]);
    let mut all = lines();
    all.remove(0);
    refused(&resealed(&all), Malformed, &["line 1", "first line"]);
}

#[test]
fn a_line_that_is_out_of_its_place_is_refused_with_its_number() {
    use ErrorKind::Malformed;
    let all = lines();
    let (schema, envelope, artifact) = (
        place(&all, "schema", 1),
        place(&all, "envelope", 2),
        place(&all, "artifact", 1),
    );
    let at = |place: usize| format!("line {}", place + 1);
    // Twice.
    for (place, word) in [(schema, "twice"), (envelope, "does not follow"), (0, "begins here")] {
        let mut all = all.clone();
        all.insert(place + 1, all[place].clone());
        refused(&resealed(&all), Malformed, &[&at(place + 1), word]);
    }
    let mut twice = all.clone();
    let chunks = all[artifact..artifact + 2].to_vec();
    twice.splice(artifact..artifact, chunks);
    refused(&resealed(&twice), Malformed, &["twice"]);
    // In another order.
    let mut swapped = all.clone();
    swapped.swap(envelope, envelope + 1);
    refused(&resealed(&swapped), Malformed, &[&at(envelope), "does not follow"]);
    let mut late = all.clone();
    let moved = late.remove(schema);
    late.insert(envelope, moved);
    refused(&resealed(&late), Malformed, &[&at(envelope), "too late"]);
    let mut apart = all.clone();
    apart.remove(artifact);
    refused(&resealed(&apart), Malformed, &["line"]);
    // Left out.
    let mut gone = all.clone();
    gone.remove(envelope);
    refused(&resealed(&gone), Malformed, &[&at(envelope), "does not follow"]);
    let mut root = all.clone();
    root.remove(place(&all, "schema", 0));
    refused(&resealed(&root), Malformed, &[&at(1), "first schema"]);
    let mut chunk = all.clone();
    chunk.remove(artifact + 1);
    refused(&resealed(&chunk), Malformed, &["not whole"]);
    let mut named = all.clone();
    let last = (0..all.len())
        .rfind(|place| all[*place].starts_with("{\"schema\""))
        .unwrap();
    named.remove(last);
    refused(&resealed(&named), Malformed, &["which is not in the registry"]);
    // After the end.
    let mut more = sample();
    more.extend_from_slice(all[envelope].as_bytes());
    refused(&more, Malformed, &[&at(all.len()), "after the last line"]);
}

#[test]
fn an_export_that_was_cut_anywhere_is_refused() {
    let whole = sample();
    for end in (1..whole.len() - 1).step_by(41) {
        let folder = tempfile::tempdir().unwrap();
        let error = export::import(&whole[..end], &folder.path().join("archive.db"), |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{end}: {error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    // Between two lines, with a last line that fits neither.
    let all = lines();
    let mut cut = all[..all.len() - 3].join("\n");
    cut.push('\n');
    cut += all.last().unwrap();
    refused(cut.as_bytes(), ErrorKind::Malformed, &["line"]);
}

#[test]
fn a_forged_envelope_is_refused_with_its_line() {
    use ErrorKind::Malformed;
    let all = lines();
    let at = place(&all, "envelope", 3);
    let line = format!("line {}", at + 1);
    let forged = |from: &str, to: &str, word: &str| {
        let mut all = all.clone();
        assert!(all[at].contains(from), "{}", all[at]);
        all[at] = all[at].replace(from, to);
        refused(&resealed(&all), Malformed, &[&line, word]);
    };
    forged("deed 1", "DEED 1", "hashes to");
    forged("\"pos\":4", "\"pos\":5", "does not follow");
    forged("\"pos\":4", "\"pos\":-4", "no line of an export");
    forged("\"pos\":4", "\"pos\":4,\"pos\":4", "no line of an export");
    forged("\"record\":{", "\"record\":{ ", "hashes to");
    // With an id that fits: what it says must still follow from what stood before.
    let remade = |from: &str, to: &str, word: &str| {
        let mut all = all.clone();
        let value: serde_json::Value = serde_json::from_str(&all[at]).unwrap();
        let start = all[at].find("\"record\":").unwrap() + 9;
        let record = all[at][start..all[at].len() - 2].to_owned();
        assert!(record.contains(from), "{record}");
        let record = record.replace(from, to);
        let id = Digest::derive(neuron::ENVELOPE_CONTEXT, record.as_bytes());
        all[at] = format!(
            "{{\"envelope\":{{\"pos\":{},\"id\":\"{id}\",\"record\":{record}}}}}",
            value["envelope"]["pos"]
        );
        refused(&resealed(&all), Malformed, &[word]);
    };
    remade("\"seq\":2", "\"seq\":7", "next seq");
    remade("\"seq\":2", "\"seq\":1", "twice");
    remade("{\"at\":", "{ \"at\":", "canonical");
    remade("\"type\":\"said\"", "\"type\":7", "record");
    remade("{\"at\":", "{\"at\":1,\"at\":", "twice");
}

proptest! {
    #![proptest_config(Config::with_cases(256))]

    #[test]
    fn no_byte_of_an_export_can_be_changed(at in any::<Index>(), bit in 0..8u8) {
        let mut lines = sample();
        let at = at.index(lines.len() - 1);
        lines[at] ^= 1 << bit;
        let folder = tempfile::tempdir().unwrap();
        let error = export::import(&lines[..], &folder.path().join("archive.db"), |_| {}).unwrap_err();
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{}", error);
    }
}

#[test]
fn a_byte_of_an_archive_that_changes_is_found_or_is_read_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("archive.db"), folder.path().join("copy.db"));
    export::import(&sample()[..], &path, |_| {}).unwrap();
    let bytes = fs::read(&path).unwrap();
    let (mut found, mut idle) = (0, 0);
    for at in (0..bytes.len()).step_by(229) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x11;
        fs::write(&copy, &changed).unwrap();
        let options = Options {
            access: Access::Read,
            ..Options::default()
        };
        let intact = Sqlite::open(&copy, options).is_ok_and(|store| verify::verify(&store).is_ok());
        if intact {
            // A byte of free space, or of the head of the file that says nothing of what is stored.
            assert!(exported(&reading(&copy), &Part::ALL) == sample_of(&path), "byte {at}");
            idle += 1;
        } else {
            found += 1;
        }
    }
    assert!(found > 30 && idle > 0, "{found} found, {idle} of no meaning");
}

fn sample_of(path: &Path) -> Vec<u8> {
    exported(&reading(path), &Part::ALL)
}

#[test]
fn what_was_taken_out_of_an_archive_is_found() {
    let folder = tempfile::tempdir().unwrap();
    for (change, word) in [
        (
            "DELETE FROM envelope WHERE pos = (SELECT max(pos) FROM envelope)",
            "sealed",
        ),
        ("DELETE FROM envelope WHERE pos = 3", "missing"),
        (
            "UPDATE archive SET manifest = replace(manifest, '\"from\":1', '\"from\":2')",
            "changed",
        ),
        ("DELETE FROM archive", "missing"),
    ] {
        let path = folder.path().join(format!("{}.db", Digest::content(change.as_bytes())));
        export::import(&sample()[..], &path, |_| {}).unwrap();
        super::verifying::tamper(&path, change);
        let error = verify::verify(&reading(&path)).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Corrupt && error.to_string().contains(word),
            "{change}: {error}"
        );
    }
}

#[test]
fn an_archive_that_has_lost_its_table_is_no_store_to_write_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive.db");
    export::import(&sample()[..], &path, |_| {}).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch("DROP TABLE archive")
        .unwrap();
    let error = verify::verify(&reading(&path)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Corrupt && error.to_string().contains("what it holds"),
        "{error}"
    );
    let ledger = Ledger::over(
        Arc::new(reading(&path)),
        Arc::new(neuron::SystemClock),
        Pipeline::default(),
    )
    .unwrap();
    let refusal = ledger.append_blocking(Append::of([plain(0, "more")])).unwrap_err();
    assert!(refusal.message().contains("sealed archive"), "{refusal}");
}

#[test]
fn an_archive_as_it_stood_at_a_place_verifies_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive.db");
    let whole = export::import(&sample()[..], &path, |_| {}).unwrap().verified.envelopes;
    for pos in [0, 1, 4, whole] {
        let then = AsOf::new(Arc::new(reading(&path)), pos).unwrap();
        assert_eq!(verify::verify(&then).unwrap().envelopes, pos);
    }
}

#[test]
fn nothing_is_overwritten_by_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken.db");
    fs::write(&path, "mine").unwrap();
    let error = export::import(&sample()[..], &path, |_| {}).unwrap_err();
    assert_eq!(
        (error.kind(), fs::read(&path).unwrap()),
        (ErrorKind::Conflict, b"mine".to_vec())
    );
}
