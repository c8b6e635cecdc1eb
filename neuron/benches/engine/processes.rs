//! Several processes append to one store, each without pause: all of them together against one alone, and how long one
//! append waits at most.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use neuron::{
    Author, Contract, Ledger, Pattern, Topic,
    store::{Durability, Options},
};

use crate::{table::Row, writers::draft};

const CHILD: &str = "NEURON_BENCH_APPENDER";
const WINDOW: Duration = Duration::from_secs(3);
const WINDOWS: usize = 3;

/// What the processes of one window did.
#[derive(Clone, Copy)]
struct Window {
    /// Appends per second, of all together.
    rate: f64,
    /// Microseconds, the worst of any process.
    p99: u64,
    longest: u64,
}

fn options(durability: Durability) -> Options {
    Options {
        durability,
        ..Options::default()
    }
}

/// The part of a child: appends from so many writers for the length of a window, and tells how that went.
pub(crate) fn child() -> bool {
    let Ok(deed) = std::env::var(CHILD) else { return false };
    let [durability, writers, number, path] = deed.splitn(4, ' ').collect::<Vec<_>>()[..] else {
        return false;
    };
    let durability = if durability == "PowerLoss" {
        Durability::PowerLoss
    } else {
        Durability::Process
    };
    let writers: usize = writers.parse().unwrap();
    let ledger = Ledger::open(path, options(durability)).unwrap();
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let mut waits: Vec<u64> = tokio.block_on(async {
        let tasks: Vec<_> = (0..writers)
            .map(|writer| {
                let (ledger, over) = (ledger.clone(), over.clone());
                let topic = Topic::new(format!("notes.{number}-{writer}")).unwrap();
                tokio::spawn(async move {
                    let author = Author::new("writer").unwrap();
                    let mut waits = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        let began = Instant::now();
                        ledger.publish(draft(&topic, &author, waits.len())).await.unwrap();
                        waits.push(u64::try_from(began.elapsed().as_micros()).unwrap());
                    }
                    waits
                })
            })
            .collect();
        tokio::time::sleep(WINDOW).await;
        over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.unwrap());
        }
        all
    });
    waits.sort_unstable();
    println!(
        "{} {} {}",
        waits.len(),
        waits[waits.len() * 99 / 100],
        waits[waits.len() - 1]
    );
    true
}

struct Appender(Child, BufReader<std::process::ChildStdout>);

impl Appender {
    fn start(path: &Path, durability: Durability, writers: usize, number: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(CHILD, format!("{durability:?} {writers} {number} {}", path.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut appender = Self(child, said);
        assert_eq!(appender.line(), "ready");
        appender
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn go(&mut self) {
        writeln!(self.0.stdin.as_mut().unwrap()).unwrap();
    }

    fn result(mut self) -> [u64; 3] {
        let line = self.line();
        self.0.wait().unwrap();
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    }
}

fn window(path: &Path, durability: Durability, processes: usize, writers: usize) -> Window {
    let mut appenders: Vec<_> = (0..processes)
        .map(|number| Appender::start(path, durability, writers, number))
        .collect();
    appenders.iter_mut().for_each(Appender::go);
    let mut window = Window {
        rate: 0.0,
        p99: 0,
        longest: 0,
    };
    for [count, p99, longest] in appenders.into_iter().map(Appender::result) {
        window.rate += count as f64 / WINDOW.as_secs_f64();
        window.p99 = window.p99.max(p99);
        window.longest = window.longest.max(longest);
    }
    window
}

impl Window {
    /// The most appends of both; the waits are the worst of both.
    fn or(self, other: Self) -> Self {
        Self {
            rate: self.rate.max(other.rate),
            p99: self.p99.max(other.p99),
            longest: self.longest.max(other.longest),
        }
    }
}

/// So many processes with so many writers each, against one such process.
pub(crate) fn several(durability: Durability, processes: usize, writers: usize) -> Row {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("processes.db");
    let ledger = Ledger::open(&path, options(durability)).unwrap();
    let notes = Pattern::new("notes.*").unwrap();
    let author = Author::cli();
    let declared = ledger.declare(&notes, Contract::Durable, &author);
    futures::executor::block_on(declared).unwrap();
    drop(ledger);
    let measure = |processes| window(&path, durability, processes, writers);
    // In turns, so that a disk that others use as well slows both.
    let (mut one, mut all) = (measure(1), measure(processes));
    for _ in 1..WINDOWS {
        (one, all) = (one.or(measure(1)), all.or(measure(processes)));
    }
    println!(
        "{processes} processes, {writers} writers each, {durability:?}: p99 of an append {:.1} ms (goal 250), longest {:.1} ms; \
         of one process alone {:.1} and {:.1} ms",
        all.p99 as f64 / 1000.0,
        all.longest as f64 / 1000.0,
        one.p99 as f64 / 1000.0,
        one.longest as f64 / 1000.0,
    );
    Row {
        work: format!("{processes} processes append, {writers} writers each, {durability:?}, against one"),
        ours: all.rate,
        baseline: one.rate,
        goal: "≥ 0.8",
        envelopes: 1.0,
        commits: f64::NAN,
        unit: "envelopes",
    }
}
