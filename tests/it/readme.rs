//! The program of the README is one that runs, and that survives what the README says.

use std::{fs, path::Path, process::Command};

use neuron::store::{Access, Options, Sqlite, verify};
use neuron_workspace::{Process, example, scratch};
use rusqlite::{Connection, OpenFlags};

/// Envelopes in a store that another process may be writing, or making.
fn envelopes(store: &Path) -> i64 {
    let connection = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let counted = connection.and_then(|store| store.query_row("SELECT count(*) FROM envelope", [], |row| row.get(0)));
    counted.unwrap_or(0)
}

fn digest(folder: &Path) -> Command {
    let mut command = example("digest");
    command.current_dir(folder);
    command
}

#[test]
fn its_program_is_an_example_word_for_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [readme, example] =
        ["README.md", "examples/digest.rs"].map(|file| fs::read_to_string(root.join(file)).unwrap());
    let (_, program) = readme.split_once("## A program\n\n```rust,no_run\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let at = example.find("use orchestrator").unwrap();
    assert_eq!(program, &example[at..]);
}

#[test]
fn its_program_is_killed_wherever_it_is_and_run_again_to_the_same_end() {
    let folder = scratch();
    let (status, whole) = Process::start(digest(folder.path())).wait();
    assert!(status.success(), "{whole:?}");
    let all = envelopes(&folder.path().join("digest.db"));
    assert!(all > 10, "{all}");
    for count in (0..all).step_by(3) {
        let folder = scratch();
        let store = folder.path().join("digest.db");
        let mut process = Process::start(digest(folder.path()));
        while envelopes(&store) < count {
            std::thread::yield_now();
        }
        process.kill();
        let (status, said) = Process::start(digest(folder.path())).wait();
        assert!(status.success(), "killed after {count}: {said:?}");
        assert_eq!(said, whole, "killed after {count}");
        let reading = Options {
            access: Access::Read,
            ..Options::default()
        };
        verify::verify(&Sqlite::open(&store, reading).unwrap()).unwrap();
    }
}
