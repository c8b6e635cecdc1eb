//! Opening: what is taken for a store, what is refused, and what an opening may change.

use std::{fs, path::Path, sync::Arc};

use neuron::{
    Append, ErrorKind,
    store::{Access, Durability, Memory, Options, Range, Select, Sqlite, Store, conformance},
};
use rusqlite::Connection;

use super::{append, draft, files, filled, rows, say, topic};

fn options(access: Access) -> Options {
    Options {
        access,
        ..Options::default()
    }
}

/// As [`refused`], whatever the opening is for.
fn refused_always(path: &Path, kind: ErrorKind, says: &[&str]) {
    for access in [Access::Create, Access::Write, Access::Read] {
        refused(path, access, kind, says);
    }
}

/// Opening `path` fails so, says all of this, and leaves the folder as it was.
fn refused(path: &Path, access: Access, kind: ErrorKind, says: &[&str]) {
    let folder = path.parent().unwrap();
    let before = folder.exists().then(|| files(folder));
    let error = Sqlite::open(path, options(access)).unwrap_err();
    assert_eq!(error.kind(), kind, "{access:?}: {error}");
    let told = error.to_string();
    for word in says {
        assert!(told.contains(word), "`{told}` does not say `{word}`");
    }
    assert_eq!(
        folder.exists().then(|| files(folder)),
        before,
        "{access:?} left a trace"
    );
}

#[test]
fn a_file_that_is_not_sqlite_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    for content in [
        "just a few words",
        &"long text, longer than a page of SQLite\n".repeat(1_000),
    ] {
        fs::write(&path, content).unwrap();
        refused_always(&path, ErrorKind::NotAStore, &["notes.txt", "not a SQLite file"]);
    }
}

#[test]
fn a_truncated_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.db");
    filled(&path);
    let whole = fs::read(&path).unwrap();
    for (length, kind) in [
        (whole.len() / 2, ErrorKind::Corrupt),
        (whole.len() - 1, ErrorKind::Corrupt),
        (4096, ErrorKind::Corrupt),
    ] {
        fs::write(&path, &whole[..length]).unwrap();
        refused_always(&path, kind, &["cut.db", "truncated"]);
    }
    fs::write(&path, &whole[..50]).unwrap();
    refused_always(&path, ErrorKind::NotAStore, &["cut.db"]);
}

#[test]
fn a_file_of_zero_length_becomes_a_store_only_where_one_may_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.db");
    fs::write(&path, "").unwrap();
    refused(&path, Access::Write, ErrorKind::NotAStore, &["empty.db", "is empty"]);
    refused(&path, Access::Read, ErrorKind::NotAStore, &["empty.db", "is empty"]);
    let store = Sqlite::open(&path, options(Access::Create)).unwrap();
    assert_eq!(say(&store, "a", "1").pos, 1);
}

#[test]
fn a_missing_file_is_made_only_where_it_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.db");
    refused(&path, Access::Write, ErrorKind::NotFound, &["none.db"]);
    refused(&path, Access::Read, ErrorKind::NotFound, &["none.db"]);
    Sqlite::open(&path, options(Access::Create)).unwrap();
    assert!(path.exists());
}

#[test]
fn a_folder_and_a_missing_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    refused_always(&inner, ErrorKind::NotAStore, &["inner", "is a folder"]);
    let lost = folder.path().join("lost").join("a.db");
    refused_always(&lost, ErrorKind::NotFound, &["lost", "create it first"]);
}

#[test]
fn a_sqlite_file_of_another_application_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("photos.db");
    for mode in ["DELETE", "WAL"] {
        let other = Connection::open(&path).unwrap();
        other
            .query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(()))
            .unwrap();
        other
            .execute_batch("CREATE TABLE IF NOT EXISTS photo (name TEXT)")
            .unwrap();
        drop(other);
        let says = ["photos.db", "another application"];
        refused_always(&path, ErrorKind::NotAStore, &says);
    }
}

#[test]
fn a_newer_format_is_refused_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    filled(&path);
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    let says = ["new.db", "format 99", "format 2", "newer version"];
    refused_always(&path, ErrorKind::NotAStore, &says);
}

#[test]
fn a_store_of_another_root_is_read_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    filled(&path);
    let other = "ab".repeat(32);
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(&format!(
            "DROP TRIGGER schema_no_UPDATE; UPDATE schema SET hash = x'{other}' WHERE place = 1"
        ))
        .unwrap();
    drop(connection);
    let before = files(folder.path());
    let store = Sqlite::open(&path, options(Access::Create)).unwrap();
    assert!(!store.writes());
    assert_eq!(rows(&store).len(), 6);
    let error = append(&store, Append::of([draft("a", "!")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    let own = Memory::new().unwrap().schemas().unwrap()[0].reference().0.to_string();
    let told = error.to_string();
    assert!(told.contains(&other) && told.contains(&own), "{told}");
    drop(store);
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_read_only_file_is_read_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.db");
    filled(&path);
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    refused(&path, Access::Create, ErrorKind::ReadOnly, &["kept.db", "read-only"]);
    refused(&path, Access::Write, ErrorKind::ReadOnly, &["kept.db", "read-only"]);
    let store = Sqlite::open(&path, options(Access::Read)).unwrap();
    assert_eq!(rows(&store).len(), 6);
}

#[test]
fn a_path_with_strange_characters_and_a_link_lead_to_the_same_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b%20#?ü'.db");
    let store = Sqlite::open(&path, Options::default()).unwrap();
    say(&store, "a", "1");
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let linked = Sqlite::open(&link, Options::default()).unwrap();
    assert_eq!(say(&linked, "a", "2").seq, 2);
    assert_eq!(linked.path(), store.path());
}

#[test]
fn a_reading_opening_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("still.db");
    filled(&path);
    let before = files(folder.path());
    let store = Sqlite::open(&path, options(Access::Read)).unwrap();
    let all = rows(&store);
    assert_eq!(store.with_id(&all[4].id.to_string()).unwrap(), [5]);
    assert_eq!(store.topics().unwrap().len(), 2);
    store.sound().unwrap();
    assert_eq!(files(folder.path()), before);
    drop(store);
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_reader_follows_a_writer_that_comes_later_goes_and_comes_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.db");
    filled(&path);
    let reader = Sqlite::open_apart(&path, options(Access::Read)).unwrap();
    assert_eq!(reader.last().unwrap().0, 6);
    for round in 0..3 {
        let writer = Sqlite::open_apart(&path, options(Access::Write)).unwrap();
        let receipt = say(&writer, "a", &format!("more {round}"));
        assert_eq!(reader.last().unwrap().0, receipt.pos);
        futures::executor::block_on(reader.tail().wait_for(|tail| *tail == receipt.pos)).unwrap();
        drop(writer);
        assert_eq!(rows(&reader).len() as u64, receipt.pos);
    }
}

#[test]
fn a_handle_for_reading_refuses_to_append_whoever_else_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("both.db");
    let writer = Sqlite::open(&path, Options::default()).unwrap();
    let reader = Sqlite::open(&path, options(Access::Read)).unwrap();
    say(&writer, "a", "1");
    assert_eq!(rows(&reader).len(), 1);
    let error = append(&reader, Append::of([draft("a", "2")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    let chunk: Vec<(neuron::Digest, Arc<[u8]>)> = vec![(neuron::Digest::content(b"x"), b"x".as_slice().into())];
    assert_eq!(reader.put_chunks(chunk).unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn the_handles_of_one_file_share_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.db");
    let weaker = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    let first = Sqlite::open(&path, weaker.clone()).unwrap();
    let second = Sqlite::open(&path, weaker.clone()).unwrap();
    say(&first, "a", "1");
    assert_eq!(*second.tail().borrow(), 1);
    let error = Sqlite::open(&path, Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    drop((first, second));
    // Once it is closed it is opened anew, another way.
    let stronger = Sqlite::open(&path, Options::default()).unwrap();
    let same = Sqlite::open(&path, weaker).unwrap();
    assert_eq!(say(&same, "a", "2").pos, 2);
    drop((stronger, same));
    let reader = Sqlite::open(&path, options(Access::Read)).unwrap();
    let error = Sqlite::open(&path, options(Access::Write)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    drop(reader);
}

#[test]
fn the_last_handle_commits_what_is_deferred_and_leaves_one_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("end.db");
    let store = Sqlite::open(&path, Options::default()).unwrap();
    let other = store.clone();
    let batch = conformance::batch(Append::of([draft("a", "late")]), neuron::Millis(1)).unwrap();
    let handle = store.defer(batch).unwrap().remove(0);
    drop(store);
    drop(other);
    assert_eq!(handle.place().map(|receipt| receipt.pos), Some(1));
    let names: Vec<String> = files(folder.path()).into_keys().collect();
    assert_eq!(names, ["end.db", "end.db.lock"]);
    let store = Sqlite::open(&path, Options::default()).unwrap();
    let page = store.page(&Select::Topic(topic("a")), Range::ALL).unwrap();
    assert_eq!(page.rows.len(), 1);
}

#[test]
fn a_callback_may_let_the_last_handle_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("callback.db");
    let store = Sqlite::open(&path, Options::default()).unwrap();
    let (last, (told, heard)) = (store.clone(), std::sync::mpsc::channel());
    let append = Append::of([draft("a", "1")]).then(move |outcome| {
        drop(last);
        told.send(outcome.is_ok()).unwrap();
    });
    let batch = conformance::batch(append, neuron::Millis(1)).unwrap();
    store.defer(batch).unwrap();
    drop(store);
    assert!(heard.recv().unwrap());
    let store = Sqlite::open(&path, Options::default()).unwrap();
    assert_eq!(say(&store, "a", "2").seq, 2);
}

#[test]
fn what_an_interrupted_creation_left_is_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("again.db");
    fs::write(folder.path().join("again.db.new"), "half a store").unwrap();
    fs::write(folder.path().join("again.db.new-journal"), "half a journal").unwrap();
    let store = Sqlite::open(&path, Options::default()).unwrap();
    assert_eq!(say(&store, "a", "1").pos, 1);
    drop(store);
    let names: Vec<String> = files(folder.path()).into_keys().collect();
    assert_eq!(names, ["again.db", "again.db.lock"]);
}
