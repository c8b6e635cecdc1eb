//! A write-ahead log of which bytes were changed: SQLite reads it only up to there, and says nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use neuron::{
    Append, Error, ErrorKind,
    doctor::{self, Severity},
    store::{Access, Durability, Fault, Options, Point, Sqlite, Store, verify},
};

use super::{append, draft, rows, say};

const HEADER: usize = 32;
const FRAME: usize = 24 + 4096;

fn reading(path: &Path) -> Result<Sqlite, Error> {
    let options = Options {
        access: Access::Read,
        ..Options::default()
    };
    Sqlite::open(path, options)
}

fn log_of(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

/// What a process that was killed leaves of a store that it has open.
fn left_by_a_crash(path: &Path, to: &Path) -> PathBuf {
    fs::create_dir(to).unwrap();
    let copy = to.join("crash.db");
    fs::copy(path, &copy).unwrap();
    fs::copy(log_of(path), log_of(&copy)).unwrap();
    copy
}

#[test]
fn a_byte_that_is_changed_in_the_write_ahead_log_makes_no_commit_vanish_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("open.db");
    let store = Sqlite::open_apart(&path, Options::default()).unwrap();
    for n in 0..12 {
        say(&store, "a", &format!("{n}"));
    }
    let sound = left_by_a_crash(&path, &folder.path().join("sound"));
    let whole = fs::read(log_of(&sound)).unwrap();
    let frames = (whole.len() - HEADER) / FRAME;
    assert!(frames > 20, "{frames}");
    verify::verify(&reading(&sound).unwrap()).unwrap();
    assert!(doctor::examine(&sound).unwrap().severity() <= Some(Severity::Note));
    let mut found_out = 0;
    for frame in (0..frames).step_by(3) {
        // A page, a checksum, the generation, and of the first one also the head of the log.
        let at = HEADER + frame * FRAME;
        let mut places = vec![at + 24 + 1_000, at + 17, at + 9];
        if frame == 0 {
            places.extend(0..12);
            places.extend([12, 16, 20, 24]);
        }
        for place in places {
            let copy = left_by_a_crash(&path, &folder.path().join(format!("{place}")));
            let mut bytes = whole.clone();
            bytes[place] ^= 0x40;
            fs::write(log_of(&copy), bytes).unwrap();
            let last = reading(&copy).map_or(0, |store| rows(&store).len());
            // Of the last commit nothing stands behind, so it cannot be told from one that was cut off by a crash.
            if last >= 11 {
                continue;
            }
            found_out += 1;
            let error = reading(&copy).and_then(|store| verify::verify(&store)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            let refused = Sqlite::open_apart(&copy, Options::default()).map(drop).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Corrupt, "{place}: it would be written over");
            let found = doctor::examine(&copy).unwrap();
            assert_eq!(found.severity(), Some(Severity::Damaged), "{place}: {found:?}");
            assert_eq!(found.verified, None, "what is left is not called intact");
            let before = fs::read(log_of(&copy)).unwrap();
            doctor::mend(&copy).unwrap();
            assert_eq!(fs::read(log_of(&copy)).unwrap(), before, "nothing is written over it");
            let told = found
                .findings
                .iter()
                .any(|finding| finding.what.contains("crash.db-wal"));
            assert!(
                told && error.to_string().contains("crash.db-wal"),
                "{place}: {error}, {found:?}"
            );
        }
    }
    assert!(found_out > 2 * frames / 3, "{found_out} of {frames} frames");
}

#[test]
fn a_log_that_others_write_to_begin_anew_and_roll_back_in_is_never_called_damaged() {
    #[derive(Debug, Default)]
    struct Refuse(AtomicBool);
    impl Fault for Refuse {
        fn at(&self, point: Point) -> Result<(), Error> {
            if point == Point::BeforeCommit && self.0.load(Ordering::SeqCst) {
                return Err(Error::new(ErrorKind::Io, "refused"));
            }
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("busy.db");
    let refuse = Arc::new(Refuse::default());
    let options = Options {
        fault: Some(refuse.clone()),
        ..Options::default()
    };
    let store = Sqlite::open_apart(&path, options).unwrap();
    let large = "x".repeat(900_000);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let looks = |reader: &Sqlite| reader.guarded().unwrap();
            while !ended.load(Ordering::SeqCst) {
                reading(&path).as_ref().map_or_else(|error| panic!("{error}"), looks);
            }
        });
        for n in 0..40 {
            // More than the cache of the writer holds, so that it is written before it is taken back.
            refuse.0.store(true, Ordering::SeqCst);
            let batch = Append::of((0..6).map(|_| draft("a", &large)));
            append(&store, batch).unwrap_err();
            refuse.0.store(false, Ordering::SeqCst);
            say(&store, "a", &format!("{n}"));
            if n % 2 == 0 {
                say(&store, "a", &large);
            }
            store.guarded().unwrap();
        }
        ended.store(true, Ordering::SeqCst);
    });
    let left = left_by_a_crash(&path, &folder.path().join("left"));
    verify::verify(&reading(&left).unwrap()).unwrap();
}

#[test]
fn a_store_whose_log_is_damaged_goes_on_in_a_backup_or_if_a_power_failure_may_take_commits_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("open.db");
    let store = Sqlite::open_apart(&path, Options::default()).unwrap();
    for n in 0..12 {
        say(&store, "a", &format!("{n}"));
    }
    let copy = left_by_a_crash(&path, &folder.path().join("crash"));
    let mut bytes = fs::read(log_of(&copy)).unwrap();
    bytes[HEADER + 8 * FRAME + 1_000] ^= 0x40;
    fs::write(log_of(&copy), &bytes).unwrap();
    let kept = folder.path().join("kept.db");
    let readable = rows(&reading(&copy).unwrap());
    reading(&copy).unwrap().backup(&kept, &mut |_| {}).unwrap();
    let backup = Sqlite::open_apart(&kept, Options::default()).unwrap();
    assert_eq!(rows(&backup), readable);
    assert!(!readable.is_empty() && readable.len() < 12, "{}", readable.len());
    assert_eq!(say(&backup, "a", "goes on").seq, readable.len() as u64 + 1);
    assert_eq!(fs::read(log_of(&copy)).unwrap(), bytes);
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    let lenient = Sqlite::open_apart(&copy, options).unwrap();
    assert_eq!(say(&lenient, "a", "goes on").seq, readable.len() as u64 + 1);
}
