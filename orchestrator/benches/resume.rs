//! Row 6: a run that was cut off is taken up in a log of a million envelopes, against the same in one of ten thousand.
//!
//! ```text
//! cargo bench -p orchestrator --bench resume
//! NEURON_BENCH_ROWS=100000 cargo bench -p orchestrator --bench resume      # a smaller log, quicker
//! ```
//!
//! Both logs are filled by runs that have ended. Then, again and again, a process is aborted in the middle of a run, and a
//! new one opens the store, finds the run and brings it to its end: that is what is timed, and whose memory is told.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench prints figures and stops at the first fault"
)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use orchestrator::{prelude::*, runs::Unfinished};

const SMALL: u64 = 10_000;
/// Steps of the run that is cut off, and at which of them.
const STEPS: u32 = 50;
const CUT: u32 = 40;
const TURNS: usize = 9;
/// Runs that fill a log, at the same time.
const AT_ONCE: usize = 500;

/// Whether this process ends in the middle of the run.
struct Dies(bool);

/// Says a number.
#[step]
async fn say(cx: &Cx, number: u32) -> Result<String> {
    if number == CUT && cx.state::<Dies>().is_ok_and(|dies| dies.0) {
        std::process::abort();
    }
    Ok(format!("{number:0128}"))
}

/// One step after the other.
#[agent]
async fn speaker(cx: &Cx, steps: u32) -> Result<u32> {
    for number in 0..steps {
        say(cx, number).await?;
    }
    Ok(steps)
}

#[orchestrator]
async fn speech(board: &Board, steps: u32) -> Result<u32> {
    Ok(board.assign(speaker, steps).await?)
}

async fn open(path: &Path, dies: bool, durability: Durability) -> Neuron {
    let builder = Neuron::builder().state(Dies(dies)).durability(durability);
    builder.open(path).await.unwrap()
}

/// Fills a log with runs that end, and leaves a snapshot behind.
async fn fill(path: &Path, rows: u64) {
    let neuron = open(path, false, Durability::Process).await;
    while neuron.ledger().store().last().unwrap().0 < rows {
        let mut runs = Vec::new();
        for _ in 0..AT_ONCE.min(usize::try_from(rows / 20).unwrap()) {
            runs.push(neuron.run(speech, 5).start().await.unwrap());
        }
        for run in runs {
            run.await.unwrap();
        }
    }
    let ledger = neuron.ledger().clone();
    let folded = tokio::task::spawn_blocking(move || ledger.fold(&Unfinished, None)).await;
    assert!(folded.unwrap().unwrap().state.is_empty());
}

/// Anonymous memory of this process, in KiB.
fn anonymous() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let line = line.unwrap_or("0").trim().trim_end_matches(" kB");
    line.trim().parse().unwrap_or(0.0)
}

/// Microseconds that this process has had of a processor: unlike time, whatever else the machine does.
fn processor() -> f64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let used = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    used.sum::<f64>() / 1000.0
}

/// What a child does: it begins the run and dies in it, or takes it up.
async fn deed(path: &Path, deed: &str, id: &str) {
    if deed == "begin" {
        let neuron = open(path, true, Durability::PowerLoss).await;
        neuron.run(speech, STEPS).id(id).await.unwrap();
        return;
    }
    let began = Instant::now();
    let neuron = open(path, false, Durability::PowerLoss).await;
    let opened = began.elapsed().as_micros();
    let found = neuron.recover().await.unwrap();
    let recovered = began.elapsed().as_micros();
    assert_eq!(found.here.len(), 1, "{found:?}");
    assert_eq!(neuron.run(speech, STEPS).id(id).await.unwrap(), STEPS);
    let all = began.elapsed().as_micros();
    println!(
        "{opened} {} {all} {:.0} {}",
        recovered - opened,
        processor(),
        anonymous()
    );
}

fn child(path: &Path, deed: &str, id: &str) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env("NEURON_BENCH_STORE", path).args([deed, id]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Microseconds of opening, of finding, of all of it, and of the processor; KiB of memory.
type Figures = [f64; 5];

/// Cuts a run off and takes it up.
fn turn(path: &Path, id: &str) -> Figures {
    child(path, "begin", id);
    let said = child(path, "resume", id);
    let figures: Vec<f64> = said.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
    figures.try_into().unwrap()
}

/// The middle one of each figure.
fn median(turns: &[Figures]) -> Figures {
    std::array::from_fn(|figure| {
        let mut all: Vec<f64> = turns.iter().map(|turn| turn[figure]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    })
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    if let (Some(path), [what, id, ..]) = (env::var_os("NEURON_BENCH_STORE"), &args[..]) {
        return deed(&PathBuf::from(path), what, id).await;
    }
    // `cargo test` builds benches too and runs them with `--test`: nothing is measured then.
    if args.iter().any(|arg| arg == "--test") {
        return;
    }
    let rows = env::var("NEURON_BENCH_ROWS").ok().and_then(|rows| rows.parse().ok());
    let rows = rows.unwrap_or(1_000_000);
    let folder = tempfile::tempdir().unwrap();
    let stores = [(SMALL, "small.db"), (rows, "large.db")].map(|(rows, name)| (rows, folder.path().join(name)));
    for (rows, path) in &stores {
        let began = Instant::now();
        fill(path, *rows).await;
        println!("filled {rows} envelopes in {:.0} s", began.elapsed().as_secs_f64());
    }
    let mut turns = [Vec::new(), Vec::new()];
    // In turns, so that whatever else the machine does meets both.
    for nth in 0..TURNS {
        for ((_, path), turns) in stores.iter().zip(&mut turns) {
            turns.push(turn(path, &format!("cut-{nth}")));
        }
    }
    let figures = turns.map(|turns| median(&turns));
    for ((rows, _), [opened, found, all, processor, memory]) in stores.iter().zip(figures) {
        println!(
            "6 resume a run in a log of {rows}: open {opened:.0} µs, recover {found:.0} µs, to its end {all:.0} µs, \
             of which {processor:.0} µs on a processor; {:.1} MiB anonymous",
            memory / 1024.0
        );
    }
    let [small, large] = figures;
    println!(
        "6 ratio of time {:.2}, of the processor's {:.2} (goal ≤ 1.2); of memory {:.2} (goal: constant)",
        large[2] / small[2],
        large[3] / small[3],
        large[4] / small[4]
    );
}
