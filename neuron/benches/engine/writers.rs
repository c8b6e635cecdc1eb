//! Row 3: 64 writers append envelopes of 600 bytes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use neuron::{
    Author, Contract, Draft, Error, Ledger, Pattern, Topic,
    store::{Durability, Fault, Options, Point},
};

use crate::{baseline, table::Row};

const WRITERS: usize = 64;
const EACH: usize = 400;
const WINDOWS: usize = 5;

/// Counts commits.
#[derive(Debug, Default)]
struct Commits(AtomicU64);

impl Fault for Commits {
    fn at(&self, point: Point) -> Result<(), Error> {
        self.0
            .fetch_add(u64::from(point == Point::AfterCommit), Ordering::Relaxed);
        Ok(())
    }
}

pub(crate) fn draft(topic: &Topic, author: &Author, count: usize) -> Draft {
    let payload = neuron::Json::of(&serde_json::json!({ "count": count, "text": "x".repeat(420) })).unwrap();
    Draft::new(topic.clone(), author.clone(), "note.taken")
        .unwrap()
        .json(payload, None)
}

async fn write(ledger: &Ledger) -> f64 {
    let began = Instant::now();
    let writers = (0..WRITERS).map(|writer| {
        let ledger = ledger.clone();
        tokio::spawn(async move {
            let topic = Topic::new(format!("notes.{writer}")).unwrap();
            let author = Author::new("writer").unwrap();
            for count in 0..EACH {
                ledger.publish(draft(&topic, &author, count)).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    (WRITERS * EACH) as f64 / began.elapsed().as_secs_f64()
}

pub(crate) fn sixty_four(durability: Durability) -> Row {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("writers.db");
    let commits = Arc::new(Commits::default());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let best = runtime.block_on(async {
        let options = Options {
            durability,
            fault: Some(commits.clone()),
            ..Options::default()
        };
        let ledger = Ledger::open(&path, options).unwrap();
        ledger
            .declare(&Pattern::new("notes.*").unwrap(), Contract::Durable, &Author::cli())
            .await
            .unwrap();
        let mut best: f64 = 0.0;
        for _ in 0..WINDOWS {
            best = best.max(write(&ledger).await);
        }
        best
    });
    drop(runtime);
    let rows = baseline::rows(&path, 2);
    let per_commit = rows.len() as f64 / commits.0.load(Ordering::Relaxed) as f64;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a group has at least one row"
    )]
    let group = (per_commit.round() as usize).max(1);
    Row {
        work: format!("3 append, 600 bytes, 64 writers, {durability:?}"),
        ours: best,
        baseline: baseline::write(&path, &rows, group, durability, WINDOWS),
        goal: "≥ 0.7",
        envelopes: 1.0,
        commits: 1.0 / per_commit,
        unit: "envelopes",
    }
}
