//! Rows 4 and 5: a log of millions, appended to and folded.

use std::{fs, path::Path, time::Instant};

use neuron::{
    Append, Author, Cause, Contract, Draft, Envelope, Error, Fold, Ledger, Pattern, Topic,
    store::{Durability, Options},
};
use serde::Deserialize;

use crate::{baseline, table::Row, writers::draft};

const SMALL: u64 = 10_000;
const BATCH: usize = 512;
const WINDOW: u64 = 40_000;
const WINDOWS: usize = 5;

/// Sums a field of every payload.
struct Sum;

#[derive(Deserialize)]
struct Counted {
    count: u64,
}

impl Fold for Sum {
    type State = u64;

    fn init(&self) -> u64 {
        0
    }

    fn apply(&self, sum: &mut u64, envelope: &Envelope) -> Result<(), Error> {
        if envelope.body.kind == "note.taken" {
            *sum += envelope.decode::<Counted>()?.count;
        }
        Ok(())
    }
}

/// Topics written at the same time. What an append to a grown log costs depends on this more than on its size: see
/// "Store layout" in `docs/DESIGN.md`.
const TOPICS: u64 = 10;

/// A batch; a third of it has a cause, a tenth a key.
fn batch(from: u64) -> Append {
    let author = Author::new("writer").unwrap();
    let topic = |place: u64| Topic::new(format!("notes.{}", place % TOPICS)).unwrap();
    let drafts = (0..BATCH).map(|index| {
        let place = from + index as u64;
        let mut draft = draft(&topic(place), &author, index);
        if index % 3 == 1 {
            draft = draft.cause(Cause::Index(index - 1));
        }
        if index % 10 == 0 {
            draft = draft.key(format!("key-{}", place % 50)).unwrap();
        }
        draft
    });
    Append::of(drafts.collect::<Vec<Draft>>())
}

pub(crate) fn fill(ledger: &Ledger, upto: u64) {
    let mut last = ledger.store().last().unwrap().0;
    while last < upto {
        ledger.append_blocking(batch(last)).unwrap();
        last = ledger.store().last().unwrap().0;
    }
}

/// Envelopes per second, the best window.
fn append(path: &Path) -> f64 {
    let ledger = Ledger::open(path, Options::default()).unwrap();
    let best = (0..WINDOWS).map(|_| {
        let from = ledger.store().last().unwrap().0;
        let began = Instant::now();
        fill(&ledger, from + WINDOW);
        let wrote = ledger.store().last().unwrap().0 - from;
        wrote as f64 / began.elapsed().as_secs_f64()
    });
    best.fold(0.0, f64::max)
}

pub(crate) fn open(path: &Path) -> Ledger {
    let ledger = Ledger::open(
        path,
        Options {
            durability: Durability::Process,
            ..Options::default()
        },
    )
    .unwrap();
    let (notes, author) = (Pattern::new("notes.*").unwrap(), Author::cli());
    let declared = ledger.declare(&notes, Contract::Durable, &author);
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(declared)
        .unwrap();
    ledger
}

/// Anonymous memory of this process, in MiB.
pub(crate) fn anonymous() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap_or("0");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(0.0) / 1024.0
}

fn fold(path: &Path, upto: u64) -> f64 {
    let ledger = Ledger::open(
        path,
        Options {
            durability: Durability::Process,
            ..Options::default()
        },
    )
    .unwrap();
    let (before, began) = (anonymous(), Instant::now());
    let folded = ledger.fold(&Sum, Some(upto)).unwrap();
    assert!(folded.state > 0);
    let speed = upto as f64 / began.elapsed().as_secs_f64();
    println!(
        "fold over {upto}: memory {before:.0} → {:.0} MiB anonymous",
        anonymous()
    );
    speed
}

pub(crate) fn grown(rows: u64) -> Vec<Row> {
    let folder = tempfile::tempdir().unwrap();
    let (small, large) = (folder.path().join("small.db"), folder.path().join("large.db"));
    fill(&open(&small), SMALL);
    let began = Instant::now();
    fill(&open(&large), rows);
    println!("filled {rows} envelopes in {:.0} s", began.elapsed().as_secs_f64());
    let upto = rows.min(1_000_000);
    let (ours, bare) = (0..3).fold((0.0, 0.0), |(ours, bare): (f64, f64), _| {
        (ours.max(fold(&large, upto)), bare.max(baseline::scan(&large, upto)))
    });
    let grown = Row {
        work: format!(
            "4 append to a log of {rows} against one of {SMALL}, {TOPICS} topics, groups of {BATCH}, PowerLoss"
        ),
        ours: append(&large),
        baseline: append(&small),
        goal: "≥ 0.83 (≤ 1.2× cost)",
        envelopes: 1.0,
        commits: 1.0 / BATCH as f64,
        unit: "envelopes",
    };
    let fold = Row {
        work: format!("5 fold over {upto} envelopes"),
        ours,
        baseline: bare,
        goal: "≥ 0.8",
        envelopes: 1.0,
        commits: 0.0,
        unit: "envelopes",
    };
    vec![grown, fold]
}
