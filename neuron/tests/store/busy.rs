//! A foreign program holds the file: whoever asks for anything is served, or told who is in the way.

use std::{path::Path, sync::Arc, time::Duration};

use futures::executor::block_on;
use neuron::{
    Append, Digest, Error, ErrorKind, Millis,
    store::{Access, Manifest, Options, Range, Select, Sqlite, Store, conformance, verify},
};
use rusqlite::Connection;

use super::{draft, filled, rows, topic};

fn options(access: Access) -> Options {
    Options {
        access,
        wait: Duration::from_millis(50),
        ..Options::default()
    }
}

/// An error that says who holds which file and what to do, in no words of SQLite.
fn is_told(path: &Path, error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    let told = error.to_string();
    let file = path.file_name().unwrap().to_str().unwrap();
    for part in ["another program", file, "try again"] {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
    for word in ["locked", "SQLITE", "busy"] {
        assert!(!told.contains(word), "{told}");
    }
}

/// What every verb that writes says.
fn writes(store: &Sqlite) -> Vec<Result<(), Error>> {
    let batch = || conformance::batch(Append::of([draft("a", "!")]), Millis(1)).unwrap();
    let content: Arc<[u8]> = Arc::from(*b"chunk");
    let chunk = Digest::content(&content);
    let manifest = Manifest {
        hash: chunk,
        bytes: 5,
        chunks: vec![chunk],
    };
    vec![
        store.append_blocking(batch()).map(drop),
        block_on(store.append(batch())).map(drop),
        store.put_chunks(vec![(chunk, content)]),
        store.put_manifest(&manifest),
    ]
}

/// What every verb that reads says.
fn reads(store: &Sqlite) -> Vec<Result<(), Error>> {
    let hash = Digest::content(b"absent");
    let schema = store.schemas().unwrap()[0].reference();
    vec![
        store.last().map(drop),
        store.page(&Select::All, Range::ALL).map(drop),
        store.row(&topic("a"), 1).map(drop),
        store.with_id("ab").map(drop),
        store.head(&topic("a")).map(drop),
        store.keyed(&topic("a"), "k").map(drop),
        store.epoch("run:r").map(drop),
        store.topics().map(drop),
        store.schema(&schema).map(drop),
        store.manifest(&hash).map(drop),
        store.manifests().map(drop),
        store.chunk(&hash).map(drop),
        store.sound(),
        verify::verify(store).map(drop),
    ]
}

fn all_served(outcomes: Vec<Result<(), Error>>) {
    for outcome in outcomes {
        outcome.unwrap();
    }
}

#[test]
fn while_another_program_writes_reading_goes_on_and_every_append_names_it() {
    for begin in ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("written.db");
        filled(&path);
        let store = Sqlite::open_apart(&path, options(Access::Create)).unwrap();
        let shell = Connection::open(&path).unwrap();
        shell.execute_batch(begin).unwrap();
        for outcome in writes(&store) {
            is_told(&path, &outcome.unwrap_err());
        }
        all_served(reads(&store));
        // Who opens it meanwhile can read it too.
        for access in [Access::Create, Access::Write, Access::Read] {
            let other = Sqlite::open_apart(&path, options(access)).unwrap();
            all_served(reads(&other));
        }
        let before = rows(&store).len();
        shell.execute_batch("ROLLBACK").unwrap();
        all_served(writes(&store));
        assert_eq!(rows(&store).len(), before + 2);
    }
}

#[test]
fn a_program_that_lets_nobody_in_is_named_by_every_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shut.db");
    filled(&path);
    let shell = Connection::open(&path).unwrap();
    shell
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;")
        .unwrap();
    for access in [Access::Create, Access::Write, Access::Read] {
        is_told(&path, &Sqlite::open_apart(&path, options(access)).unwrap_err());
    }
    drop(shell);
    let store = Sqlite::open_apart(&path, options(Access::Create)).unwrap();
    all_served(writes(&store));
}

#[test]
fn a_program_that_moves_the_log_into_the_file_without_end_holds_up_no_append() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("moved.db");
    filled(&path);
    let store = Sqlite::open_apart(&path, Options::default()).unwrap();
    std::thread::scope(|threads| {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        threads.spawn(|| {
            let shell = Connection::open(&path).unwrap();
            let ended = ended;
            while ended.try_recv().is_err() {
                for how in ["TRUNCATE", "RESTART", "FULL", "PASSIVE"] {
                    // It may find the file in use; the store must not mind.
                    let _ = shell.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(()));
                }
            }
        });
        for _ in 0..50 {
            all_served(writes(&store));
            all_served(reads(&store));
        }
        end.send(()).unwrap();
    });
}
