//! Verifying a log, and what a copy of the store that is taken meanwhile costs those who write.

use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use neuron::{
    Append, Author, Ledger, Topic,
    store::{Access, Options, verify},
};
use rusqlite::Connection;

use crate::{grown, table::Row, writers::draft};

/// Scans the rows, parses each record and hashes it. Gives rows per second.
fn bare(store: &Path, rows: u64) -> f64 {
    let connection = Connection::open(store).unwrap();
    let mut statement = connection
        .prepare("SELECT pos, topic, seq, type, at, cause, key, idempotency, id, record FROM envelope ORDER BY pos")
        .unwrap();
    let began = Instant::now();
    let mut scanned = statement.query([]).unwrap();
    let mut sum = 0;
    while let Some(row) = scanned.next().unwrap() {
        let record = row.get_ref(9).unwrap().as_str().unwrap();
        let value: serde_json::Value = serde_json::from_str(record).unwrap();
        let hash = blake3::derive_key(neuron::ENVELOPE_CONTEXT, record.as_bytes());
        sum += value["seq"].as_u64().unwrap() + u64::from(hash[0]);
    }
    assert!(sum > 0);
    rows as f64 / began.elapsed().as_secs_f64()
}

fn ours(store: &Path, rows: u64) -> f64 {
    let options = Options {
        access: Access::Read,
        ..Options::default()
    };
    let ledger = Ledger::open(store, options).unwrap();
    let (before, began) = (grown::anonymous(), Instant::now());
    let verified = verify::verify(&**ledger.store()).unwrap();
    assert_eq!(verified.envelopes, rows);
    let speed = rows as f64 / began.elapsed().as_secs_f64();
    println!(
        "verify of {rows}: memory {before:.0} → {:.0} MiB anonymous, {} topics",
        grown::anonymous(),
        verified.topics
    );
    speed
}

/// `verify` of a whole store: every row, every page, every index.
pub(crate) fn verified(rows: u64) -> Row {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("verified.db");
    grown::fill(&grown::open(&path), rows);
    let rows = Ledger::open(&path, Options::default())
        .unwrap()
        .store()
        .last()
        .unwrap()
        .0;
    let (ours, bare) = (0..3).fold((0.0, 0.0), |(best, least): (f64, f64), _| {
        (best.max(ours(&path, rows)), least.max(bare(&path, rows)))
    });
    Row {
        work: format!("verify of {rows} envelopes, against a bare scan + serde_json + BLAKE3"),
        ours,
        baseline: bare,
        goal: "≥ 0.7",
        envelopes: 1.0,
        commits: 0.0,
        unit: "envelopes",
    }
}

const WRITERS: usize = 4;

/// What writers did while something else went on.
struct Written {
    /// Envelopes per second.
    speed: f64,
    longest: Duration,
    /// How long the other took.
    took: Duration,
}

/// Writes with one lone envelope per commit from several threads while `work` goes on.
fn writing(ledger: &Ledger, work: impl FnOnce()) -> Written {
    let (stop, count, longest) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(Duration::ZERO));
    let began = Instant::now();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (stop, count, longest) = (&stop, &count, &longest);
            scope.spawn(move || {
                let topic = Topic::new(format!("notes.{writer}")).unwrap();
                let author = Author::new("writer").unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let one = Instant::now();
                    ledger
                        .append_blocking(Append::of([draft(&topic, &author, writer)]))
                        .unwrap();
                    let mut longest = longest.lock().unwrap();
                    *longest = one.elapsed().max(*longest);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        work();
        stop.store(true, Ordering::Relaxed);
    });
    let took = began.elapsed();
    Written {
        speed: count.load(Ordering::Relaxed) as f64 / took.as_secs_f64(),
        longest: longest.into_inner().unwrap(),
        took,
    }
}

/// What four writers do while a copy is taken, against what they do alone; and the same with `VACUUM INTO`, which is the
/// other way to take one.
pub(crate) fn backups(rows: u64) -> Row {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("busy.db");
    let ledger = grown::open(&path);
    grown::fill(&ledger, rows);
    let copy = |name: &str| folder.path().join(name);
    let vacuum = || {
        let connection = Connection::open(&path).unwrap();
        let statement = format!("VACUUM INTO '{}'", copy("vacuum.db").display());
        connection.execute_batch(&statement).unwrap();
    };
    let (mut alone, mut copied): (f64, f64) = (0.0, 0.0);
    for window in 0..3 {
        let free = writing(&ledger, || thread::sleep(Duration::from_secs(3)));
        let name = format!("{window}.db");
        let during = writing(&ledger, || {
            ledger.store().backup(&copy(&name), &mut |_| {}).unwrap();
        });
        let vacuumed = writing(&ledger, vacuum);
        for (what, Written { speed, longest, took }) in
            [("alone", &free), ("backup", &during), ("VACUUM INTO", &vacuumed)]
        {
            let (took, longest) = (took.as_secs_f64(), longest.as_secs_f64() * 1e3);
            println!(
                "{what}: {speed:.0} envelopes/s of {WRITERS} writers, longest append {longest:.0} ms, took {took:.1} s"
            );
        }
        (alone, copied) = (alone.max(free.speed), copied.max(during.speed));
        std::fs::remove_file(copy("vacuum.db")).unwrap();
    }
    Row {
        work: format!("{WRITERS} writers while a backup of {rows} envelopes is taken, against them alone"),
        ours: copied,
        baseline: alone,
        goal: "none",
        envelopes: 1.0,
        commits: 1.0,
        unit: "envelopes",
    }
}
