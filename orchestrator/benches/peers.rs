//! The workloads that durable engines are compared by, each beside bare rusqlite in the same run, so that anybody can set
//! them beside another engine on one machine.
//!
//! ```text
//! cargo bench -p orchestrator --bench peers
//! NEURON_BENCH_ONLY=W1,W3 cargo bench -p orchestrator --bench peers      # some of them
//! ```
//!
//! - **W1**: one run of 1,000 steps in sequence, each giving 256 bytes, each durable before the next begins.
//! - **9**: the same with an input of 1 MiB, against none.
//! - **W2** (row 2): 1,000 runs of 5 such steps at the same time.
//! - **W3**: a process is aborted after 5,000 of 10,000 steps; from the start of the next process until the next new step.
//! - **replay**: 10,000 recorded steps are gone through, against a scan of their rows that parses each as JSON.
//!
//! The baseline of what writes is the same rows byte for byte in the store's own table, in commits of as many rows as ours
//! (W1: a step's beginning with the end of the one before it; W2: 512), with the same durability.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench prints figures and stops at the first fault"
)]

#[allow(dead_code, reason = "another bench uses the rest of it")]
#[path = "../../neuron/benches/engine/baseline.rs"]
mod baseline;

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::Instant,
};

use orchestrator::prelude::*;
use rusqlite::Connection;
use tokio::sync::Notify;

const STEPS: u32 = 1_000;
const RUNS: u32 = 1_000;
const TURNS: usize = 5;
/// Steps of the run that is cut off; it is cut off in the middle.
const CUT_STEPS: u32 = 10_000;
const REPLAYED: u32 = 10_000;

/// From which step on this process is told of, and what becomes of it then.
struct From {
    step: u32,
    dies: bool,
}

/// When that was.
static TOLD: OnceLock<Instant> = OnceLock::new();
/// Rung then: whoever waits for it takes no processor from what is measured.
static BELL: Notify = Notify::const_new();

/// Gives 256 bytes.
#[step]
async fn say(cx: &Cx, number: u32) -> Result<String> {
    if let Ok(from) = cx.state::<From>()
        && number == from.step
    {
        if from.dies {
            std::process::abort();
        }
        println!("new");
        TOLD.get_or_init(Instant::now);
        BELL.notify_one();
    }
    Ok(format!("{number:0256}"))
}

#[agent]
async fn speaker(cx: &Cx, steps: u32) -> Result<u32> {
    for number in 0..steps {
        say(cx, number).await?;
    }
    Ok(steps)
}

/// The input is its own: nobody reads it.
#[orchestrator]
async fn speech(board: &Board, steps: u32, _input: String) -> Result<u32> {
    Ok(board.assign(speaker, steps).await?)
}

async fn open(path: &Path, durability: Durability) -> Neuron {
    Neuron::builder().durability(durability).open(path).await.unwrap()
}

/// One run of so many steps on a new store: steps a second.
async fn one(path: &Path, durability: Durability, input: usize) -> f64 {
    let neuron = open(path, durability).await;
    let input = "x".repeat(input);
    let began = Instant::now();
    let run = neuron.run(speech, (STEPS, input)).id("w1");
    assert_eq!(run.await.unwrap(), STEPS);
    f64::from(STEPS) / began.elapsed().as_secs_f64()
}

/// Many runs of five steps at once, on a new store: steps a second.
async fn many(path: &Path, durability: Durability) -> f64 {
    let neuron = open(path, durability).await;
    let began = Instant::now();
    let mut runs = Vec::new();
    for number in 0..RUNS {
        let run = neuron.run(speech, (5, String::new())).id(format!("w2-{number}"));
        runs.push(run.start().await.unwrap());
    }
    for run in runs {
        assert_eq!(run.await.unwrap(), 5);
    }
    f64::from(RUNS * 5) / began.elapsed().as_secs_f64()
}

/// The rows of a store written bare: rows a second, and how many there are.
fn bare(path: &Path, group: usize, durability: Durability) -> (f64, usize) {
    let rows = baseline::rows(path, 0);
    (baseline::write(path, &rows, group, durability, 1), rows.len())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn wanted(name: &str) -> bool {
    env::var("NEURON_BENCH_ONLY").map_or(true, |only| only.split(',').any(|one| one.trim() == name))
}

const DURABILITIES: [(Durability, &str); 2] = [(Durability::PowerLoss, "FULL"), (Durability::Process, "NORMAL")];

async fn w1() {
    for (durability, name) in DURABILITIES {
        let (mut ours, mut theirs, mut rows) = (Vec::new(), Vec::new(), 0);
        for _ in 0..TURNS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("w1.db");
            ours.push(one(&path, durability, 0).await);
            let (rate, count) = bare(&path, 2, durability);
            theirs.push(rate / count as f64 * f64::from(STEPS));
            rows = count;
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "W1 {name}: {ours:.0} steps/s, {:.0} µs each; bare {theirs:.0}; ratio {:.2} (goal ≥ 0.9); {:.0} µs a step over \
             the bare commit; {:.2} envelopes a step",
            1e6 / ours,
            ours / theirs,
            1e6 / ours - 1e6 / theirs,
            rows as f64 / f64::from(STEPS)
        );
    }
}

async fn row_9() {
    for (durability, name) in DURABILITIES {
        let mut turns = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for (input, turns) in [0, 1 << 20].into_iter().zip(&mut turns) {
                let folder = tempfile::tempdir().unwrap();
                turns.push(one(&folder.path().join("w1.db"), durability, input).await);
            }
        }
        let [without, with] = turns.map(median);
        println!(
            "9 {name}: {with:.0} steps/s with an input of 1 MiB, {without:.0} without; ratio {:.2} (goal ≥ 0.95)",
            with / without
        );
    }
}

async fn w2() {
    for (durability, name) in DURABILITIES {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("w2.db");
            ours.push(many(&path, durability).await);
            let (rate, count) = bare(&path, 512, durability);
            theirs.push(rate / count as f64 * f64::from(RUNS * 5));
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "W2 {name}: {ours:.0} steps/s in {RUNS} runs at once; bare {theirs:.0}; ratio {:.2} (goal ≥ 0.7)",
            ours / theirs
        );
    }
}

/// What a child does: it runs until it dies, goes on until something new runs, or scans.
async fn deed(path: &Path, deed: &str, steps: u32, cut: u32) {
    if deed == "scan" {
        return scan(path);
    }
    let state = From {
        step: cut,
        dies: deed == "die",
    };
    let neuron = Neuron::builder().state(state).open(path).await.unwrap();
    let began = Instant::now();
    let run = neuron.run(speech, (steps, String::new())).id("cut");
    if deed == "die" {
        run.await.unwrap();
        return;
    }
    let running = run.start().await.unwrap();
    // The rest of the run is of no interest.
    BELL.notified().await;
    let told = TOLD.get().unwrap();
    println!("{}", told.duration_since(began).as_micros());
    drop(running);
    std::process::abort();
}

/// Parses each row as JSON and writes one.
fn scan(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let began = Instant::now();
    let mut statement = connection
        .prepare("SELECT pos, id, record FROM envelope ORDER BY pos")
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut sum = 0;
    while let Some(row) = rows.next().unwrap() {
        let record: serde_json::Value = serde_json::from_str(row.get_ref(2).unwrap().as_str().unwrap()).unwrap();
        sum += record["body"]["type"].as_str().unwrap().len();
    }
    assert!(sum > 0);
    let scanned = began.elapsed().as_micros();
    drop(rows);
    drop(statement);
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS bare (text TEXT); INSERT INTO bare VALUES ('new');",
        )
        .unwrap();
    println!("new");
    println!("{scanned}");
}

/// Starts a child on a store: milliseconds until it says that something new has happened, and the microseconds it tells.
fn child(path: &Path, deed: &str, steps: u32, cut: u32) -> (f64, f64) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env("NEURON_BENCH_STORE", path);
    command.args([deed, &steps.to_string(), &cut.to_string()]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let first = lines.next();
    let took = began.elapsed().as_secs_f64() * 1e3;
    let told = lines.next().and_then(|line| line.parse().ok()).unwrap_or(0.0);
    assert_eq!(first.is_none(), deed == "die");
    child.wait().unwrap();
    (took, told)
}

/// A run that was cut off is taken up; how many milliseconds pass until something new, and how many microseconds a step
/// that is on the log costs, ours and bare.
fn resumed(steps: u32, cut: u32) -> [(f64, f64); 2] {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.db");
        child(&path, "die", steps, cut);
        ours.push(child(&path, "resume", steps, cut));
        theirs.push(child(&path, "scan", 0, 0));
    }
    [ours, theirs].map(|turns| {
        let (took, told) = turns.into_iter().unzip();
        (median(took), median(told) / f64::from(cut))
    })
}

fn w3() {
    let [(ours, _), (theirs, _)] = resumed(CUT_STEPS, CUT_STEPS / 2);
    println!(
        "W3 FULL: {ours:.1} ms from the start of a process until the first new step, {} on the log; a bare scan that parses \
         them and writes one row {theirs:.1} ms; ratio {:.2}",
        CUT_STEPS / 2,
        theirs / ours
    );
}

fn replay() {
    let [(_, ours), (_, theirs)] = resumed(REPLAYED + 1, REPLAYED);
    println!(
        "replay: {ours:.1} µs a recorded step of {REPLAYED}; a bare scan + serde_json {theirs:.1} µs; ratio {:.2} (goal ≥ 0.5)",
        theirs / ours
    );
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    if let (Some(path), [what, steps, cut, ..]) = (env::var_os("NEURON_BENCH_STORE"), &args[..]) {
        let [steps, cut] = [steps, cut].map(|number| number.parse().unwrap());
        return deed(&PathBuf::from(path), what, steps, cut).await;
    }
    // `cargo test` builds benches too and runs them with `--test`: nothing is measured then.
    if args.iter().any(|arg| arg == "--test") {
        return;
    }
    println!("a lone durable row: {:.0} µs", baseline::lone_commit_us());
    if wanted("W1") {
        w1().await;
    }
    if wanted("9") {
        row_9().await;
    }
    if wanted("W2") {
        w2().await;
    }
    if wanted("W3") {
        w3();
    }
    if wanted("replay") {
        replay();
    }
}
