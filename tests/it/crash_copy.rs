//! A process that dies while it makes a backup or an archive leaves no file that looks whole, and nothing in the way of
//! whoever tries again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use neuron::{
    Digest, Error, Ledger,
    store::{Access, Options, Part, Sqlite, Store, export, verify},
};
use neuron_workspace::Process;

/// What a child makes, and after how many words on its progress it dies.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Backup(u64),
    Import(u64),
}

/// Enough for a few steps of a backup.
const BYTES: usize = 14 << 20;

fn source(folder: &Path) -> PathBuf {
    folder.join("own.db")
}

fn fill(folder: &Path) {
    let ledger = Ledger::open(source(folder), Options::default()).unwrap();
    // Every chunk is another one.
    let content: Vec<u8> = (0..BYTES / 32)
        .flat_map(|n| *Digest::content(&n.to_le_bytes()).as_bytes())
        .collect();
    ledger.store_blob(&content[..]).unwrap();
    let mut lines = Vec::new();
    let emit = |line: &str| {
        lines.extend_from_slice(line.as_bytes());
        Ok::<(), Error>(())
    };
    export::export(&**ledger.store(), &Part::ALL, emit).unwrap();
    fs::write(folder.join("lines"), lines).unwrap();
}

fn open(path: &Path) -> Sqlite {
    let options = Options {
        access: Access::Read,
        ..Options::default()
    };
    Sqlite::open(path, options).unwrap()
}

/// Does it; aborts the process at the given word on its progress, never at 0.
fn make(folder: &Path, to: &Path, deed: Deed) -> u64 {
    let (Deed::Backup(end) | Deed::Import(end)) = deed;
    let mut words = 0;
    let mut word = || {
        words += 1;
        if words == end {
            std::process::abort();
        }
    };
    match deed {
        Deed::Backup(_) => drop(open(&source(folder)).backup(to, &mut |_| word()).unwrap()),
        Deed::Import(_) => {
            let lines = fs::read(folder.join("lines")).unwrap();
            export::import(&lines[..], to, |_| word()).unwrap();
        }
    }
    words
}

/// The child's part. Without a deed it fills the folder itself, and sees that there are words enough to die at.
#[test]
fn a_child_makes_a_copy() {
    let Some(folder) = std::env::var_os("COPY_FOLDER").map(PathBuf::from) else {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        for deed in [Deed::Backup(0), Deed::Import(0)] {
            let to = folder.path().join(format!("{deed:?}"));
            assert!(make(folder.path(), &to, deed) > 3, "{deed:?}");
            verify::verify(&open(&to)).unwrap();
        }
        return;
    };
    let end = std::env::var("COPY_END").unwrap().parse().unwrap();
    let deed = match std::env::var("COPY_DEED").unwrap().as_str() {
        "backup" => Deed::Backup(end),
        _ => Deed::Import(end),
    };
    make(&folder, &folder.join("copy.db"), deed);
}

fn child(folder: &Path, deed: Deed) -> Process {
    let (name, end) = match deed {
        Deed::Backup(end) => ("backup", end),
        Deed::Import(end) => ("import", end),
    };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "crash_copy::a_child_makes_a_copy", "--nocapture"])
        .env("COPY_FOLDER", folder)
        .env("COPY_DEED", name)
        .env("COPY_END", end.to_string());
    Process::start(command)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_copy_that_is_cut_off_leaves_nothing_that_looks_whole_and_is_made_by_the_next_who_tries() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, copy) = (folder.path(), folder.path().join("copy.db"));
    fill(folder);
    let before = names(folder);
    for deed in [
        Deed::Backup(1),
        Deed::Backup(2),
        Deed::Backup(4),
        Deed::Import(1),
        Deed::Import(3),
        Deed::Import(30),
    ] {
        let (status, said) = child(folder, deed).wait();
        assert!(!status.success(), "{deed:?}: {said:?}");
        assert!(!copy.exists(), "{deed:?}");
        let left: Vec<_> = names(folder)
            .into_iter()
            .filter(|name| !before.contains(name))
            .collect();
        assert!(
            left.iter().all(|name| name.starts_with("copy.db.unfinished")),
            "{deed:?}: {left:?}"
        );
        assert!(!left.is_empty(), "{deed:?} died before it began");
    }
    for deed in [Deed::Backup(0), Deed::Import(0)] {
        // The remains of one are no hindrance, whoever left them.
        assert!(!child(folder, Deed::Backup(2)).wait().0.success());
        let (status, said) = child(folder, deed).wait();
        assert!(status.success(), "{deed:?}: {said:?}");
        assert_eq!(verify::verify(&open(&copy)).unwrap().artifact_bytes, BYTES as u64);
        fs::remove_file(&copy).unwrap();
        assert_eq!(names(folder), before, "{deed:?}");
    }
}
