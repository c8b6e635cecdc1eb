//! What the doctor says of each kind of damage, and what it puts right.

use std::{fs, path::Path, sync::Arc};

use neuron::{
    Digest, ErrorKind, Ledger, Millis,
    doctor::{self, Diagnosis, Severity},
    ownership::Ownership,
    store::{Access, Options, Part, Sqlite, Store, export, verify},
};
use rusqlite::Connection;

use super::{files, filled, rows, say, verifying::tamper};

fn examined(path: &Path) -> Diagnosis {
    doctor::examine(path).unwrap()
}

/// The one finding, which says all of these words.
fn finding(path: &Path, severity: Severity, by_repair: bool, words: &[&str]) {
    let found = examined(path);
    assert_eq!(found.severity(), Some(severity), "{found:?}");
    let told = found.findings.iter().find(|finding| {
        let told = format!("{}: {}", finding.what, finding.remedy);
        finding.severity == severity && finding.by_repair == by_repair && words.iter().all(|word| told.contains(word))
    });
    assert!(told.is_some(), "{words:?}: {found:?}");
}

fn reading(path: &Path) -> Sqlite {
    let options = Options {
        access: Access::Read,
        ..Options::default()
    };
    Sqlite::open(path, options).unwrap()
}

fn shell(path: &Path, statements: &str) {
    Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

#[test]
fn a_sound_store_gives_no_finding_and_is_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sound.db");
    filled(&path);
    let before = files(folder.path());
    let found = examined(&path);
    assert_eq!((found.severity(), found.verified.unwrap().envelopes), (None, 6));
    assert_eq!(files(folder.path()), before);
    assert_eq!(doctor::mend(&path).unwrap(), [""; 0]);
    assert_eq!(
        doctor::examine(folder.path().join("none.db")).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn what_is_no_store_of_this_program_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("text.db"), "# a note\n".repeat(500)).unwrap();
    finding(&path("text.db"), Severity::Damaged, false, &["not a SQLite file"]);
    shell(&path("other.db"), "PRAGMA application_id = 77; CREATE TABLE other (a)");
    finding(&path("other.db"), Severity::Damaged, false, &["another application"]);
    filled(&path("newer.db"));
    shell(&path("newer.db"), "PRAGMA user_version = 9");
    finding(
        &path("newer.db"),
        Severity::Damaged,
        false,
        &["format 9", "newer version"],
    );
    filled(&path("root.db"));
    tamper(
        &path("root.db"),
        &format!(
            "UPDATE schema SET hash = x'{}', definition = '{{}}' WHERE place = 1",
            Digest::derive("neuron-schema-v1", b"{}")
        ),
    );
    finding(
        &path("root.db"),
        Severity::Note,
        false,
        &["has the root", "can be read"],
    );
    for name in ["text.db", "other.db", "newer.db"] {
        assert_eq!(doctor::mend(path(name)).unwrap_err().kind(), ErrorKind::NotAStore);
    }
}

/// A store of many pages.
fn large(path: &Path) {
    let store = Sqlite::open(path, Options::default()).unwrap();
    for n in 0..60 {
        say(&store, "a", &format!("{n} {}", "x".repeat(2_000)));
    }
}

#[test]
fn a_file_that_was_cut_off_says_what_can_be_read_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.db");
    large(&path);
    let length = fs::metadata(&path).unwrap().len();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(length / 4096 * 3 / 4 * 4096)
        .unwrap();
    let page = format!("cut off after its page {}", length / 4096 * 3 / 4);
    finding(
        &path,
        Severity::Damaged,
        false,
        &[&page, "can be read up to pos", "restore"],
    );
    let upto: u64 = {
        let told = doctor::left(&path).unwrap();
        told.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!((20..60).contains(&upto), "{upto}");
}

#[test]
fn a_page_that_is_none_is_named_with_what_can_be_read_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.db");
    large(&path);
    let record = rows(&reading(&path))[40].record.clone();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes
        .windows(record.len())
        .position(|it| it == record.as_bytes())
        .unwrap()
        / 4096;
    bytes[at * 4096..(at + 1) * 4096].fill(0xee);
    fs::write(&path, bytes).unwrap();
    let page = format!("page {} of ", at + 1);
    finding(
        &path,
        Severity::Damaged,
        false,
        &[&page, "first that is damaged", "can be read up to pos"],
    );
    let error = verify::verify(&reading(&path)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Corrupt && error.to_string().contains("can be read up to pos"),
        "{error}"
    );
}

#[test]
fn a_bad_envelope_and_a_bad_artifact_are_told_and_nothing_mends_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.db");
    filled(&path);
    let content: Arc<[u8]> = b"content".as_slice().into();
    let hash = Digest::content(&content);
    {
        let store = Sqlite::open(&path, Options::default()).unwrap();
        store.put_chunks(vec![(hash, content)]).unwrap();
        let manifest = neuron::store::Manifest {
            hash,
            bytes: 7,
            chunks: vec![hash],
        };
        store.put_manifest(&manifest).unwrap();
    }
    tamper(&path, "UPDATE chunk SET bytes = CAST('CONTENT' AS BLOB)");
    finding(
        &path,
        Severity::Damaged,
        false,
        &["artifact", "chunk 1 of 1", "restore"],
    );
    tamper(
        &path,
        "UPDATE envelope SET record = replace(record, 'a1', 'A1') WHERE pos = 3",
    );
    finding(
        &path,
        Severity::Damaged,
        false,
        &["first bad envelope", "pos 3 (a seq 2", "restore"],
    );
    let before = fs::read(&path).unwrap();
    assert_eq!(doctor::mend(&path).unwrap(), [""; 0]);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn guards_and_indexes_are_put_right_and_nothing_stored_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    for (change, says) in [
        (
            "DROP TRIGGER envelope_no_DELETE",
            "trigger `envelope_no_DELETE` is missing",
        ),
        (
            "DROP TRIGGER chunk_next; CREATE TRIGGER chunk_next BEFORE INSERT ON chunk BEGIN SELECT 1; END",
            "not as it was made",
        ),
        (
            "CREATE TRIGGER \"a \"\"b\" AFTER INSERT ON envelope BEGIN SELECT 1; END",
            "none of a store's",
        ),
        ("DROP INDEX envelope_cause", "index `envelope_cause` is missing"),
        (
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = 'CREATE INDEX envelope_type ON envelope (at)' WHERE name = 'envelope_type'",
            "index `envelope_type`",
        ),
    ] {
        let path = folder.path().join(format!("{}.db", Digest::content(change.as_bytes())));
        filled(&path);
        let before = rows(&reading(&path));
        shell(&path, change);
        finding(&path, Severity::Mendable, true, &[says]);
        let done = doctor::mend(&path).unwrap();
        assert!(!done.is_empty(), "{change}");
        assert_eq!(examined(&path).severity(), None, "{change}: {done:?}");
        assert_eq!(rows(&reading(&path)), before);
        let store = Sqlite::open(&path, Options::default()).unwrap();
        say(&store, "a", "further");
        verify::verify(&store).unwrap();
    }
}

#[test]
fn a_store_is_put_right_while_others_write_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.db");
    filled(&path);
    let store = Sqlite::open_apart(&path, Options::default()).unwrap();
    say(&store, "a", "before");
    shell(&path, "DROP TRIGGER envelope_no_UPDATE");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..200).for_each(|n| drop(say(&store, "a", &n.to_string()))));
        doctor::mend(&path).unwrap();
        writer.join().unwrap();
    });
    assert_eq!(store.head(&super::topic("a")).unwrap(), 204);
    verify::verify(&store).unwrap();
}

#[test]
fn a_table_that_was_changed_is_not_mended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.db");
    filled(&path);
    shell(&path, "ALTER TABLE manifest ADD COLUMN note TEXT");
    finding(
        &path,
        Severity::Damaged,
        false,
        &["table `manifest` is not as it was made"],
    );
    doctor::mend(&path).unwrap();
    finding(&path, Severity::Damaged, false, &["table `manifest`"]);
}

#[test]
fn a_damaged_side_file_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("side.db");
    filled(&path);
    let side = folder.path().join("side.db.side");
    fs::write(&side, "no index at all".repeat(1_000)).unwrap();
    finding(&path, Severity::Mendable, true, &["side file", "made anew"]);
    doctor::mend(&path).unwrap();
    assert!(!side.exists());
    assert_eq!(examined(&path).severity(), None);
}

#[test]
fn slots_of_the_dead_are_removed_and_those_of_the_living_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slots.db");
    let ledger = Ledger::open(&path, Options::default()).unwrap();
    let alive = Ownership::join(ledger, std::time::Duration::from_secs(9)).unwrap();
    let owners = folder.path().join("slots.db.owners");
    let living = fs::read_dir(&owners).unwrap().count();
    fs::write(owners.join("77-0123456789abcdef"), "0000000077 00000000000000000009\n").unwrap();
    fs::write(owners.join("a note of somebody"), "mine").unwrap();
    finding(
        &path,
        Severity::Mendable,
        true,
        &["1 slot of processes that have died is left"],
    );
    let done = doctor::mend(&path).unwrap();
    assert!(done.iter().any(|done| done.contains("77-0123456789abcdef")), "{done:?}");
    assert_eq!(fs::read_dir(&owners).unwrap().count(), living + 1);
    drop(alive);
}

#[test]
fn a_log_that_was_left_is_told_and_a_huge_one_is_moved_in() {
    let folder = tempfile::tempdir().unwrap();
    let (path, left) = (folder.path().join("own.db"), folder.path().join("left.db"));
    let store = Sqlite::open(&path, Options::default()).unwrap();
    say(&store, "a", "in the log");
    for suffix in ["", "-wal"] {
        fs::copy(
            folder.path().join(format!("own.db{suffix}")),
            folder.path().join(format!("left.db{suffix}")),
        )
        .unwrap();
    }
    finding(
        &left,
        Severity::Note,
        false,
        &["write-ahead log", "was read to its end"],
    );
    assert_eq!(examined(&left).verified.unwrap().envelopes, 1);
    let log = fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("left.db-wal"))
        .unwrap();
    log.set_len(80 << 20).unwrap();
    finding(&left, Severity::Mendable, true, &["write-ahead log", "has grown to"]);
    let done = doctor::mend(&left).unwrap();
    assert!(
        done.iter().any(|done| done.contains("moved into the store")),
        "{done:?}"
    );
    assert_eq!(examined(&left).severity(), None);
    assert_eq!(rows(&reading(&left)).len(), 1);
}

#[test]
fn what_hinders_writers_beside_a_store_is_told_with_what_to_do() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.db");
    filled(&path);
    let (lock, owners) = (folder.path().join("own.db.lock"), folder.path().join("own.db.owners"));
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    allow(&lock, 0o444);
    finding(
        &path,
        Severity::Mendable,
        false,
        &["own.db.lock is read-only", "give it write permission"],
    );
    fs::remove_file(&lock).unwrap();
    assert_eq!(examined(&path).severity(), None, "it is made anew");
    fs::create_dir(&lock).unwrap();
    finding(&path, Severity::Mendable, false, &["own.db.lock is no regular file"]);
    fs::remove_dir(&lock).unwrap();
    fs::write(&owners, "").unwrap();
    finding(&path, Severity::Mendable, false, &["own.db.owners is no folder"]);
    fs::remove_file(&owners).unwrap();
    allow(&path, 0o444);
    finding(&path, Severity::Note, false, &["own.db is read-only"]);
    allow(folder.path(), 0o555);
    finding(&path, Severity::Mendable, false, &["the folder", "is read-only"]);
    allow(folder.path(), 0o755);
}

#[test]
fn chunks_of_no_artifact_are_told_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orphan.db");
    filled(&path);
    let content: Arc<[u8]> = b"never finished".as_slice().into();
    let hash = Digest::content(&content);
    Sqlite::open(&path, Options::default())
        .unwrap()
        .put_chunks(vec![(hash, content)])
        .unwrap();
    finding(
        &path,
        Severity::Note,
        false,
        &["of the stored chunks 1 (14 bytes) belong to no artifact"],
    );
    doctor::mend(&path).unwrap();
    assert!(reading(&path).chunk(&hash).unwrap().is_some());
}

#[test]
fn an_archive_is_examined_and_its_seals_are_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, archive) = (folder.path().join("own.db"), folder.path().join("archive.db"));
    filled(&path);
    let mut lines = Vec::new();
    let emit = |line: &str| {
        lines.extend_from_slice(line.as_bytes());
        Ok::<(), neuron::Error>(())
    };
    export::export(&reading(&path), &Part::ALL, emit).unwrap();
    export::import(&lines[..], &archive, |_| {}).unwrap();
    finding(&archive, Severity::Note, false, &["sealed archive"]);
    shell(&archive, "DROP TRIGGER envelope_sealed");
    finding(
        &archive,
        Severity::Mendable,
        true,
        &["trigger `envelope_sealed` is missing"],
    );
    doctor::mend(&archive).unwrap();
    finding(&archive, Severity::Note, false, &["sealed archive"]);
    shell(&archive, "DROP TABLE archive");
    finding(&archive, Severity::Damaged, false, &["table `archive` is missing"]);
    let refused = Ledger::open(&archive, Options::default()).unwrap();
    let draft = super::draft("a", "more");
    let batch = neuron::store::conformance::batch(neuron::Append::of([draft]), Millis(1)).unwrap();
    assert_eq!(
        refused.store().append_blocking(batch).unwrap_err().kind(),
        ErrorKind::ReadOnly
    );
}

#[test]
fn what_is_damaged_is_never_called_intact_and_the_advice_can_be_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("advice.db");
    large(&path);
    // An index: every record can be read, and it says so.
    let root: i64 = Connection::open(&path)
        .unwrap()
        .query_row(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'envelope_type'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let whole = fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    let page = usize::try_from(root - 1).unwrap() * 4096;
    bytes[page + 100..page + 4096].fill(0xee);
    fs::write(&path, &bytes).unwrap();
    let found = examined(&path);
    assert_eq!(
        (found.severity(), &found.verified),
        (Some(Severity::Damaged), &None),
        "{found:?}"
    );
    let advice =
        |it: &doctor::Finding| it.what.contains("60 envelopes, up to pos 60") && it.remedy.contains("--to 60`");
    assert!(found.findings.iter().any(advice), "{found:?}");
    // A record in the middle: what stands before it can be exported as the advice says.
    fs::write(&path, &whole).unwrap();
    tamper(
        &path,
        "UPDATE envelope SET record = replace(record, '41 x', '41 y') WHERE pos = 42",
    );
    finding(&path, Severity::Damaged, false, &["pos 42", "`neuron export --to 41`"]);
    let part = Part { to: 41, ..Part::ALL };
    let mut lines = Vec::new();
    export::export(&reading(&path), &part, |line| {
        lines.extend(line.bytes());
        Ok::<_, neuron::Error>(())
    })
    .unwrap();
    export::import(&lines[..], &folder.path().join("before.db"), |_| {}).unwrap();
    // A file that cannot be opened gets no advice that cannot be followed.
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let found = examined(&path);
    assert!(
        found.findings.iter().all(|finding| !finding.remedy.contains("export")),
        "{found:?}"
    );
}

#[test]
fn a_guard_of_the_past_that_was_missing_is_a_reason_to_compare_a_head() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("guard.db");
    filled(&path);
    shell(&path, "DROP TRIGGER envelope_no_DELETE");
    finding(
        &path,
        Severity::Mendable,
        true,
        &["envelope_no_DELETE", "neuron check --since HEAD"],
    );
}

#[test]
fn what_stands_in_the_place_of_the_side_file_is_told_and_left_and_the_rest_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("place.db");
    filled(&path);
    shell(&path, "DROP INDEX envelope_cause");
    let side = folder.path().join("place.db.side");
    let _ = fs::remove_file(&side);
    fs::create_dir(&side).unwrap();
    finding(&path, Severity::Mendable, false, &["place.db.side", "move it away"]);
    let done = doctor::mend(&path).unwrap();
    assert_eq!(done.len(), 1, "{done:?}");
    assert!(side.is_dir() && done[0].contains("envelope_cause"), "{done:?}");
    // Also where the tables are damaged.
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..8192].fill(0xee);
    fs::write(&path, bytes).unwrap();
    fs::remove_dir(&side).unwrap();
    fs::write(&side, "no index at all".repeat(1_000)).unwrap();
    assert_eq!(doctor::mend(&path).unwrap().len(), 1);
    assert!(!side.exists());
}
