//! The file beside the store, with real processes: killed while they write to it, two at once, and on a full disk. It is
//! made again, and every answer is the one that the log gives.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use neuron::{
    Append, Author, Contract, Draft, Envelope, Error, Fold, Ledger, Pattern, Topic,
    fold::Codec,
    limits,
    store::{Durability, Options, Select, verify::verify},
};
use neuron_workspace::{PATIENCE, Process, scratch};

/// What was said, one after the other: a state that grows with the log.
#[derive(Clone, Copy)]
struct Transcript {
    kept: bool,
}

impl Fold for Transcript {
    type State = Vec<String>;

    fn init(&self) -> Self::State {
        Vec::new()
    }

    fn apply(&self, said: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        said.push(envelope.decode()?);
        Ok(())
    }

    fn select(&self) -> Select {
        Pattern::new("talk.*").map_or(Select::All, Select::Pattern)
    }

    fn snapshot(&self) -> Option<Codec<Self::State>> {
        self.kept.then(|| Codec::new("transcript", 1))
    }
}

fn open(path: &Path) -> Ledger {
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    let ledger = Ledger::open(path, options).unwrap();
    let family = Pattern::new("talk.*").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime
        .block_on(ledger.declare(&family, Contract::Durable, &Author::cli()))
        .unwrap();
    ledger
}

/// As much as a snapshot is put aside after.
fn chatter(ledger: &Ledger) {
    let topic = Topic::new(format!("talk.{}", std::process::id())).unwrap();
    let drafts = (0..limits::SNAPSHOT_EVERY).map(|n| {
        let draft = Draft::new(topic.clone(), Author::cli(), "said").unwrap();
        draft.payload(&format!("{n}")).unwrap()
    });
    ledger.append_blocking(Append::of(drafts)).unwrap();
}

/// Holds what is answered with the side file to what the log alone gives.
fn assert_right(ledger: &Ledger) {
    let kept = ledger.fold(&Transcript { kept: true }, None).unwrap();
    let scratch = ledger.fold(&Transcript { kept: false }, Some(kept.upto)).unwrap();
    assert!(kept == scratch, "up to {} and {}", kept.upto, scratch.upto);
    let store = ledger.store();
    let every = usize::try_from(kept.upto / 7 + 1).unwrap();
    for envelope in ledger.read(Select::All).to(kept.upto).envelopes().step_by(every) {
        let envelope = envelope.unwrap();
        assert_eq!(store.with_id(&envelope.id().to_string()).unwrap(), [envelope.pos]);
    }
}

fn side_of(path: &Path) -> PathBuf {
    path.with_extension("db.side")
}

/// This very test, started as a child. `wrap` stands before it on the command line.
fn child(path: &Path, deed: &str, wrap: &[&str]) -> Process {
    let program = std::env::current_exe().unwrap();
    let mut command = match wrap {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    command
        .args(["--exact", "side::a_child_does_its_deed", "--nocapture"])
        .env("SIDE_STORE", path)
        .env("SIDE_DEED", deed);
    Process::start(command)
}

/// The children's part of this file.
#[test]
#[allow(clippy::print_stdout, reason = "the parent listens")]
fn a_child_does_its_deed() {
    let Some(path) = std::env::var_os("SIDE_STORE").map(PathBuf::from) else {
        return;
    };
    let ledger = open(&path);
    match std::env::var("SIDE_DEED").unwrap().as_str() {
        // Writes to the side file without end.
        "write" => loop {
            chatter(&ledger);
            assert_right(&ledger);
            println!("right");
        },
        "some" => {
            for _ in 0..3 {
                chatter(&ledger);
                assert_right(&ledger);
            }
            println!("ended");
        }
        // A state that the disk has no room for, while the log still has.
        "full" => {
            chatter(&ledger);
            let large = "x".repeat(8 << 20);
            let snapshot = neuron::store::Snapshot {
                pos: 1,
                id: neuron::Digest::ZERO,
                state: large.into_bytes(),
            };
            let refused = ledger.store().put_snapshot("large", &snapshot).unwrap_err();
            println!("refused: {refused}");
            assert_right(&ledger);
            chatter(&ledger);
            assert_right(&ledger);
            println!("ended");
        }
        other => panic!("no deed: {other}"),
    }
}

#[test]
fn killed_while_it_writes_there_the_next_process_answers_right() {
    let folder = scratch();
    let path = folder.path().join("main.db");
    for turn in 0..4 {
        let mut writer = child(&path, "write", &[]);
        for _ in 0..turn % 3 {
            writer.wait_for("right");
        }
        writer.kill();
    }
    let ledger = open(&path);
    chatter(&ledger);
    assert_right(&ledger);
    assert_right(&ledger);
    verify(&**ledger.store()).unwrap();
}

#[test]
fn two_processes_use_it_at_once_while_it_is_deleted_under_them() {
    let folder = scratch();
    let path = folder.path().join("main.db");
    drop(open(&path));
    let children = [child(&path, "some", &[]), child(&path, "some", &[])];
    let ledger = open(&path);
    let deadline = Instant::now() + PATIENCE;
    for mut child in children {
        loop {
            assert!(Instant::now() < deadline, "they do not come to an end");
            let said = child.said();
            // Not while anything is looked at: at any moment.
            let _ = fs::remove_file(side_of(&path));
            if said.iter().any(|line| line == "ended") {
                break;
            }
            assert!(!said.iter().any(|line| line.contains("panicked")), "{said:#?}");
            // So that they come to something on a small machine too.
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(child.wait().0.success());
    }
    assert_right(&ledger);
    let said = ledger.fold(&Transcript { kept: true }, None).unwrap().state;
    assert_eq!(said.len() as u64, 6 * limits::SNAPSHOT_EVERY);
}

#[test]
fn a_disk_without_room_for_it_costs_no_answer_and_no_append() {
    let folder = scratch();
    let path = folder.path().join("main.db");
    // No file may grow beyond six megabytes.
    let script = r#"ulimit -f 12000; trap '' XFSZ; exec "$@""#;
    let mut writer = child(&path, "full", &["sh", "-c", script, "sh"]);
    let refused = writer.wait_for("refused: ");
    assert!(refused.contains("main.db.side"), "{refused}");
    let (status, said) = writer.wait();
    assert!(status.success(), "{said:#?}");
    let ledger = open(&path);
    assert_right(&ledger);
    verify(&**ledger.store()).unwrap();
}
