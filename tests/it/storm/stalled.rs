use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use futures::executor::block_on;
use neuron::{
    Append, Author, Contract, Draft, Json, Ledger, Pattern,
    ledger::From,
    limits,
    store::{Select, verify},
};
use neuron_workspace::{Process, binary, is_long, scratch};

use super::{options, say, topic};

/// Bytes of one record.
const RECORD: usize = 4_000;
/// Records between two looks; as many as the ring of recent ones holds, so that it is full from the first look on.
const RECORDS: usize = limits::RING_MAX;

/// Bytes of memory that a process has for itself; none on a system that does not say.
fn memory(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib * 1_024)
}

fn log_bytes(store: &Path) -> u64 {
    let mut name = store.as_os_str().to_owned();
    name.push("-wal");
    fs::metadata(name).map_or(0, |metadata| metadata.len())
}

/// The child's part: it writes, beside readers of every kind that have stopped to read.
#[test]
fn a_child_writes_beside_readers_that_stand_still() {
    let Some(path) = std::env::var_os("STALLED_STORE").map(PathBuf::from) else {
        return;
    };
    let ledger = Ledger::open(&path, options()).unwrap();
    for (family, contract) in [("stalled.*", Contract::Durable), ("air.*", Contract::RETAINED)] {
        block_on(ledger.declare(&Pattern::new(family).unwrap(), contract, &Author::cli())).unwrap();
    }
    let text = "x".repeat(RECORD);
    let draft = |name: &str, text: &str| {
        let draft = Draft::new(topic(name), Author::cli(), "said").unwrap();
        draft.json(Json::of(text).unwrap(), None)
    };
    let write = |records: usize| {
        for _ in 0..records / 128 {
            let drafts = (0..128).map(|number| draft(&format!("stalled.{}", number % 4), &text));
            ledger.append_blocking(Append::of(drafts)).unwrap();
            ledger.bus().publish(draft("air.a", "gone with the wind")).unwrap();
        }
    };
    write(1_024);
    let every = || Pattern::new("stalled.*").unwrap();
    let mut subscriptions: Vec<_> = (0..1_000)
        .map(|number| {
            let from = if number % 2 == 0 { From::Start } else { From::Now };
            ledger.subscribe(every(), from).unwrap()
        })
        .collect();
    // One that stands inside of a page, cursors that do, and listeners that nobody polls.
    assert!(subscriptions[0].try_next().unwrap().is_some());
    let mut cursors: Vec<_> = (0..8).map(|_| ledger.read(Select::All).envelopes()).collect();
    for cursor in &mut cursors {
        cursor.next().unwrap().unwrap();
    }
    let listeners: Vec<_> = (0..8)
        .map(|_| ledger.bus().listen(Pattern::new("air.*").unwrap()))
        .collect();
    write(RECORDS);
    let before = memory("self");
    let mut log = 0;
    for _ in 0..if is_long() { 40 } else { 2 } {
        write(RECORDS);
        log = log.max(log_bytes(&path));
    }
    let grown = memory("self")
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before));
    say(&format!("grown {}", grown.unwrap_or(0)));
    say(&format!("log {log}"));
    // They go on where they stood.
    let first = subscriptions[0].try_next().unwrap().unwrap();
    assert_eq!(first.pos, subscriptions[0].position());
    let left = cursors.remove(0).count() as u64 + 1;
    assert_eq!(left, ledger.store().last().unwrap().0);
    drop(listeners);
}

/// `neuron log --follow` into a pipe that nobody reads.
struct Follower(Child);

impl Follower {
    fn start(path: &Path) -> Self {
        let mut command = binary("neuron");
        command.args(["log", "--follow", "--store"]).arg(path);
        let command = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It is stuck for ever.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn number(line: &str) -> u64 {
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn readers_that_stop_reading_for_ever_cost_no_memory_and_keep_no_log_from_being_moved_into_the_store() {
    let folder = scratch();
    let path = folder.path().join("stalled.db");
    drop(Ledger::open(&path, options()).unwrap());
    let mut follower = Follower::start(&path);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "storm::stalled::a_child_writes_beside_readers_that_stand_still",
            "--nocapture",
        ])
        .env("STALLED_STORE", &path);
    let mut writer = Process::start(command);
    let grown = number(&writer.wait_for("grown "));
    let log = number(&writer.wait_for("log "));
    let (status, said) = writer.wait();
    assert!(status.success(), "{said:?}");
    eprintln!("the writer grew by {grown} bytes, its write-ahead log had {log}");
    assert!(grown < 16 << 20, "the writer grew by {grown} bytes");
    assert!(log < 2 * limits::WAL_BYTES_MAX, "the write-ahead log has {log} bytes");
    assert_eq!(
        follower.0.try_wait().unwrap(),
        None,
        "it follows, into a pipe that is full"
    );
    let stuck = memory(&follower.0.id().to_string()).unwrap_or(0);
    eprintln!("whoever follows has {stuck} bytes");
    assert!(stuck < 64 << 20, "whoever follows has {stuck} bytes");
    drop(follower);
    let store = Ledger::open(&path, options()).unwrap();
    verify::verify(&**store.store()).unwrap();
}
