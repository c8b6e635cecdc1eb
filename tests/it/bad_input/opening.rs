//! Files that are no store, or not one that this program may write, as somebody meets them who runs a program on them.

use std::{fs, path::Path};

use neuron::{ENVELOPE_CONTEXT, Schema};
use neuron_workspace::{Process, TempDir, example, scratch};
use rusqlite::{Connection, params};

/// Runs the seed on a file; gives whether it went well, and what it said.
fn run(store: &Path) -> (bool, String) {
    let mut command = example("seed");
    command.arg(store);
    let (status, said) = Process::start(command).wait();
    (status.success(), said.join("\n"))
}

/// A store with a conversation in it.
fn talked() -> (TempDir, std::path::PathBuf) {
    let folder = scratch();
    let store = folder.path().join("talk.db");
    let mut command = example("seed");
    command.arg(&store);
    let mut process = Process::start(command);
    process.say("hello");
    let (status, said) = process.wait();
    assert!(status.success(), "{said:?}");
    (folder, store)
}

/// The program refuses the file, says all of this, and has not touched it.
fn assert_refused(store: &Path, says: &[&str]) {
    let before = fs::read(store).unwrap();
    let (success, said) = run(store);
    assert!(!success, "{says:?}: {said}");
    let name = store.file_name().unwrap().to_str().unwrap();
    for part in says.iter().chain([&name]) {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
    assert!(fs::read(store).unwrap() == before, "{says:?}: the file was changed");
}

fn assert_goes_on(store: &Path) {
    let (success, said) = run(store);
    assert!(success && said.contains("reply 1 to “hello”"), "{said}");
}

#[test]
fn a_file_of_another_kind_is_named_and_left_alone() {
    let folder = scratch();
    for (name, content) in [
        ("letter.txt", "Dear Ada, ".repeat(1_000)),
        ("short.txt", "x".into()),
        ("almost.db", "SQLite format 4\0".repeat(64)),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        assert_refused(&file, &["NotAStore", "give the path of a store"]);
    }
    let other = folder.path().join("browser.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE cookie (name TEXT); PRAGMA application_id = 7;")
        .unwrap();
    assert_refused(&other, &["NotAStore", "another application (id 0x7)"]);
    let stub = folder.path().join("stub.db");
    fs::write(&stub, &fs::read(&other).unwrap()[..50]).unwrap();
    assert_refused(&stub, &["NotAStore", "too short for a store"]);
}

#[test]
fn a_truncated_store_is_told_as_such_and_read_again_once_it_is_whole() {
    let (_folder, store) = talked();
    let whole = fs::read(&store).unwrap();
    for bytes in [50, 100, 4_096, whole.len() / 2, whole.len() - 4_096] {
        fs::write(&store, &whole[..bytes]).unwrap();
        let (success, said) = run(&store);
        assert!(!success, "cut to {bytes} bytes: {said}");
        let named = said.contains("NotAStore") || said.contains("Corrupt");
        assert!(
            named && said.contains("talk.db") && !said.contains("panicked"),
            "cut to {bytes} bytes: {said}"
        );
        assert_eq!(fs::metadata(&store).unwrap().len(), bytes as u64);
    }
    fs::write(&store, whole).unwrap();
    assert_goes_on(&store);
}

#[test]
fn what_stands_where_a_file_of_the_store_belongs_is_named() {
    for suffix in ["-wal", "-shm"] {
        let (_folder, store) = talked();
        let mut name = store.clone().into_os_string();
        name.push(suffix);
        fs::create_dir(&name).unwrap();
        assert_refused(&store, &[name.to_str().unwrap(), "no regular file", "move it away"]);
        fs::remove_dir(&name).unwrap();
        assert_goes_on(&store);
    }
}

#[test]
fn a_read_only_store_is_not_written_and_is_once_it_may_be() {
    let (_folder, store) = talked();
    let writable = fs::metadata(&store).unwrap().permissions();
    let mut permissions = writable.clone();
    permissions.set_readonly(true);
    fs::set_permissions(&store, permissions).unwrap();
    assert_refused(
        &store,
        &["ReadOnly", "give it write permission, or open it for reading"],
    );
    fs::set_permissions(&store, writable).unwrap();
    assert_goes_on(&store);
}

#[test]
fn a_newer_format_is_told_with_both_numbers() {
    let (_folder, store) = talked();
    let set = |format: i64| {
        let shell = Connection::open(&store).unwrap();
        shell.pragma_update(None, "user_version", format).unwrap();
    };
    set(9);
    assert_refused(
        &store,
        &["NotAStore", "has format 9", "knows format 2", "newer version"],
    );
    set(1);
    assert_refused(
        &store,
        &[
            "NotAStore",
            "has format 1",
            "knows format 2",
            "use the version that made it",
        ],
    );
    set(2);
    assert_goes_on(&store);
}

#[test]
fn a_store_of_another_root_is_not_written_and_both_roots_are_named() {
    let (_folder, store) = talked();
    let own = Schema::plane0().reference().0;
    let shell = Connection::open(&store).unwrap();
    shell.execute_batch("DROP TRIGGER schema_no_UPDATE").unwrap();
    let exchange = |hash: &[u8]| {
        let set = "UPDATE schema SET hash = ?1 WHERE place = 1";
        shell.execute(set, params![hash]).unwrap();
        shell
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
    };
    let other = neuron::Digest::content(b"another root");
    exchange(other.as_bytes());
    assert_refused(
        &store,
        &[
            "ReadOnly",
            &other.to_string(),
            &own.to_string(),
            ENVELOPE_CONTEXT,
            "can be read",
        ],
    );
    exchange(own.as_bytes());
    drop(shell);
    assert_goes_on(&store);
}
