//! Verifying a log, and what a copy of the store that is taken meanwhile costs those who write.

use std::{path::Path, time::Instant};

use neuron::{
    Ledger,
    store::{Access, Options, verify},
};
use rusqlite::Connection;

use crate::{grown, table::Row};

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
