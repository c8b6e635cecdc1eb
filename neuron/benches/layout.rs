//! What an envelope costs in each layout of the store: bare `rusqlite`, no code of this crate.
//!
//! `LAYOUT_ROWS` is the size of the log (default 100,000; the decision in `docs/DESIGN.md` was taken at 3,000,000, a few
//! minutes and 3 GB of temporary files per layout), `LAYOUT_ONLY` a comma list of layouts, `LAYOUT_TOPICS` how many
//! topics are written at the same time (default 200).
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "layout/candidate.rs"]
mod candidate;
#[path = "layout/log.rs"]
mod log;
#[path = "layout/rows.rs"]
mod rows;

use candidate::{Candidate, Indexes};
use log::{Cost, Group, Log, Result, Sync};

const SMALL: i64 = 10_000;
const REPEATS: usize = 3;
/// What a commit holds, and how many rows or steps a window appends.
const GROUPS: [(Group, usize); 4] = [
    (Group::Step, 400),
    (Group::Of(1), 400),
    (Group::Of(64), 6_400),
    (Group::Of(512), 10_240),
];

fn main() -> Result<()> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u32>()).transpose();
    let rows = i64::from(number("LAYOUT_ROWS")?.unwrap_or(100_000));
    let live = u64::from(number("LAYOUT_TOPICS")?.unwrap_or(200));
    let only = std::env::var("LAYOUT_ONLY").ok();
    println!(
        "{live} topics live; µs per row or step / of it processor time, best of {REPEATS} windows; reads in µs per row"
    );
    print!("{:<13}{:>8}", "layout", "rows");
    for durability in ["FULL", "NORMAL"] {
        print!(
            " |{:>13}{:>13}{:>11}{:>11}",
            format!("{durability} step"),
            "1",
            "64",
            "512"
        );
    }
    println!(
        " |{:>4} {:>6} |{:>6}{:>6}{:>6}{:>7}",
        "ms", "B/row", "topic", "type", "all", "replay"
    );
    for candidate in candidate::ALL {
        if only
            .as_deref()
            .is_none_or(|only| only.split(',').any(|name| name == candidate.name))
        {
            measure(*candidate, rows, live)?;
        }
    }
    Ok(())
}

fn measure(candidate: Candidate, rows: i64, live: u64) -> Result<()> {
    let fresh = || -> Result<Log> {
        let mut log = Log::create(candidate, live)?;
        log.fill(SMALL)?;
        Ok(log)
    };
    // Every window of the small size has a log of its own: a window would double it.
    report(
        &candidate,
        SMALL,
        &costs(|sync, group, rows| fresh()?.append(sync, group, rows))?,
        &fresh()?,
    )?;
    let mut log = fresh()?;
    let sizes = [rows / 3, rows];
    for size in sizes.into_iter().filter(|size| *size >= 10 * SMALL) {
        log.fill(size)?;
        let costs = costs(|sync, group, rows| log.append(sync, group, rows))?;
        report(&candidate, size, &costs, &log)?;
    }
    Ok(())
}

/// The best window of each durability and group size, in the order of the columns.
fn costs(mut window: impl FnMut(Sync, Group, usize) -> Result<Cost>) -> Result<Vec<Cost>> {
    let mut best: Vec<Option<Cost>> = vec![None; 2 * GROUPS.len()];
    for _ in 0..REPEATS {
        let mut cells = best.iter_mut();
        for sync in [Sync::Full, Sync::Normal] {
            for ((group, rows), cell) in GROUPS.into_iter().zip(&mut cells) {
                let cost = window(sync, group, rows)?;
                *cell = Some(match *cell {
                    Some(other) => other.best(cost),
                    None => cost,
                });
            }
        }
    }
    Ok(best.into_iter().flatten().collect())
}

fn report(candidate: &Candidate, size: i64, costs: &[Cost], log: &Log) -> Result<()> {
    let reader = log.reader()?;
    let (topics, runs) = log.readable();
    let reads = [
        reader.by_topic(topics)?,
        match candidate.indexes {
            Indexes::NoQueries => f64::NAN,
            _ => reader.by_type(3, 50_000)?,
        },
        reader.all(200_000)?,
        reader.replay(runs)?,
    ];
    print!("{:<13}{size:>8}", candidate.name);
    for (index, Cost { wall, busy, .. }) in costs.iter().enumerate() {
        let edge = if index % GROUPS.len() == 0 { " |" } else { "" };
        let width = if index % GROUPS.len() < 2 { 13 } else { 11 };
        print!("{edge}{:>width$}", format!("{wall:.1}/{busy:.1}"));
    }
    let longest = costs.iter().map(|cost| cost.longest).max().unwrap_or_default();
    println!(
        " |{:>4.0} {:>6} |{:>6.2}{:>6.2}{:>6.2}{:>7.2}",
        longest.as_secs_f64() * 1e3,
        log.bytes_per_row()?,
        reads[0],
        reads[1],
        reads[2],
        reads[3]
    );
    Ok(())
}
