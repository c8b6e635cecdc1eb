//! The write-ahead log: moved beside the writers, and told about when somebody keeps it growing.

use std::{path::Path, sync::Arc, time::Duration};

use neuron::{
    Digest, limits,
    store::{Durability, Options, Sqlite, Store as _},
};
use rusqlite::Connection;

use super::say;

fn open(path: &Path) -> Sqlite {
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    Sqlite::open_apart(path, options).unwrap()
}

/// Writes so many bytes in all, in commits of a mebibyte.
fn pour(store: &Sqlite, bytes: u64) {
    let content: Arc<[u8]> = vec![7; limits::CHUNK_BYTES_MAX].into();
    let named = store.wal().unwrap().bytes;
    for commit in 0..bytes >> 20 {
        // What they are called does not matter here, only that each is new.
        let name = |part: u64| Digest::content(format!("{named} {commit} {part}").as_bytes());
        store
            .put_chunks((0..4).map(|part| (name(part), content.clone())).collect())
            .unwrap();
    }
}

/// Somebody else who has begun to read and does not end.
fn reader(path: &Path) -> Connection {
    let reader = Connection::open(path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader
        .query_row("SELECT count(*) FROM envelope", [], |row| row.get::<_, i64>(0))
        .unwrap();
    reader
}

#[test]
fn a_log_that_nobody_holds_is_begun_anew_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("flow.db"));
    pour(&store, 3 * limits::WAL_RUN_AHEAD_BYTES_MAX);
    let wal = store.wal().unwrap();
    assert!(wal.bytes < 2 * limits::WAL_RUN_AHEAD_BYTES_MAX, "{wal:?}");
    assert_eq!((wal.held_bytes, wal.held_for), (0, None));
}

#[test]
fn a_reader_that_does_not_end_is_told_about_and_the_log_shrinks_when_it_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held.db");
    let store = open(&path);
    say(&store, "a", "1");
    let reader = reader(&path);
    pour(&store, limits::WAL_KEPT_BYTES_MAX + 2 * limits::WAL_BYTES_MAX);
    let wal = store.wal().unwrap();
    assert!(
        wal.bytes > limits::WAL_KEPT_BYTES_MAX && wal.held_for.is_some(),
        "{wal:?}"
    );
    assert!(wal.held_bytes >= limits::WAL_BYTES_MAX, "{wal:?}");
    drop(reader);
    // Whoever looks on sees it let go of by itself, and cut by the commits after that.
    let mut looks = 0;
    while store.wal().unwrap().held_for.is_some() || store.wal().unwrap().bytes > limits::WAL_KEPT_BYTES_MAX {
        looks += 1;
        assert!(looks < 9_000, "{:?}", store.wal());
        say(&store, "a", "more");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    store.sound().unwrap();
}

#[test]
fn the_log_of_a_store_that_is_only_read_is_told_by_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read.db");
    let writer = open(&path);
    say(&writer, "a", "1");
    let options = Options {
        access: neuron::store::Access::Read,
        ..Options::default()
    };
    let store = Sqlite::open_apart(&path, options).unwrap();
    let wal = store.wal().unwrap();
    assert!(wal.bytes > 0 && wal.held_bytes == 0, "{wal:?}");
}
