//! `verify`, `head` and `check` find what was changed, and name it.

use std::{fs, path::Path, sync::Arc};

use neuron::{
    Append, Author, Cause, Digest, ENVELOPE_CONTEXT, ErrorKind, Ledger, Parent, Pattern, SystemClock,
    pipeline::Pipeline,
    store::{
        Access, Manifest, Memory, Options, Part, Range, Select, Sqlite, Store, export,
        verify::{self, Bad, Head, Past},
    },
};
use rusqlite::Connection;

use super::{append, draft, rows, say, topic};

/// A history with everything that is checked: causes, parents, keys, idempotency, artifacts.
fn write(store: &dyn Store) {
    for n in 0..4 {
        let drafts = [
            draft("a", &format!("first {n}")).key("k").unwrap(),
            draft("b", &format!("second {n}")).cause(Cause::Index(0)),
            draft("a", &format!("third {n}")).parent(Parent::Index(0)),
        ];
        append(store, Append::of(drafts).idempotency_key(format!("batch {n}")).unwrap()).unwrap();
        say(store, "c", &format!("fourth {n}"));
    }
    let chunks: Vec<Arc<[u8]>> = vec![vec![b'x'; 10_000].into(), b"the second chunk".as_slice().into()];
    let hashes: Vec<Digest> = chunks.iter().map(|chunk| Digest::content(chunk)).collect();
    let manifest = Manifest {
        hash: Digest::content(&chunks.concat()),
        bytes: 10_016,
        chunks: hashes.clone(),
    };
    store.put_chunks(hashes.into_iter().zip(chunks).collect()).unwrap();
    store.put_manifest(&manifest).unwrap();
}

/// A closed store with that history, and its head.
fn written(path: &Path) -> Head {
    let store = Sqlite::open(path, Options::default()).unwrap();
    write(&store);
    verify::verify(&store).unwrap().head
}

fn open(path: &Path) -> Sqlite {
    let options = Options {
        access: Access::Read,
        ..Options::default()
    };
    Sqlite::open(path, options).unwrap()
}

/// What `verify` finds, opened for reading.
fn bad(path: &Path) -> Bad {
    let error = verify::verify(&open(path)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    error
        .detail()
        .unwrap_or_else(|| panic!("no envelope is named: {error}"))
}

/// Changes the file as its owner can: the guards are taken away, and put back so that nobody is the wiser.
pub(super) fn tamper(path: &Path, statement: &str) {
    let shell = Connection::open(path).unwrap();
    let mut triggers = shell
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap();
    let found = triggers.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let (drops, makes): (Vec<String>, Vec<String>) = found
        .map(|found: rusqlite::Result<(String, String)>| found.unwrap())
        .map(|(name, text)| (format!("DROP TRIGGER {name}"), text))
        .unzip();
    drop(triggers);
    for statements in [&drops.join(";"), statement, &makes.join(";")] {
        shell.execute_batch(statements).unwrap();
    }
}

#[test]
fn an_untouched_store_verifies_and_says_how_far_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("good.db");
    let head = written(&path);
    assert_eq!(head.pos, 16);
    let store = open(&path);
    let verified = verify::verify(&store).unwrap();
    assert_eq!(
        (verified.head, verified.artifacts, verified.artifact_bytes),
        (head, 1, 10_016)
    );
    assert_eq!(verify::head(&store).unwrap(), head);
    assert_eq!((verified.envelopes, verified.topics), (16, 3));
    let heads = ["a", "b", "c"].map(|name| verify::head_of(&store, &topic(name)).unwrap().pos);
    assert_eq!(heads, [8, 4, 4]);
    let chain = rows(&store).iter().fold(Head::default(), |head, row| head.then(row.id));
    assert_eq!(chain, head);
    let memory = Memory::new().unwrap();
    write(&memory);
    assert_eq!(verify::verify(&memory).unwrap().head.pos, 16);
}

#[test]
fn a_byte_of_any_record_changed_in_the_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("hex.db"), folder.path().join("copy.db"));
    written(&path);
    let all = rows(&open(&path));
    let bytes = fs::read(&path).unwrap();
    for row in all.iter().step_by(5) {
        let record = row.record.as_bytes();
        let at = bytes.windows(record.len()).position(|window| window == record).unwrap();
        // Inside the payload: the JSON stays JSON.
        let letter = at + row.record.find("said").unwrap();
        let mut changed = bytes.clone();
        changed[letter] ^= 0x01;
        fs::write(&copy, changed).unwrap();
        let bad = bad(&copy);
        assert_eq!(
            (bad.pos, bad.seq, bad.id),
            (row.pos, Some(row.seq), Some(row.id)),
            "{bad:?}"
        );
        assert_eq!(bad.topic.as_ref(), Some(&row.topic));
        assert!(bad.why.contains("record was changed"), "{bad:?}");
    }
}

#[test]
fn a_byte_that_is_no_text_any_more_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.db");
    written(&path);
    let row = rows(&open(&path)).remove(6);
    let mut bytes = fs::read(&path).unwrap();
    let record = row.record.as_bytes();
    let at = bytes.windows(record.len()).position(|window| window == record).unwrap();
    bytes[at + 20] = 0xff;
    fs::write(&path, bytes).unwrap();
    assert_eq!(bad(&path).pos, row.pos);
}

/// A record as somebody changes it who knows how ids are made.
fn forge(path: &Path, pos: u64, change: impl Fn(&str) -> String) {
    let row = rows(&open(path)).swap_remove(usize::try_from(pos - 1).unwrap());
    let record = change(&row.record);
    assert_ne!(*record, *row.record);
    let id = Digest::derive(ENVELOPE_CONTEXT, record.as_bytes());
    tamper(
        path,
        &format!("UPDATE envelope SET record = '{record}', id = x'{id}' WHERE pos = {pos}"),
    );
}

#[test]
fn a_record_that_no_commit_would_write_is_named_although_its_id_fits() {
    let folder = tempfile::tempdir().unwrap();
    for (name, from, to, told) in [
        ("blank", ",", ", ", "canonical form"),
        ("order", r#""artifacts":[],"#, "", "no envelope"),
        ("null", r#""seq":"#, r#""parentSeq":null,"seq":"#, "no envelope"),
        ("twice", r#""fourth 3""#, r#"{"a":1,"a":2}"#, "no JSON"),
        ("more", r#""seq":"#, r#""sea":1,"seq":"#, "no envelope"),
    ] {
        let path = folder.path().join(name);
        written(&path);
        forge(&path, 16, |record| record.replacen(from, to, 1));
        let bad = bad(&path);
        assert!(bad.pos == 16 && bad.why.contains(told), "{name}: {bad:?}");
    }
}

#[test]
fn every_column_is_held_to_its_record() {
    let folder = tempfile::tempdir().unwrap();
    for (column, pos, change) in [
        ("id", 5, "UPDATE envelope SET id = zeroblob(32) WHERE pos = 5"),
        ("topic", 6, "UPDATE envelope SET topic = 3, seq = 99 WHERE pos = 6"),
        ("seq", 6, "UPDATE envelope SET seq = 99 WHERE pos = 6"),
        (
            "type",
            6,
            "INSERT INTO type VALUES (9, 'other'); UPDATE envelope SET type = 9 WHERE pos = 6",
        ),
        ("at", 6, "UPDATE envelope SET at = at + 1 WHERE pos = 6"),
        ("cause", 6, "UPDATE envelope SET cause = 4 WHERE pos = 6"),
        ("cause", 6, "UPDATE envelope SET cause = NULL WHERE pos = 6"),
        ("cause", 7, "UPDATE envelope SET cause = 1 WHERE pos = 7"),
        ("key", 5, "UPDATE envelope SET key = NULL WHERE pos = 5"),
        ("key", 6, "UPDATE envelope SET key = 'k' WHERE pos = 6"),
        ("idempotency", 5, "UPDATE envelope SET idempotency = NULL WHERE pos = 5"),
        (
            "idempotency",
            6,
            "UPDATE envelope SET idempotency = 'other' WHERE pos = 6",
        ),
        ("topic", 2, "UPDATE topic SET name = 'renamed' WHERE name = 'b'"),
        ("type", 1, "UPDATE type SET name = 'renamed' WHERE name = 'said'"),
    ] {
        let path = folder.path().join(format!("{column}-{pos}-{}.db", change.len()));
        written(&path);
        tamper(&path, change);
        let bad = bad(&path);
        assert_eq!(bad.pos, pos, "{change}: {bad:?}");
        assert!(bad.why.contains(column) || column == "id", "{change}: {bad:?}");
    }
}

#[test]
fn a_record_made_anew_with_its_id_is_found_by_what_names_it_and_by_a_kept_head() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forged.db");
    let kept = written(&path);
    let forge = |pos: u64| {
        let row = rows(&open(&path)).remove(usize::try_from(pos).unwrap() - 1);
        let record = row.record.replace("first", "FIRST").replace("fourth", "FOURTH");
        let id = Digest::derive(neuron::ENVELOPE_CONTEXT, record.as_bytes());
        tamper(
            &path,
            &format!("UPDATE envelope SET record = '{record}', id = x'{id}' WHERE pos = {pos}"),
        );
    };
    // Nobody names this one: the log is whole in itself, and only the kept head tells.
    forge(4);
    verify::verify(&open(&path)).unwrap();
    assert_eq!(
        verify::check(&open(&path), &kept).unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    // This one is the cause of the next.
    forge(5);
    assert_eq!(bad(&path).pos, 6);
}

#[test]
fn a_row_deleted_in_the_middle_is_named_with_its_topic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hole.db");
    written(&path);
    tamper(&path, "DELETE FROM envelope WHERE pos = 6");
    let found = bad(&path);
    assert_eq!((found.pos, found.seq, found.id), (6, Some(2), None), "{found:?}");
    assert_eq!(found.topic.unwrap().as_str(), "b");
    tamper(&path, "DELETE FROM envelope WHERE pos BETWEEN 3 AND 5");
    let found = bad(&path);
    assert!(found.pos == 3 && found.why.contains("pos 6"), "{found:?}");
    assert!(found.topic.is_none() && found.why.contains("a seq 2"), "{found:?}");
}

#[test]
fn a_topic_that_lost_its_end_is_found_when_places_are_closed_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("closed.db");
    written(&path);
    // A hole hidden by moving what follows down: its topic still counts.
    tamper(
        &path,
        "DELETE FROM envelope WHERE pos = 8; UPDATE envelope SET pos = pos - 1, cause = cause - 1 WHERE pos > 8;",
    );
    let found = bad(&path);
    assert!(found.pos == 11 && found.why.contains("should say 2"), "{found:?}");
}

#[test]
fn rows_cut_from_the_end_are_found_only_with_a_kept_head() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.db");
    let kept = written(&path);
    tamper(&path, "DELETE FROM envelope WHERE pos > 12");
    let store = open(&path);
    assert_eq!(verify::verify(&store).unwrap().head.pos, 12);
    let error = verify::check(&store, &kept).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Corrupt && error.message().contains("cut from its end"),
        "{error}"
    );
}

#[test]
fn a_store_that_went_on_extends_every_head_it_ever_had() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("on.db"), Options::default()).unwrap();
    let mut heads = vec![verify::head(&store).unwrap()];
    for n in 0..5 {
        say(&store, "a", &n.to_string());
        heads.push(verify::head(&store).unwrap());
    }
    for head in &heads {
        let kept: Head = head.to_string().parse().unwrap();
        assert_eq!(verify::check(&store, &kept).unwrap(), heads[5]);
        let other = Head {
            hash: Digest::content(b"another"),
            ..kept
        };
        assert_eq!(verify::check(&store, &other).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    assert_eq!("5:abc".parse::<Head>().unwrap_err().kind(), ErrorKind::Malformed);
}

#[test]
fn a_changed_chunk_a_lost_one_and_a_changed_manifest_name_their_artifact() {
    let folder = tempfile::tempdir().unwrap();
    for (name, change, says) in [
        (
            "chunk",
            "UPDATE chunk SET bytes = CAST('a' || substr(bytes, 2) AS BLOB) WHERE rowid = 2",
            "chunk 2 of 2",
        ),
        ("lost", "DELETE FROM chunk WHERE rowid = 1", "missing"),
        (
            "order",
            "UPDATE manifest SET chunks = CAST(substr(chunks, 33) || substr(chunks, 1, 32) AS BLOB)",
            "manifest says",
        ),
        ("length", "UPDATE manifest SET bytes = bytes + 1", "manifest says"),
    ] {
        let path = folder.path().join(format!("{name}.db"));
        written(&path);
        let artifact = open(&path).manifests().unwrap()[0].0.to_string();
        tamper(&path, change);
        let error = verify::verify(&open(&path)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(
            error.message().contains(&artifact) && error.message().contains(says),
            "{error}"
        );
    }
}

#[test]
fn a_changed_chunk_is_found_in_the_raw_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("raw.db");
    written(&path);
    let mut bytes = fs::read(&path).unwrap();
    let text = b"the second chunk";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] = b'T';
    fs::write(&path, bytes).unwrap();
    let error = verify::verify(&open(&path)).unwrap_err();
    assert!(error.message().contains("chunk 2 of 2"), "{error}");
}

#[test]
fn a_changed_schema_is_found_by_its_hash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schema.db");
    written(&path);
    tamper(
        &path,
        "UPDATE schema SET definition = '{\"type\":\"object\"}' WHERE place = 1",
    );
    let error = verify::verify(&open(&path)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Corrupt && error.to_string().contains("schema"),
        "{error}"
    );
}

#[test]
fn an_index_that_disagrees_with_its_table_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    written(&path);
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = 'CREATE INDEX envelope_type ON envelope (at)' WHERE name = 'envelope_type'",
        )
        .unwrap();
    drop(connection);
    let error = verify::verify(&open(&path)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Corrupt && error.message().contains("damaged"),
        "{error}"
    );
}

#[test]
fn an_artifact_of_the_engine_that_is_gone_altogether_is_named_with_the_envelope_that_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone.db");
    {
        let store = Arc::new(Sqlite::open(&path, Options::default()).unwrap());
        let ledger = Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap();
        let [old, new] = ["old", "new"].map(|text| ledger.store_blob(text.as_bytes()).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let author = Author::cli();
        runtime
            .block_on(ledger.supersede(&old, &new, "newer", &author))
            .unwrap();
    }
    verify::verify(&open(&path)).unwrap();
    tamper(&path, "DELETE FROM manifest; DELETE FROM chunk");
    let bad = bad(&path);
    assert_eq!((bad.pos, bad.topic.unwrap().as_str()), (1, "$artifacts"));
    assert!(
        bad.why.contains("artifact `superseded`") && bad.why.contains("missing"),
        "{}",
        bad.why
    );
}

#[test]
fn what_came_after_a_kept_head_is_recomputed_and_what_stood_before_is_proved_or_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("since.db");
    let kept = written(&path);
    {
        let store = Sqlite::open(&path, Options::default()).unwrap();
        write_more(&store);
    }
    let store = open(&path);
    let whole = verify::verify(&store).unwrap();
    for past in [Past::Chained, Past::Trusted] {
        let since = verify::verify_since(&store, &kept, past).unwrap();
        assert_eq!(
            (since.head, since.envelopes, since.topics),
            (whole.head, 5, 3),
            "{past:?}"
        );
        assert_eq!(verify::verify_since(&store, &whole.head, past).unwrap().envelopes, 0);
        assert_eq!(
            verify::verify_since(&store, &Head::default(), past).unwrap().envelopes,
            21
        );
        let later = Head { pos: 22, ..kept };
        assert!(
            verify::verify_since(&store, &later, past)
                .unwrap_err()
                .message()
                .contains("cut from its end")
        );
    }
    let other = Head {
        hash: Digest::content(b"another"),
        ..kept
    };
    assert_eq!(
        verify::verify_since(&store, &other, Past::Chained).unwrap_err().kind(),
        ErrorKind::Corrupt
    );
    // Whoever trusts a wrong head gets a wrong one.
    assert_ne!(
        verify::verify_since(&store, &other, Past::Trusted).unwrap().head,
        whole.head
    );
    drop(store);

    // A record before the head: its id stands, so that only reading it tells.
    tamper(
        &path,
        "UPDATE envelope SET record = replace(record, 'fourth 1', 'FOURTH 1') WHERE pos = 8",
    );
    for past in [Past::Chained, Past::Trusted] {
        verify::verify_since(&open(&path), &kept, past).unwrap();
    }
    assert_eq!(bad(&path).pos, 8);
}

/// Five envelopes on three topics, one of them new.
fn write_more(store: &dyn Store) {
    say(store, "a", "on");
    append(
        store,
        Append::of([draft("b", "on"), draft("d", "first").cause(Cause::Index(0))]),
    )
    .unwrap();
    say(store, "d", "second");
    say(store, "a", "last");
}

#[test]
fn everything_that_is_found_from_the_beginning_is_found_from_a_head_on() {
    let folder = tempfile::tempdir().unwrap();
    for (change, says) in [
        (
            "UPDATE envelope SET record = replace(record, 'second', 'SECOND') WHERE pos = 20",
            "record was changed",
        ),
        ("UPDATE envelope SET seq = 12 WHERE pos = 21", "`seq`"),
        ("UPDATE envelope SET cause = NULL WHERE pos = 19", "`cause`"),
        ("DELETE FROM envelope WHERE pos = 18", "missing"),
        // The last of a topic before the head: the next one has nothing to follow.
        ("DELETE FROM envelope WHERE pos = 15", "missing"),
    ] {
        let path = folder.path().join(format!("{}.db", Digest::content(change.as_bytes())));
        let kept = written(&path);
        write_more(&Sqlite::open(&path, Options::default()).unwrap());
        tamper(&path, change);
        for past in [Past::Chained, Past::Trusted] {
            let told = verify::verify_since(&open(&path), &kept, past).map_err(|error| error.to_string());
            if change.ends_with("15") && past == Past::Chained {
                assert!(told.unwrap_err().contains("does not begin with"), "{change}");
            } else {
                assert!(
                    told.as_ref().is_err_and(|told| told.contains(says)),
                    "{change}: {told:?}"
                );
            }
        }
    }
}

#[test]
fn a_guard_or_an_index_that_is_gone_altered_or_foreign_is_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (change, says) in [
        (
            "DROP TRIGGER envelope_no_DELETE",
            "trigger `envelope_no_DELETE` is missing",
        ),
        (
            "DROP TRIGGER chunk_next; CREATE TRIGGER chunk_next BEFORE INSERT ON chunk BEGIN SELECT 1; END",
            "trigger `chunk_next` is not as it was made",
        ),
        (
            "CREATE TRIGGER helpful AFTER INSERT ON envelope BEGIN SELECT 1; END",
            "trigger `helpful` is none of a store's",
        ),
        ("DROP INDEX envelope_cause", "index `envelope_cause` is missing"),
        (
            "CREATE INDEX mine ON envelope (at)",
            "index `mine` is none of a store's",
        ),
        (
            "ALTER TABLE manifest ADD COLUMN note TEXT",
            "table `manifest` is not as it was made",
        ),
    ] {
        let path = folder.path().join(format!("{}.db", Digest::content(change.as_bytes())));
        let head = written(&path);
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        for told in [
            verify::verify(&open(&path)).unwrap_err(),
            verify::verify_since(&open(&path), &head, Past::Trusted).unwrap_err(),
        ] {
            assert_eq!(told.kind(), ErrorKind::Corrupt);
            assert!(told.message().contains(says), "{told}");
        }
    }
    // Tables of the user are no matter of the store.
    let path = folder.path().join("own.db");
    written(&path);
    let own = "CREATE TABLE mine (a); CREATE INDEX on_mine ON mine (a); CREATE TRIGGER of_mine AFTER INSERT ON mine BEGIN SELECT 1; END";
    Connection::open(&path).unwrap().execute_batch(own).unwrap();
    verify::verify(&open(&path)).unwrap();
}

#[test]
fn what_is_appended_while_a_store_is_verified_is_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("grows.db"), Options::default()).unwrap();
    write(&store);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                for n in 0.. {
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    say(store, &format!("w{writer}"), &n.to_string());
                }
            });
        }
        for _ in 0..20 {
            let before = store.last().unwrap().0;
            let verified = verify::verify(&store);
            let after = store.last().unwrap().0;
            if verified
                .as_ref()
                .map_or(true, |it| !(before..=after).contains(&it.head.pos))
            {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            let verified = verified.unwrap();
            assert!((before..=after).contains(&verified.head.pos));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_topic_whose_name_is_damaged_or_gone_is_an_error_and_never_an_answer_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let pattern = || Select::Pattern(Pattern::new("a.*").unwrap());
    // A short range is walked, of a long one the topics are looked up.
    for count in [3, neuron::limits::WALKED_MAX + 10] {
        for (number, change) in [
            "UPDATE topic SET name = 'a..x' WHERE name = 'a.1'",
            "DELETE FROM topic WHERE name = 'a.1'",
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.path().join(format!("{count}-{number}.db"));
            {
                let store = Sqlite::open(&path, Options::default()).unwrap();
                let drafts = (0..count).map(|n| draft(if n == 1 { "a.1" } else { "a.2" }, "said"));
                append(&store, Append::of(drafts.collect::<Vec<_>>())).unwrap();
            }
            tamper(&path, change);
            let store = Sqlite::open(&path, Options::default()).unwrap();
            let refused = [
                store.page(&pattern(), Range::ALL).map(drop),
                store.topics().map(drop),
                verify::verify(&store).map(drop),
            ];
            for refused in refused {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::Corrupt, "{count} {change}");
            }
        }
    }
}

#[test]
fn whatever_is_damaged_no_envelope_is_passed_over_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.db");
    let count = 200;
    {
        let store = Sqlite::open(&path, Options::default()).unwrap();
        for n in 0..count {
            say(&store, &format!("t.{}", n % 7), &format!("{n} {}", "x".repeat(300)));
        }
    }
    let whole = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.db");
    let (mut refused, mut answered) = (0, 0);
    // Steps that meet pages at every place of them.
    for at in (100..whole.len() - 60).step_by(997) {
        let mut bytes = whole.clone();
        let mut noise = 0x9e37_79b9_u32.wrapping_mul(u32::try_from(at).unwrap());
        for byte in &mut bytes[at..at + 60] {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = noise.to_le_bytes()[3];
        }
        fs::write(&damaged, bytes).unwrap();
        let Ok(store) = Sqlite::open_apart(&damaged, Options::default()) else {
            refused += 1;
            continue;
        };
        let store = Arc::new(store);
        let whole = |found: Result<u64, neuron::Error>, what: &str| match found {
            Ok(found) => assert_eq!(found, count as u64, "{what} after damage at {at}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{what} after damage at {at}: {error}"),
        };
        whole(verify::head(&*store).map(|head| head.pos), "head");
        whole(verify::verify(&*store).map(|it| it.envelopes), "verify");
        let exported = export::export(&*store, &Part::ALL, |_| Ok::<_, neuron::Error>(()));
        whole(exported.map(|it| it.envelopes), "export");
        let of_topic = |n: usize| {
            let topic = topic(&format!("t.{n}"));
            let page = store.page(&Select::Topic(topic), Range::ALL);
            page.map(|page| page.rows.len() as u64)
        };
        whole((0..7).map(of_topic).sum(), "topics one by one");
        let ledger = Ledger::over(store.clone(), Arc::new(SystemClock), Pipeline::default()).unwrap();
        for select in [
            Select::All,
            Select::Pattern(Pattern::all()),
            Select::Pattern(Pattern::new("t.*").unwrap()),
        ] {
            let mut reading = ledger.read(select.clone());
            let mut found = 0;
            let outcome = loop {
                match reading.page() {
                    Ok(rows) if rows.is_empty() => break Ok(found),
                    Ok(rows) => found += rows.len(),
                    Err(error) => break Err(error),
                }
            };
            match outcome {
                Ok(found) => {
                    assert_eq!(found, count, "{select:?} after damage at {at}");
                    answered += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{at}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 20 && answered > 20, "{refused} {answered}");
}
