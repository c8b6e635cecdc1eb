//! The file beside the store: whatever becomes of it, every answer stays the same.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use neuron::{
    Append, Digest, ErrorKind, limits,
    store::{Access, Durability, Options, Row, Snapshot, Sqlite, Store},
};
use proptest::{prelude::*, sample::Index};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{append, draft, files, filled, rows, say};

/// A handle of its own, as another process would have.
fn apart(path: &Path) -> Sqlite {
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    Sqlite::open_apart(path, options).unwrap()
}

fn side_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".side");
    name.into()
}

/// Every id of the store is found, and leads to its place.
fn all_found(store: &Sqlite) {
    for row in rows(store) {
        assert_eq!(store.with_id(&row.id.to_string()[..20]).unwrap(), [row.pos]);
    }
}

fn snapshot(pos: u64, text: &str) -> Snapshot {
    Snapshot {
        pos,
        id: Digest::content(text.as_bytes()),
        state: text.repeat(300).into_bytes(),
    }
}

/// Gives what was put, or nothing.
fn is_one_of(store: &Sqlite, key: &str, put: &[Snapshot]) -> bool {
    store
        .snapshot(key)
        .map_or(true, |found| found.is_none_or(|found| put.contains(&found)))
}

#[test]
fn the_side_file_may_be_deleted_cut_or_exchanged_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("main.db"), folder.path().join("other.db"));
    let side = side_of(&path);
    filled(&path);
    let store = apart(&path);
    let kept = snapshot(4, "kept");
    let put = || store.put_snapshot("key", &kept).unwrap();
    all_found(&store);
    put();
    assert_eq!(store.snapshot("key").unwrap().unwrap(), kept);
    fs::remove_file(&side).unwrap();
    all_found(&store);
    assert!(side.exists(), "it is made anew");
    assert_eq!(store.snapshot("key").unwrap(), None);
    put();
    let whole = fs::read(&side).unwrap();
    for length in [0, 1, 100, 5_000, whole.len() - 1] {
        fs::write(&side, &whole[..length]).unwrap();
        all_found(&store);
        assert!(is_one_of(&store, "key", std::slice::from_ref(&kept)));
        put();
        assert_eq!(store.snapshot("key").unwrap().unwrap(), kept, "cut to {length}");
    }
    for text in [
        "PRAGMA user_version = 99",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 7",
        "DROP TABLE ids",
        "DROP TABLE snapshot",
        "ALTER TABLE snapshot RENAME COLUMN state TO other",
        "ALTER TABLE ids RENAME COLUMN entries TO other",
        "PRAGMA journal_mode = WAL; DELETE FROM ids",
    ] {
        Connection::open(&side).unwrap().execute_batch(text).unwrap();
        all_found(&store);
        put();
        assert_eq!(store.snapshot("key").unwrap().unwrap(), kept, "{text}");
    }
    fs::write(&side, "something else altogether").unwrap();
    all_found(&store);
    filled(&other);
    let another = apart(&other);
    say(&another, "z", "so that it differs");
    all_found(&another);
    fs::copy(side_of(&other), &side).unwrap();
    say(&store, "a", "more");
    all_found(&store);
    // A link leads to somebody else's file, which is left alone.
    let theirs = folder.path().join("theirs");
    fs::write(&theirs, "precious").unwrap();
    fs::remove_file(&side).unwrap();
    std::os::unix::fs::symlink(&theirs, &side).unwrap();
    all_found(&store);
    put();
    assert_eq!(fs::read(&theirs).unwrap(), b"precious");
    // What cannot be made is done without.
    fs::remove_file(&side).unwrap();
    fs::create_dir(&side).unwrap();
    all_found(&store);
    assert!(store.put_snapshot("key", &kept).is_err());
    assert!(is_one_of(&store, "key", &[]));
    say(&store, "a", "and appends go on");
}

#[test]
fn a_store_that_shrank_is_not_answered_from_its_old_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("back.db");
    filled(&path);
    let early = fs::read(&path).unwrap();
    let store = apart(&path);
    say(&store, "a", "later");
    all_found(&store);
    drop(store);
    fs::write(&path, early).unwrap();
    let store = apart(&path);
    say(&store, "a", "another later");
    all_found(&store);
}

#[test]
fn an_index_of_several_runs_answers_as_the_store_does_and_mends_the_run_that_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = apart(&path);
    say(&store, "a", "the first");
    // Rows enough for two runs and a half, which the store itself would take long to write here.
    let count = i64::try_from(5 * limits::ID_INDEX_BATCH_MAX / 2).unwrap();
    {
        let mut file = Connection::open(&path).unwrap();
        let writing = file.transaction().unwrap();
        let mut insert = writing
            .prepare("INSERT INTO envelope (pos, topic, seq, type, at, id, record) VALUES (?1, 1, ?1, 1, 0, ?2, '{}')")
            .unwrap();
        for pos in 2..=count {
            let id = Digest::content(&pos.to_be_bytes());
            insert.execute((pos, id.as_bytes())).unwrap();
        }
        drop(insert);
        writing.commit().unwrap();
    }
    let ids: Vec<String> = {
        let file = Connection::open(&path).unwrap();
        let mut select = file
            .prepare("SELECT lower(hex(id)) FROM envelope ORDER BY pos")
            .unwrap();
        let ids = select.query_map([], |row| row.get(0)).unwrap();
        ids.map(Result::unwrap).collect()
    };
    let answers_right = || {
        for digits in [3, 17] {
            for id in ids.iter().step_by(ids.len() / 3) {
                let prefix = &id[..digits];
                let wanted = (1..).zip(&ids).filter(|(_, id)| id.starts_with(prefix));
                let wanted: Vec<u64> = wanted.map(|(pos, _)| pos).take(limits::ID_MATCHES_MAX).collect();
                assert_eq!(store.with_id(prefix).unwrap(), wanted, "{prefix}");
            }
        }
    };
    let look = |text: &str| -> i64 {
        let side = Connection::open(side_of(&path)).unwrap();
        side.query_row(text, [], |row| row.get(0)).unwrap()
    };
    let change = |text: &str| Connection::open(side_of(&path)).unwrap().execute_batch(text).unwrap();
    answers_right();
    assert_eq!(look("SELECT count(*) FROM ids"), 3);
    // One more is entered into the run that has room.
    let receipt = say(&store, "a", "one more");
    assert_eq!(store.with_id(&receipt.id.to_string()).unwrap(), [receipt.pos]);
    assert_eq!(look("SELECT count(*) FROM ids"), 3);
    assert_eq!(look("SELECT max(last) FROM ids"), i64::try_from(receipt.pos).unwrap());
    for damage in [
        "DELETE FROM ids WHERE first = 1",
        "DELETE FROM ids WHERE first = 65537",
        "UPDATE ids SET first = -5 WHERE first = 65537",
        "UPDATE ids SET first = 3 WHERE first = 131073",
        "UPDATE ids SET entries = zeroblob(length(entries)) WHERE first = 65537",
        "UPDATE ids SET entries = substr(entries, 1, 12) WHERE first = 65537",
        "UPDATE ids SET last = last - 1 WHERE first = 131073",
        "UPDATE ids SET id = zeroblob(32) WHERE first = 1",
    ] {
        change(damage);
        answers_right();
        let whole = "SELECT count(*) FROM ids WHERE first IN (1, 65537, 131073)";
        assert_eq!((look("SELECT count(*) FROM ids"), look(whole)), (3, 3), "{damage}");
    }
}

#[test]
fn a_handle_that_reads_leaves_no_trace_beside_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read.db");
    filled(&path);
    let read = || {
        let options = Options {
            access: Access::Read,
            ..Options::default()
        };
        Sqlite::open_apart(&path, options).unwrap()
    };
    let before = files(folder.path());
    let store = read();
    all_found(&store);
    assert_eq!(store.snapshot("key").unwrap(), None);
    store.put_snapshot("key", &snapshot(1, "x")).unwrap();
    drop(store);
    assert_eq!(files(folder.path()), before);
    // What a writer has left there is used.
    let kept = snapshot(2, "kept");
    let writer = apart(&path);
    writer.put_snapshot("key", &kept).unwrap();
    all_found(&writer);
    drop(writer);
    let before = files(folder.path());
    let store = read();
    all_found(&store);
    assert_eq!(store.snapshot("key").unwrap().unwrap(), kept);
    drop(store);
    assert_eq!(files(folder.path()), before);
}

#[test]
fn snapshots_are_bounded_and_the_one_that_lies_furthest_back_gives_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.db");
    let store = apart(&path);
    append(&store, Append::of((0..200).map(|n| draft("a", &n.to_string())))).unwrap();
    let key = |n: u64| format!("key {n}");
    for n in 1..=limits::SNAPSHOTS_MAX as u64 + 3 {
        store.put_snapshot(&key(n), &snapshot(n, &key(n))).unwrap();
    }
    let there = |n: u64| store.snapshot(&key(n)).unwrap().is_some();
    assert!((1..=3).all(|n| !there(n)) && (4..=limits::SNAPSHOTS_MAX as u64 + 3).all(there));
    // One that goes further than the store is of another one, and makes room.
    let beyond = snapshot(201, "beyond");
    store.put_snapshot("beyond", &beyond).unwrap();
    store.put_snapshot(&key(3), &snapshot(103, "again")).unwrap();
    assert_eq!(store.snapshot("beyond").unwrap(), None);
    // By bytes.
    let room = (limits::SNAPSHOTS_BYTES_MAX / limits::SNAPSHOT_BYTES_MAX) as u64;
    for n in 1..=room {
        let large = Snapshot {
            state: vec![7; limits::SNAPSHOT_BYTES_MAX],
            ..snapshot(180 + n, "large")
        };
        store.put_snapshot(&format!("large {n}"), &large).unwrap();
    }
    let side = Connection::open(side_of(&path)).unwrap();
    let mut select = side.prepare("SELECT key FROM snapshot ORDER BY key").unwrap();
    let keys = select.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let wanted = (1..=room).map(|n| format!("large {n}"));
    assert!(keys.map(Result::unwrap).eq(wanted));
}

#[test]
fn while_the_side_file_is_deleted_again_and_again_several_handles_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("main.db");
    filled(&path);
    let stores = [apart(&path), apart(&path)];
    let kept = snapshot(5, "kept");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work = stores.each_ref().map(|store| {
            let (path, kept) = (&path, &kept);
            scope.spawn(move || {
                for n in 0..15 {
                    say(store, "a", &format!("{n} {}", path.display()));
                    all_found(store);
                    // What is deleted under its feet may refuse it.
                    let _ = store.put_snapshot("key", kept);
                    assert!(is_one_of(store, "key", std::slice::from_ref(kept)));
                }
            })
        });
        scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                let _ = fs::remove_file(side_of(&path));
                std::thread::yield_now();
            }
        });
        for thread in work {
            thread.join().unwrap();
        }
        ended.store(true, Ordering::SeqCst);
    });
    all_found(&stores[0]);
    stores[1].put_snapshot("key", &kept).unwrap();
    assert_eq!(stores[0].snapshot("key").unwrap().unwrap(), kept);
}

#[test]
fn a_side_file_that_somebody_holds_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("main.db");
    filled(&path);
    let store = apart(&path);
    let kept = snapshot(5, "kept");
    all_found(&store);
    let holder = Connection::open(side_of(&path)).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    say(&store, "a", "appends do not wait for it");
    let row = &rows(&store)[6];
    assert_eq!(store.with_id(&row.id.to_string()).unwrap(), [7]);
    let error = store.put_snapshot("key", &kept).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("main.db.side"), "{error}");
    assert!(store.snapshot("key").is_err());
    drop(holder);
    store.put_snapshot("key", &kept).unwrap();
    assert_eq!(store.snapshot("key").unwrap().unwrap(), kept);
}

/// A store whose side file holds an index and a few snapshots, and what it answers.
struct Whole {
    _folder: TempDir,
    store: Sqlite,
    side: PathBuf,
    bytes: Vec<u8>,
    rows: Vec<Row>,
    snapshots: BTreeMap<String, Snapshot>,
}

impl Whole {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let path = folder.path().join("main.db");
        let store = apart(&path);
        append(&store, Append::of((0..300).map(|n| draft("a", &n.to_string())))).unwrap();
        let snapshots = (1..4).map(|n| (format!("key {n}"), snapshot(n, &format!("state {n}"))));
        let snapshots: BTreeMap<_, _> = snapshots.collect();
        for (key, snapshot) in &snapshots {
            store.put_snapshot(key, snapshot).unwrap();
        }
        let rows = rows(&store);
        store.with_id("0").unwrap();
        let side = side_of(&path);
        Self {
            _folder: folder,
            bytes: fs::read(&side).unwrap(),
            store,
            side,
            rows,
            snapshots,
        }
    }

    /// Answers as it should with other bytes in its side file, and again after that.
    fn answers_with(&self, bytes: &[u8], row: &Row, digits: usize) -> Result<(), TestCaseError> {
        fs::write(&self.side, bytes).unwrap();
        for _ in 0..2 {
            let prefix = &row.id.to_string()[..digits];
            let wanted = self.rows.iter().filter(|row| row.id.to_string().starts_with(prefix));
            let wanted: Vec<u64> = wanted.map(|row| row.pos).take(limits::ID_MATCHES_MAX).collect();
            prop_assert_eq!(self.store.with_id(prefix).unwrap(), wanted);
            for (key, put) in &self.snapshots {
                if let Ok(Some(found)) = self.store.snapshot(key) {
                    prop_assert_eq!(&found, put);
                }
            }
        }
        for (key, put) in &self.snapshots {
            self.store.put_snapshot(key, put).unwrap();
            let found = self.store.snapshot(key).unwrap();
            prop_assert_eq!(found.as_ref(), Some(put));
        }
        Ok(())
    }
}

thread_local! {
    static WHOLE: Whole = Whole::new();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("NEURON_LONG").is_some() { 5_000 } else { 80 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_bytes_of_the_side_file_change_the_answers_stay(
        changes in proptest::collection::vec((any::<Index>(), 1..=255_u8), 1..6),
        row in any::<Index>(), digits in 1..=64_usize,
    ) {
        WHOLE.with(|whole| {
            let mut bytes = whole.bytes.clone();
            for (place, change) in changes {
                bytes[place.index(whole.bytes.len())] ^= change;
            }
            whole.answers_with(&bytes, row.get(&whole.rows), digits)
        })?;
    }

    #[test]
    fn wherever_the_side_file_is_cut_or_overwritten_the_answers_stay(
        end in any::<Index>(), from in any::<Index>(), filler in any::<u8>(), tail in 0..5_000_usize,
        row in any::<Index>(), digits in 1..=64_usize,
    ) {
        WHOLE.with(|whole| {
            let end = end.index(whole.bytes.len() + 1);
            let mut bytes = whole.bytes[..end].to_vec();
            bytes.resize(end + tail, filler);
            // A hole, as a disk leaves one.
            let from = from.index(bytes.len() + 1);
            let upto = (from + 700).min(bytes.len());
            whole.answers_with(&bytes, row.get(&whole.rows), digits)?;
            bytes[from..upto].fill(filler);
            whole.answers_with(&bytes, row.get(&whole.rows), digits)
        })?;
    }
}
