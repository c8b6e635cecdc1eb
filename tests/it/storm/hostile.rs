use std::{
    collections::HashMap,
    fs,
    os::unix::fs::{FileExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Command,
};

use neuron::{
    Append, Author, Digest, Draft, Json, Millis,
    store::{Row, Sqlite, Store as _, conformance, verify},
};
use neuron_workspace::{Dice, Process, SEED, fresh_seed, is_long, scratch, seed_given};
use rustix::process::geteuid;

use super::{all, options, say, topic};

fn log_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn append(store: &Sqlite, text: &str) -> Result<Digest, neuron::Error> {
    let draft = Draft::new(topic("hostile"), Author::cli(), "said").unwrap();
    let draft = draft.json(Json::of(text).unwrap(), None);
    let batch = conformance::batch(Append::of([draft]), Millis(1)).unwrap();
    Ok(store.append_blocking(batch)?.remove(0).id)
}

/// Whether what was read is what was written, but for what is told to be damaged.
fn is_honest(rows: &[Row], written: &HashMap<Digest, String>) -> bool {
    rows.iter().all(|row| {
        let Ok(envelope) = row.envelope() else { return true };
        written.get(&row.id) == Some(&envelope.decode().unwrap())
    })
}

/// What somebody does to the write-ahead log of an open store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    Cut,
    Overwritten,
}

/// An open store whose write-ahead log is harmed at a random place, and everything that was written to it.
fn harmed(path: &Path, harm: Harm, dice: &mut Dice) -> (Sqlite, HashMap<Digest, String>) {
    let store = Sqlite::open(path, options()).unwrap();
    let mut written = HashMap::new();
    for number in 0..30 {
        let text = format!("{number} ").repeat(1 + dice.below(4_000));
        written.insert(append(&store, &text).unwrap(), text);
    }
    let log = fs::OpenOptions::new().write(true).open(log_of(path)).unwrap();
    let place = dice.roll() % log.metadata().unwrap().len();
    match harm {
        Harm::Cut => log.set_len(place).unwrap(),
        Harm::Overwritten => log.write_all_at(&[0x5a; 3_000], place).unwrap(),
    }
    (store, written)
}

#[test]
fn a_write_ahead_log_that_somebody_cuts_or_overwrites_is_an_error_or_a_shorter_log_and_verify_is_not_deceived() {
    let seed = seed_given().unwrap_or_else(fresh_seed);
    eprintln!("to run it again: {SEED}={seed}");
    let mut dice = Dice::new(seed);
    for round in 0..if is_long() { 400 } else { 16 } {
        let harm = if round % 2 == 0 { Harm::Cut } else { Harm::Overwritten };
        let folder = scratch();
        let path = folder.path().join("hostile.db");
        let (store, mut written) = harmed(&path, harm, &mut dice);
        // The same process goes on, with what its cache knows and with what it reads anew; so does another.
        for number in 0..3 {
            let text = format!("after {number}");
            if let Ok(id) = append(&store, &text) {
                written.insert(id, text);
            }
            for one in [Ok(store.clone()), Sqlite::open_apart(&path, options())] {
                let Ok(one) = one else { continue };
                let Ok(rows) = all(&one) else { continue };
                let honest = is_honest(&rows, &written);
                // A page that says something else reads well, in this log as in any file: that is what ids are for.
                assert!(honest || harm == Harm::Overwritten, "a cut log gave a wrong answer");
                assert!(honest || verify::verify(&one).is_err(), "verify was deceived");
            }
        }
        drop(store);
        // Whoever comes later finds a log that is whole, though perhaps shorter, or is told that it is not.
        let Ok(store) = Sqlite::open(&path, options()) else {
            continue;
        };
        if let Ok(verified) = verify::verify(&store) {
            let rows = all(&store).unwrap();
            assert_eq!(verified.head.pos, rows.len() as u64);
            assert!(is_honest(&rows, &written));
        }
    }
}

// -- rights --

/// The children's part: appends a line for each line that it is told, with the store opened once or each time.
#[test]
fn a_child_has_no_rights() {
    let Some(path) = std::env::var_os("HOSTILE_STORE").map(PathBuf::from) else {
        return;
    };
    let mut kept = None;
    for line in std::io::stdin().lines() {
        let Ok(line) = line else { break };
        if line == "close" {
            kept = None;
            say("closed");
            continue;
        }
        let outcome = match kept.take() {
            Some(store) => Ok(store),
            None => Sqlite::open(&path, options()),
        };
        let outcome = outcome.and_then(|store| {
            let outcome = append(&store, &line);
            kept = Some(store);
            outcome
        });
        match outcome {
            Ok(_) => say(&format!("stands {line}")),
            Err(error) => say(&format!("failed {line} {:?} {error}", error.kind())),
        }
    }
}

/// This very test as a child whom rights concern, in a folder of its own; none where that cannot be.
fn without_rights(folder: &Path, store: &Path) -> Option<Process> {
    const NOBODY: u32 = 65_534;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "storm::hostile::a_child_has_no_rights", "--nocapture"])
        .current_dir("/")
        .env("HOSTILE_STORE", store);
    if geteuid().is_root() {
        use std::os::unix::process::CommandExt as _;
        chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
        // It may not be allowed to run what root has built.
        let mut trial = Command::new(command.get_program());
        let trial = trial.arg("--list").current_dir("/").uid(NOBODY).gid(NOBODY).output();
        if !trial.is_ok_and(|output| output.status.success()) {
            return None;
        }
    }
    Some(Process::start(command))
}

#[test]
fn rights_that_are_taken_away_are_told_as_such_and_the_store_goes_on_when_they_are_back() {
    let folder = scratch();
    let path = folder.path().join("rights.db");
    let Some(mut child) = without_rights(folder.path(), &path) else {
        eprintln!("skipped: nobody but root may run this test's program");
        return;
    };
    let rights = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    child.say("first");
    child.wait_for("stands first");
    // The file, then the folder, while it is open and after it was closed.
    for (number, (place, mode, back)) in [
        (&*path, 0o400, 0o600),
        (&*path, 0o000, 0o600),
        (folder.path(), 0o500, 0o700),
    ]
    .into_iter()
    .enumerate()
    {
        rights(place, mode);
        child.say(&format!("open-{number}"));
        child.wait_for(&format!("open-{number}"));
        child.say("close");
        child.wait_for("closed");
        child.say(&format!("closed-{number}"));
        let said = child.wait_for(&format!("closed-{number}"));
        let typed = said.contains(" ReadOnly ") || said.contains(" Io ");
        assert!(
            said.starts_with("stands") || typed && said.contains("rights.db"),
            "{said}"
        );
        rights(place, back);
        child.say(&format!("back-{number}"));
        child.wait_for(&format!("stands back-{number}"));
    }
    let (_, said) = child.wait();
    assert!(!said.iter().any(|line| line.contains("panicked")), "{said:?}");
    let store = Sqlite::open(&path, options()).unwrap();
    let texts: Vec<String> = all(&store)
        .unwrap()
        .iter()
        .map(|row| row.envelope().unwrap().decode().unwrap())
        .collect();
    let stands: Vec<&str> = said.iter().filter_map(|line| line.strip_prefix("stands ")).collect();
    assert_eq!(texts, stands, "what was acknowledged stands, and nothing else");
    verify::verify(&store).unwrap();
}
