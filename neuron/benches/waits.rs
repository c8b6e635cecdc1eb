//! What ten thousand bodies that wait cost while nothing comes, and what an envelope costs that they all look at.
//!
//! ```text
//! cargo bench -p neuron --bench waits
//! ```
//!
//! Each line is measured by a process of its own. Bytes are anonymous memory by which it has grown since nobody waited,
//! divided by the number of waits; what stands on the log is in the file.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench prints figures and stops at the first fault"
)]

use std::{fs, process::Command, sync::Arc, time::Duration};

use neuron::{
    Append, Author, Contract, Cx, Draft, Filter, Json, Ledger, Millis, Pattern, Result, TokenId, Topic, agent,
    agent::{LedgerJournal, Place},
    def::{Callable, Entry},
    ledger::From,
    schema::Upcasters,
    scope::{Manner, Runtime, Scope, contain},
    store::{Durability, Options},
    topic::catalog,
};
use tokio::time::Instant;

const CHILD: &str = "NEURON_BENCH_WAITS";
const COUNT: u64 = 10_000;
const WORK: [&str; 4] = [
    "timers of one body",
    "waits of one body",
    "waits of one body with a deadline",
    "bodies with one wait each",
];
const HOUR: Duration = Duration::from_hours(1);

#[agent]
async fn sleepy(cx: &Cx) -> Result<()> {
    cx.join((0..COUNT).map(|n| cx.sleep(HOUR + Duration::from_millis(n))))
        .await?;
    Ok(())
}

#[agent]
async fn waiting(cx: &Cx, from: u64, upto: u64) -> Result<()> {
    cx.join((from..upto).map(|n| cx.wait_for(Filter::on("calls").payload("/to", &n))))
        .await?;
    Ok(())
}

#[agent]
async fn hasty(cx: &Cx) -> Result<()> {
    let waits = (0..COUNT).map(|n| cx.wait_within(Filter::on("calls").payload("/to", &n), HOUR));
    cx.join(waits).await?;
    Ok(())
}

/// Drives a body as a process would that has just made it.
fn start<M, F: Callable<M>>(ledger: &Ledger, _: F, number: u64, args: &str) {
    let entry: &'static Entry = const { &Entry::of::<F::Def>() };
    let token = TokenId::new(format!("body-{number}")).unwrap();
    let place = Place {
        topic: catalog::steps(&token),
        author: Author::from(&token),
        owner: ("run:r".into(), 0),
        control: vec![catalog::control(&token)],
        given: catalog::control(&token),
        cause: None,
        progress: None,
    };
    let journal = LedgerJournal::new(ledger.clone(), place, Arc::new(Upcasters::default()));
    let runtime = Arc::new(Runtime::new(Arc::new(journal)));
    let scope = Scope::root(&runtime, &format!("package {number}"), Millis(1), Manner::Replayed);
    let args = Json::parse(args).unwrap();
    tokio::spawn(async move {
        let _ended = contain(&scope, entry.run(scope.clone(), args)).await;
    });
}

/// Anonymous memory of this process, in bytes.
fn anonymous() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap_or("0");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(0.0) * 1024.0
}

async fn work(what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    let ledger = Ledger::open(folder.path().join("waits.db"), options).unwrap();
    let calls = Topic::new("calls").unwrap();
    ledger
        .declare(&Pattern::exactly(&calls), Contract::Durable, &Author::cli())
        .await
        .unwrap();
    let mut steps = ledger
        .subscribe(Pattern::new("agent.*.steps").unwrap(), From::Start)
        .unwrap();
    let before = anonymous();
    match what {
        "timers of one body" => start(&ledger, sleepy, 0, "{}"),
        "waits of one body" => start(&ledger, waiting, 0, &format!(r#"{{"from":0,"upto":{COUNT}}}"#)),
        "waits of one body with a deadline" => start(&ledger, hasty, 0, "{}"),
        _ => (0..COUNT).for_each(|n| start(&ledger, waiting, n, &format!(r#"{{"from":{n},"upto":{}}}"#, n + 1))),
    }
    for _ in 0..COUNT {
        steps.next().await.unwrap();
    }
    // Each has begun by its record; now it has also come to rest.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let each = (anonymous() - before) / COUNT as f64;
    print!("| {COUNT} {what} | {each:.0} |");
    if what.starts_with("timers") {
        return println!(" |");
    }
    let began = Instant::now();
    for to in 0..COUNT / 10 {
        let payload = Json::of(&std::collections::BTreeMap::from([("to", to)])).unwrap();
        let call = Draft::new(calls.clone(), Author::cli(), "called")
            .unwrap()
            .json(payload, None);
        ledger.append(Append::of([call])).await.unwrap();
    }
    for _ in 0..COUNT / 10 {
        while steps.next().await.unwrap().body.kind != "wait.ended" {}
    }
    println!(" {:.0} |", began.elapsed().as_secs_f64() * 1e6 / (COUNT / 10) as f64);
}

fn main() {
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    if let Ok(what) = std::env::var(CHILD) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(work(&what));
        // What still waits is left as a process leaves it that ends.
        return runtime.shutdown_background();
    }
    println!("| what waits | bytes each | µs per envelope that answers one of them |");
    println!("|---|---|---|");
    for what in WORK {
        let child = Command::new(std::env::current_exe().unwrap()).env(CHILD, what).status();
        assert!(child.unwrap().success());
    }
}
