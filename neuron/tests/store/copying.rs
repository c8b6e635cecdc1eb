//! Backups: whole, consistent, taken while others write, and never half there.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use neuron::{
    Digest, ErrorKind,
    store::{Access, Manifest, Memory, Options, Sqlite, Store, verify},
};

use super::{files, filled, rows, say};

fn reading(path: &Path) -> Sqlite {
    let options = Options {
        access: Access::Read,
        ..Options::default()
    };
    Sqlite::open(path, options).unwrap()
}

#[test]
fn a_backup_holds_everything_verifies_and_is_a_store_to_write_to() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("own.db"), folder.path().join("copy.db"));
    filled(&path);
    let store = Sqlite::open(&path, Options::default()).unwrap();
    let chunk: Arc<[u8]> = vec![7; 100_000].into();
    let hash = Digest::content(&chunk);
    store.put_chunks(vec![(hash, chunk.clone())]).unwrap();
    let manifest = Manifest {
        hash,
        bytes: 100_000,
        chunks: vec![hash],
    };
    store.put_manifest(&manifest).unwrap();
    let mut seen = Vec::new();
    let copied = store.backup(&copy, &mut |progress| seen.push(progress)).unwrap();
    assert_eq!(copied.head, verify::head(&store).unwrap());
    assert_eq!(copied.bytes, fs::metadata(&copy).unwrap().len());
    assert!(seen.iter().all(|it| it.done <= it.total), "{seen:?}");
    let other = Sqlite::open(&copy, Options::default()).unwrap();
    assert_eq!(verify::verify(&other).unwrap(), verify::verify(&store).unwrap());
    assert_eq!((rows(&other), other.chunk(&hash).unwrap()), (rows(&store), Some(chunk)));
    assert_eq!(say(&other, "a", "further").pos, say(&store, "a", "on").pos);
    let names: Vec<_> = files(folder.path()).into_keys().collect();
    assert!(names.iter().all(|name| !name.contains("unfinished")), "{names:?}");
}

#[test]
fn a_backup_taken_under_four_writers_verifies_and_is_what_the_store_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("busy.db");
    let store = Sqlite::open(&path, Options::default()).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..4 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                for n in 0.. {
                    say(store, &format!("w{writer}"), &format!("{n} {}", "x".repeat(400)));
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let taken = (0..10).map(|n| {
            let to = folder.path().join(format!("{n}.db"));
            store.backup(&to, &mut |_| {}).map(|copied| (to, copied))
        });
        let taken: Vec<_> = taken.collect();
        stop.store(true, Ordering::Relaxed);
        for outcome in taken {
            let (to, copied) = outcome.unwrap();
            let copy = reading(&to);
            assert_eq!(verify::verify(&copy).unwrap().head, copied.head);
            // The ids up to there are the store's own: a prefix, and nothing else.
            verify::check(&store, &copied.head).unwrap();
        }
    });
}

#[test]
fn nothing_is_overwritten_and_a_refusal_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (path, taken) = (folder.path().join("own.db"), folder.path().join("taken.db"));
    filled(&path);
    let store = reading(&path);
    fs::write(&taken, "mine").unwrap();
    symlink("nowhere", folder.path().join("link.db")).unwrap();
    let before = files(folder.path());
    for (to, kind) in [
        (taken.clone(), ErrorKind::Conflict),
        (path, ErrorKind::Conflict),
        (folder.path().join("link.db"), ErrorKind::Conflict),
        (folder.path().join("no/such/copy.db"), ErrorKind::NotFound),
        (folder.path().to_owned(), ErrorKind::NotAStore),
    ] {
        let error = store.backup(&to, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), kind, "{}: {error}", to.display());
    }
    // A name that was taken while the copy was made is not overwritten either.
    let late = folder.path().join("late.db");
    let error = store
        .backup(&late, &mut |_| fs::write(&late, "theirs").unwrap())
        .unwrap_err();
    assert_eq!(
        (error.kind(), fs::read(&late).unwrap()),
        (ErrorKind::Conflict, b"theirs".to_vec())
    );
    fs::remove_file(&late).unwrap();
    assert_eq!(files(folder.path()), before);
    let memory = Memory::new().unwrap().backup(&late, &mut |_| {}).unwrap_err();
    assert_eq!(memory.kind(), ErrorKind::Misuse);
}

#[test]
fn of_many_who_copy_to_one_name_at_once_one_makes_a_whole_copy_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.db");
    filled(&path);
    let store = reading(&path);
    for turn in 0..20 {
        let copy = folder.path().join(format!("copy-{turn}.db"));
        let outcomes = thread::scope(|scope| {
            let all: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| store.backup(&copy, &mut |_| {})))
                .collect();
            all.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(outcomes.iter().filter(|it| it.is_ok()).count(), 1, "{outcomes:?}");
        for error in outcomes.iter().filter_map(|it| it.as_ref().err()) {
            assert!(
                [ErrorKind::Conflict, ErrorKind::Busy].contains(&error.kind()),
                "{error}"
            );
        }
        verify::verify(&reading(&copy)).unwrap();
    }
}

#[test]
fn whoever_may_not_read_the_store_may_not_read_its_copy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.db");
    filled(&path);
    for mode in [0o600, 0o640] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let copy = folder.path().join(format!("{mode:o}.db"));
        reading(&path).backup(&copy, &mut |_| {}).unwrap();
        let granted = fs::metadata(&copy).unwrap().permissions().mode() & 0o777;
        assert_eq!(granted & !mode, 0, "{granted:o}");
    }
}
