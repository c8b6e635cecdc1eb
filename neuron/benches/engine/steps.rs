//! Row 1: one agent, one step after the other, each durable before the next.

use std::{path::Path, sync::Arc, time::Instant};

use neuron::{
    Author, Cx, Ledger, Millis, Result, TokenId,
    agent::{LedgerJournal, Place},
    def::Registry,
    schema::Upcasters,
    scope::{Manner, Runtime, Scope, contain},
    store::{Durability, Options},
    topic::catalog,
};

use crate::{baseline, table::Row};

const STEPS: u32 = 1_000;
const WINDOWS: u32 = 5;

/// All but the number of what a step gives.
const REST: &str = "................................................................................................................................................................................................................................................";

/// Gives 256 bytes.
#[neuron::step]
async fn trivial(_cx: &Cx, number: u32) -> Result<String> {
    Ok(format!("{number:016}{REST}"))
}

/// One step after the other.
#[neuron::agent]
async fn sequence(cx: &Cx, from: u32) -> Result<u32> {
    for number in from..from + STEPS {
        trivial(cx, number).await?;
    }
    Ok(STEPS)
}

async fn run(ledger: &Ledger, window: u32) -> f64 {
    let token = TokenId::new(format!("sequence-{window}")).unwrap();
    let place = Place {
        topic: catalog::steps(&token),
        author: Author::from(&token),
        owner: ("run:bench".into(), 0),
        control: vec![catalog::control(&token)],
        given: catalog::control(&token),
        cause: None,
        progress: None,
    };
    let journal = LedgerJournal::new(ledger.clone(), place, Arc::new(Upcasters::default()));
    let registry = Arc::new(Registry::linked().unwrap());
    let entry = registry.find("agent", "sequence").unwrap();
    let runtime = Arc::new(Runtime::new(Arc::new(journal)).code(registry));
    let scope = Scope::root(&runtime, &format!("package-{window}"), Millis(1), Manner::Replayed);
    let args = neuron::Json::parse(&format!(r#"{{"from":{}}}"#, window * STEPS)).unwrap();
    let began = Instant::now();
    contain(&scope, entry.run(scope.clone(), args)).await.unwrap().unwrap();
    f64::from(STEPS) / began.elapsed().as_secs_f64()
}

pub(crate) fn sequential(durability: Durability) -> Row {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("steps.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let best = runtime.block_on(async {
        let ledger = Ledger::open(
            &path,
            Options {
                durability,
                ..Options::default()
            },
        )
        .unwrap();
        let mut best: f64 = 0.0;
        for window in 0..WINDOWS {
            // As users do: a run is a task.
            let ledger = ledger.clone();
            best = best.max(tokio::spawn(async move { run(&ledger, window).await }).await.unwrap());
        }
        best
    });
    drop(runtime);
    row(&path, best, durability)
}

fn row(path: &Path, ours: f64, durability: Durability) -> Row {
    let rows = baseline::rows(path, 1);
    let per_step = rows.len() / (STEPS * WINDOWS) as usize;
    let windows = WINDOWS as usize;
    let bare = baseline::write(path, &rows, per_step, durability, windows) / per_step as f64;
    Row {
        work: format!("1 sequential durable steps, {durability:?}"),
        ours,
        baseline: bare,
        goal: "≥ 0.9",
        envelopes: per_step as f64,
        commits: 1.0,
        unit: "steps",
    }
}
