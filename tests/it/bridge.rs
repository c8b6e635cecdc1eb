//! Ephemeral topics between real processes on one store: heard, stopped, killed, and never in anybody's way.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use neuron::{Author, Draft, Ledger, Pattern, RequestId, RunId, limits, store::Options, topic::catalog};
use neuron_workspace::{PATIENCE, Process};

/// This very test, started as a child with a deed.
fn child(path: &Path, pattern: &str) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "bridge::a_child_listens", "--nocapture"])
        .env("BRIDGE_STORE", path)
        .env("BRIDGE_PATTERN", pattern);
    let mut child = Process::start(command);
    child.wait_for("listening");
    child
}

/// The children's part of this file: says what it hears and what it is told that it lost.
#[test]
fn a_child_listens() {
    let Some(path) = std::env::var_os("BRIDGE_STORE").map(PathBuf::from) else {
        return;
    };
    let pattern = Pattern::new(std::env::var("BRIDGE_PATTERN").unwrap()).unwrap();
    let ledger = Ledger::open(path, Options::default()).unwrap();
    let mut listener = ledger.bus().listen(pattern);
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        // Whoever started this one may be gone.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    };
    say("listening".into());
    loop {
        match futures::executor::block_on(listener.next()) {
            Ok(envelope) => {
                assert!(envelope.is_intact().unwrap());
                say(format!("heard {} {}", envelope.topic, envelope.seq));
            }
            Err(lagged) => say(format!("lost {}", lagged.0)),
        }
    }
}

fn token(stream: &str) -> Draft {
    let topic = catalog::stream(&RequestId::new(stream).unwrap());
    Draft::new(topic, Author::cli(), "token")
        .unwrap()
        .payload(&"x".repeat(600))
        .unwrap()
}

fn store() -> (tempfile::TempDir, PathBuf, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let ledger = Ledger::open(&path, Options::default()).unwrap();
    (folder, path, ledger)
}

/// Publishes until the child hears it: then it is known.
fn meet(ledger: &Ledger, child: &mut Process) {
    let until = Instant::now() + PATIENCE;
    while !child.said().iter().any(|line| line.starts_with("heard stream.hello")) {
        assert!(Instant::now() < until, "they do not meet: {:?}", child.said());
        ledger.bus().publish(token("hello")).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How many of a stream a child has heard, and of how many it was told that they were lost.
fn heard(child: &mut Process, stream: &str) -> (u64, u64) {
    let of = format!("heard stream.{stream} ");
    let lines = child.said();
    let heard = lines.iter().filter(|line| line.starts_with(&of)).count() as u64;
    let lost = lines.iter().filter_map(|line| line.strip_prefix("lost "));
    (heard, lost.map(|count| count.parse::<u64>().unwrap()).sum())
}

/// As [`heard`], once both are so many together: then what comes next finds room.
fn settled(child: &mut Process, stream: &str, count: u64) -> (u64, u64) {
    let until = Instant::now() + PATIENCE;
    loop {
        let (arrived, lost) = heard(child, stream);
        if arrived + lost >= count {
            return (arrived, lost);
        }
        assert!(
            Instant::now() < until,
            "{arrived} of {count} were heard, {lost} told as lost"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn sockets(path: &Path) -> usize {
    let folder = path.with_file_name("store.db.bus");
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn one_that_is_stopped_keeps_nobody_waiting_and_is_told_what_it_lost_when_it_goes_on() {
    let (_folder, path, ledger) = store();
    let (mut stopped, mut other) = (child(&path, "stream.*"), child(&path, "stream.*"));
    meet(&ledger, &mut stopped);
    meet(&ledger, &mut other);
    stopped.pause();
    let count = 8 * limits::EPHEMERAL_QUEUE_MAX as u64;
    for number in 0..count {
        ledger.bus().publish(token("flood")).unwrap();
        // The other one is not slowed: it keeps up, because it is waited for here.
        if number % 256 == 255 {
            other.wait_for(&format!("heard stream.flood {}", number + 1));
        }
    }
    assert_eq!(heard(&mut other, "flood"), (count, 0));
    stopped.resume();
    let (arrived, lost) = settled(&mut stopped, "flood", count);
    assert!(lost > 0);
    assert_eq!(arrived + lost, count);
    ledger.bus().publish(token("after")).unwrap();
    stopped.wait_for("heard stream.after 1");
    let lines: Vec<u64> = stopped
        .said()
        .iter()
        .filter_map(|line| line.strip_prefix("heard stream.flood ")?.parse().ok())
        .collect();
    assert!(lines.is_sorted_by(|a, b| a < b), "out of order: {lines:?}");
}

#[test]
fn one_that_is_killed_in_the_middle_is_forgotten_and_the_next_one_is_heard() {
    let (_folder, path, ledger) = store();
    let (mut killed, mut other) = (child(&path, "stream.*"), child(&path, "stream.*"));
    meet(&ledger, &mut killed);
    meet(&ledger, &mut other);
    killed.pause();
    let count = 2 * limits::EPHEMERAL_QUEUE_MAX as u64;
    for _ in 0..count {
        ledger.bus().publish(token("before")).unwrap();
    }
    killed.kill();
    let (arrived, lost) = settled(&mut other, "before", count);
    assert_eq!(arrived + lost, count);
    ledger.bus().publish(token("after")).unwrap();
    other.wait_for("heard stream.after 1");
    let mut next = child(&path, "stream.*");
    meet(&ledger, &mut next);
    // The dead one's socket was cleared away by whoever found it dead.
    let until = Instant::now() + PATIENCE;
    while sockets(&path) != 3 {
        assert!(Instant::now() < until, "{} sockets are left", sockets(&path));
        std::thread::sleep(Duration::from_millis(5));
    }
    drop((other, next));
    drop(ledger);
}

#[test]
fn a_retained_value_reaches_a_process_that_comes_later_and_one_that_comes_after_its_publisher_died_does_not_wait() {
    let (_folder, path, ledger) = store();
    let topic = catalog::progress(&RunId::new("digest").unwrap());
    for _ in 0..3 {
        let gauge = Draft::new(topic.clone(), Author::cli(), "gauge").unwrap();
        ledger.bus().publish(gauge).unwrap();
    }
    let mut late = child(&path, "progress.*");
    late.wait_for("heard progress.digest 3");
    assert_eq!(late.said().iter().filter(|line| line.starts_with("heard")).count(), 1);
    drop(ledger);
    // Who leaves takes its socket along.
    assert_eq!(sockets(&path), 1);
    let ledger = Ledger::open(&path, Options::default()).unwrap();
    let gauge = Draft::new(topic, Author::cli(), "gauge").unwrap();
    ledger.bus().publish(gauge).unwrap();
    late.wait_for("heard progress.digest 1");
}

#[test]
fn nothing_durable_and_nothing_of_a_reader_or_of_one_that_was_told_to_stay_alone_passes_the_bridge() {
    let (_folder, path, ledger) = store();
    assert_eq!(sockets(&path), 0, "nobody has published or listened");
    let alone = Options {
        bridge: false,
        ..Options::default()
    };
    let other = tempfile::tempdir().unwrap();
    let quiet = Ledger::open(other.path().join("store.db"), alone).unwrap();
    quiet.bus().publish(token("hello")).unwrap();
    assert_eq!(sockets(&other.path().join("store.db")), 0);
    let mut listening = child(&path, "**");
    meet(&ledger, &mut listening);
    let run = RunId::new("digest").unwrap();
    let order = Draft::new(catalog::run_control(&run), Author::cli(), "control.paused").unwrap();
    ledger.append_blocking(neuron::Append::of([order])).unwrap();
    ledger.bus().publish(token("after")).unwrap();
    listening.wait_for("heard stream.after 1");
    assert!(!listening.said().iter().any(|line| line.contains("orchestration")));
}
