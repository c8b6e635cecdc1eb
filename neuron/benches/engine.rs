//! The speed of the engine, as ratios against a baseline measured in the same run: bare rusqlite writing or reading the
//! very same rows (bytes, columns, indexes, group sizes, durability), without neuron.
//!
//! ```text
//! cargo bench -p neuron --bench engine
//! NEURON_BENCH_ROWS=300000 cargo bench -p neuron --bench engine      # a smaller log, quicker
//! NEURON_BENCH_TOPICS=20000 cargo bench -p neuron --bench engine      # fewer topics where memory is measured with many
//! NEURON_BENCH_ONLY=1,3 cargo bench -p neuron --bench engine          # some of the rows
//! ```
//!
//! Absolute figures depend on the disk; the goals are ratios. Each figure is the best of several windows on both sides.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a bench prints figures and stops at the first fault"
)]

#[path = "engine/baseline.rs"]
mod baseline;
#[path = "engine/bus.rs"]
mod bus;
#[path = "engine/grown.rs"]
mod grown;
#[path = "engine/integrity.rs"]
mod integrity;
#[path = "engine/memory.rs"]
mod memory;
#[path = "engine/processes.rs"]
mod processes;
#[path = "engine/steps.rs"]
mod steps;
#[path = "engine/table.rs"]
mod table;
#[path = "engine/writers.rs"]
mod writers;

use neuron::store::Durability;

fn main() {
    // `cargo test` builds benches too and runs them with `--test`: nothing is measured then.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    // Another process of one of the rows below.
    if processes::child() || memory::child() {
        return;
    }
    bus::answer();
    let rows = std::env::var("NEURON_BENCH_ROWS")
        .ok()
        .and_then(|rows| rows.parse().ok())
        .unwrap_or(3_000_000);
    let only = std::env::var("NEURON_BENCH_ONLY").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|row| !row.is_empty()).collect();
    let asked = |row: &str| only.is_empty() || only.contains(&row);
    let mut table = table::Table::new();
    println!(
        "one commit of one row, bare rusqlite, FULL: {:.0} µs",
        baseline::lone_commit_us()
    );
    for durability in [Durability::PowerLoss, Durability::Process] {
        if asked("1") {
            table.row(steps::sequential(durability));
        }
        if asked("3") {
            table.row(writers::sixty_four(durability));
        }
    }
    for durability in [Durability::PowerLoss, Durability::Process] {
        for (processes, writers) in [(2, 1), (2, 64), (4, 1)] {
            if asked("processes") {
                table.row(processes::several(durability, processes, writers));
            }
        }
    }
    if asked("4") || asked("5") {
        for row in grown::grown(rows) {
            table.row(row);
        }
    }
    if asked("verify") {
        table.row(integrity::verified(rows.min(1_000_000)));
    }
    if asked("7") {
        for row in bus::delivered() {
            table.row(row);
        }
    }
    if asked("memory") {
        memory::print(rows);
    }
    if asked("backup") {
        table.row(integrity::backups(rows.min(300_000)));
    }
    table.print();
}
