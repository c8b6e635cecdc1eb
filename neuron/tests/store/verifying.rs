//! `verify`, `head` and `check` find what was changed, and name it.

use std::{fs, path::Path, sync::Arc};

use neuron::{
    Append, Author, Cause, Digest, ErrorKind, Ledger, Parent, SystemClock,
    pipeline::Pipeline,
    store::{
        Access, Manifest, Memory, Options, Sqlite, Store,
        verify::{self, Bad, Head},
    },
};
use rusqlite::Connection;

use super::{append, draft, rows, say};

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

/// Changes the file as its owner can, with the guards taken away.
fn tamper(path: &Path, statement: &str) {
    let shell = Connection::open(path).unwrap();
    let mut triggers = shell
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap();
    let names = triggers.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let drops: Vec<String> = names.map(|name| format!("DROP TRIGGER {}", name.unwrap())).collect();
    drop(triggers);
    shell.execute_batch(&drops.join(";")).unwrap();
    shell.execute_batch(statement).unwrap();
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
    let heads: Vec<u64> = verified.topics.values().map(|head| head.pos).collect();
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
