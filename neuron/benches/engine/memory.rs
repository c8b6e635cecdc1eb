//! What appending, tailing, folding and verifying hold in memory: at two sizes of the log, with ten topics and with very
//! many. Each is done by a process of its own, which tells the most that it had for itself meanwhile.

use std::{path::Path, process::Command, time::Instant};

use neuron::{
    Append, Author, Ledger, Pattern, Topic,
    fold::Count,
    ledger::From,
    store::{Access, Durability, Options, verify},
};

use crate::{
    grown::{anonymous, open},
    writers::draft,
};

const CHILD: &str = "NEURON_BENCH_MEMORY";
const TOPICS: &str = "NEURON_BENCH_TOPICS";
const SMALL: u64 = 100_000;
const FEW: u64 = 10;
const BATCH: u64 = 512;
const WORK: [&str; 5] = ["append", "tail", "tail of a pattern", "fold", "verify"];

/// The most that was seen.
#[derive(Default)]
struct Peak(f64);

impl Peak {
    fn look(&mut self) {
        self.0 = self.0.max(anonymous());
    }
}

/// Fills an empty store; each topic comes again only after all others have.
fn append(path: &Path, rows: u64, topics: u64, peak: &mut Peak) {
    let (ledger, author) = (open(path), Author::new("writer").unwrap());
    for from in (0..rows).step_by(usize::try_from(BATCH).unwrap()) {
        let drafts = (from..rows.min(from + BATCH)).map(|place| {
            let topic = Topic::new(format!("notes.{}", place % topics)).unwrap();
            draft(&topic, &author, usize::try_from(place % 1_000).unwrap())
        });
        ledger.append_blocking(Append::of(drafts.collect::<Vec<_>>())).unwrap();
        peak.look();
    }
}

fn tail(ledger: &Ledger, pattern: Pattern, rows: u64, peak: &mut Peak) {
    let mut subscription = ledger.subscribe(pattern, From::Start).unwrap();
    let mut count = 0;
    while subscription.try_next().unwrap().is_some() {
        count += 1;
        if count % 4_096 == 0 {
            peak.look();
        }
    }
    assert!(count >= rows / 10, "{count} of {rows}");
}

/// One piece of work, with a thread beside it that looks where the work itself cannot.
fn work(what: &str, path: &Path, rows: u64, topics: u64) -> f64 {
    let mut peak = Peak::default();
    if what == "append" {
        append(path, rows, topics, &mut peak);
        return peak.0;
    }
    let options = Options {
        access: Access::Read,
        durability: Durability::Process,
        ..Options::default()
    };
    let ledger = Ledger::open(path, options).unwrap();
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut peak = Peak::default();
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                peak.look();
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            peak.0
        });
        match what {
            "tail" => tail(&ledger, Pattern::all(), rows, &mut peak),
            "tail of a pattern" => tail(&ledger, Pattern::new("notes.*").unwrap(), rows, &mut peak),
            "fold" => assert!(ledger.fold(&Count, None).unwrap().upto >= rows),
            _ => assert!(verify::verify(&**ledger.store()).unwrap().envelopes >= rows),
        }
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        peak.0.max(beside.join().unwrap())
    })
}

/// Does the work of a child, if this process is one.
pub(crate) fn child() -> bool {
    let Ok(told) = std::env::var(CHILD) else { return false };
    let [what, path, rows, topics] = told.split(';').collect::<Vec<_>>()[..] else {
        panic!("no work: {told}");
    };
    println!(
        "{}",
        work(what, Path::new(path), rows.parse().unwrap(), topics.parse().unwrap())
    );
    true
}

fn measured(what: &str, path: &Path, rows: u64, topics: u64) -> f64 {
    let output = Command::new(std::env::current_exe().unwrap())
        .env(CHILD, format!("{what};{};{rows};{topics}", path.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{what}: {said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Prints one line for each piece of work.
pub(crate) fn print(rows: u64) {
    let many = std::env::var(TOPICS).ok().and_then(|topics| topics.parse().ok());
    for topics in [FEW, many.unwrap_or(500_000)] {
        let folder = tempfile::tempdir().unwrap();
        let (small, large) = (folder.path().join("small.db"), folder.path().join("large.db"));
        for what in WORK {
            let began = Instant::now();
            let (before, after) = (
                measured(what, &small, SMALL, topics),
                measured(what, &large, rows, topics),
            );
            println!(
                "memory: {what}, {topics} topics: {before:.1} MiB at {SMALL} envelopes, {after:.1} at {rows} ({:+.1}), {:.0} s",
                after - before,
                began.elapsed().as_secs_f64()
            );
        }
    }
}
