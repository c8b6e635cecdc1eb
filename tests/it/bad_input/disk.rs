//! A disk that fills up, and a file that may not grow: real ones, under a program that runs on them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use neuron::{
    ConversationId, Ledger,
    store::{Access, Options, Select, verify::verify},
    topic::catalog,
};
use neuron_workspace::{TempDir, example, scratch};

/// Fifteen prompts of sixty thousand characters: more than the places below have room for.
fn long_prompts(folder: &Path) -> PathBuf {
    let path = folder.join("prompts");
    let lines: Vec<String> = (0..15).map(|n| format!("{n} {}\n", "so ".repeat(20_000))).collect();
    fs::write(&path, lines.concat()).unwrap();
    path
}

/// Runs a script of the shell with the seed as `$1`, a folder of its own as `$2` and the long prompts as `$3`.
fn shell(wrap: &[&str], script: &str) -> (TempDir, bool, String) {
    let folder = scratch();
    let prompts = long_prompts(folder.path());
    let seed = example("seed");
    let mut words = wrap.iter().copied().chain(["sh", "-c", script, "sh"]);
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .arg(seed.get_program())
        .arg(folder.path())
        .arg(&prompts);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        folder,
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// What the store holds after all: whole, every prompt but the refused one answered.
fn assert_whole(store: &Path) {
    let reading = Options {
        access: Access::Read,
        ..Options::default()
    };
    let ledger = Ledger::open(store, reading).unwrap();
    verify(&**ledger.store()).unwrap();
    let conversation = catalog::conversation(&ConversationId::new("seed").unwrap());
    let kinds: Vec<String> = ledger
        .read(Select::Topic(conversation))
        .envelopes()
        .map(|envelope| envelope.unwrap().body.kind.to_string())
        .collect();
    assert!(!kinds.is_empty() && kinds.len() < 30, "{} envelopes", kinds.len());
    for pair in kinds.chunks(2) {
        assert_eq!(pair, ["prompt", "reply"]);
    }
}

#[test]
fn a_full_disk_is_told_as_such_and_the_store_goes_on_when_there_is_room_again() {
    // Without the right to mount one there is no small disk.
    let mount = ["unshare", "--user", "--map-root-user", "--mount"];
    let may = Command::new(mount[0])
        .args(&mount[1..])
        .args(["sh", "-c", "mount -t tmpfs none /tmp"])
        .output();
    if !may.is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: this system lets nobody mount a small disk to fill");
        return;
    }
    let (folder, success, said) = shell(
        &mount,
        r#"mkdir "$2/disk" && mount -t tmpfs -o size=1m none "$2/disk" || exit 9
           "$1" "$2/disk/talk.db" < "$3" > "$2/first" 2>&1 && exit 8
           mount -o remount,size=32m "$2/disk" || exit 9
           "$1" "$2/disk/talk.db" < /dev/null > "$2/second" 2>&1 || exit 7
           cp "$2/disk/talk.db" "$2/talk.db""#,
    );
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let error = read("first")
        .lines()
        .filter(|line| line.len() < 500)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(success, "{said}\n{error}\n{}", read("second"));
    for part in [
        "disk/talk.db is full",
        "free some space",
        "nothing was half-written",
        "(Full)",
    ] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    assert_whole(&folder.path().join("talk.db"));
}

#[test]
fn a_file_that_may_not_grow_is_told_as_such_and_the_store_goes_on_when_it_may() {
    let (folder, success, said) = shell(
        &["env"],
        r#"(ulimit -f 1200; trap '' XFSZ; exec "$1" "$2/talk.db" < "$3" > "$2/first" 2>&1) && exit 8
           "$1" "$2/talk.db" < /dev/null > "$2/second" 2>&1 || exit 7"#,
    );
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let error = read("first")
        .lines()
        .filter(|line| line.len() < 500)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(success, "{said}\n{error}\n{}", read("second"));
    for part in ["talk.db cannot be read or written", "check the disk", "(Io)"] {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    assert_whole(&folder.path().join("talk.db"));
}
