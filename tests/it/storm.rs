//! What a machine does to writers under load: it kills them at any moment, lets no file grow, takes rights away, and lets
//! others cut files. What was acknowledged stands, batches stand whole, what was reported failed is not there.

mod hostile;
mod kill;
mod limit;
mod stalled;

use std::{
    collections::{BTreeMap, HashMap},
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use neuron::{
    Append, Author, Digest, Draft, Error, ErrorKind, Json, Ledger, Millis, Receipt, SystemClock, Topic,
    pipeline::Pipeline,
    store::{Durability, Options, Range, Row, Select, Sqlite, Store, conformance, verify},
};
use neuron_workspace::{Dice, Process};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Tasks of one child that append at once.
const TASKS: usize = 8;

/// This very test, started as a child that pours batches into a store. `life` is a number that no other child has. A signal
/// that the kernel sends where a file may not grow is ignored, as a program does that wants the error instead.
fn child(path: &Path, life: u64) -> Process {
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"trap '' XFSZ; exec "$@""#, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "storm::a_child_pours", "--nocapture"])
        .env("STORM_STORE", path)
        .env("STORM_LIFE", life.to_string());
    Process::start(command)
}

/// The children's part of this file; without a store there is nothing to do.
#[test]
fn a_child_pours() {
    let Some(path) = std::env::var_os("STORM_STORE").map(PathBuf::from) else {
        return;
    };
    let life: u64 = std::env::var("STORM_LIFE").unwrap().parse().unwrap();
    let store = Arc::new(Sqlite::open(&path, options()).unwrap());
    let ledger = Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| obey(&ended));
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .build()
                .unwrap();
            runtime.block_on(async {
                let pours = (0..TASKS).map(|task| pour(&ledger, life, task, &ended));
                futures::future::join_all(pours).await;
            });
        });
    });
}

/// Does what it is told, line by line, until nobody tells it anything: `limit BYTES`, `free`.
fn obey(ended: &AtomicBool) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let most = match line.split_once(' ') {
            Some(("limit", bytes)) => Some(bytes.parse().unwrap()),
            _ => None,
        };
        let maximum = getrlimit(Resource::Fsize).maximum;
        setrlimit(Resource::Fsize, Rlimit { current: most, maximum }).unwrap();
        say(&format!("obeyed {line}"));
    }
    ended.store(true, Ordering::SeqCst);
}

fn options() -> Options {
    Options {
        durability: Durability::Process,
        ..Options::default()
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever started this one may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

/// One task: batches of one to four envelopes, of several sizes, each told before and after.
async fn pour(ledger: &Ledger, life: u64, task: usize, ended: &AtomicBool) {
    let mut dice = Dice::new(life * 1_000 + task as u64);
    for number in 0.. {
        if ended.load(Ordering::SeqCst) {
            return;
        }
        let (name, size) = (format!("{life}.{task}.{number}"), 1 + dice.below(4));
        let padding = "x".repeat(*dice.pick(&[0, 40, 600, 9_000]));
        let own = format!("own.{}", dice.below(20));
        let draft = |index: usize| {
            let draft = Draft::new(topic(if index == 0 { &own } else { "all" }), Author::cli(), "said").unwrap();
            draft.json(Json::of(&(&name, size, index, &padding)).unwrap(), None)
        };
        let append = Append::of((0..size).map(draft).collect::<Vec<_>>());
        let batch = conformance::batch(append, Millis(1)).unwrap();
        match ledger.store().append(batch).await {
            Ok(receipts) => {
                say(&format!("stands {name} {} {}", receipts[0].pos, receipts[0].id));
                if number % 40 == task {
                    keep_and_look(ledger, &name, &receipts[0]);
                }
            }
            Err(error) => {
                say(&format!("failed {name} {:?} {error}", error.kind()));
                // What fails at once would fill the pipe.
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Keeps an artifact, and looks an id up, which reads and fills the side file.
fn keep_and_look(ledger: &Ledger, name: &str, receipt: &Receipt) {
    let content = name.repeat(30_000);
    match ledger.store_blob(content.as_bytes()) {
        Ok(hash) => say(&format!("kept {hash}")),
        Err(error) => say(&format!("not kept: {:?}", error.kind())),
    }
    match ledger.store().with_id(&receipt.id.to_string()) {
        Ok(found) if found == [receipt.pos] => {}
        Err(error) if error.kind() == ErrorKind::Io => {}
        other => say(&format!("wrong: {receipt:?} is found at {other:?}")),
    }
}

/// What a child has said of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Stands { pos: u64, id: String },
    Failed(String),
}

/// What all the children have said.
#[derive(Default)]
struct Heard {
    batches: HashMap<String, Told>,
    kept: Vec<Digest>,
}

impl Heard {
    fn of<'a>(lines: impl IntoIterator<Item = &'a String>) -> Self {
        let mut heard = Self::default();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["stands", name, pos, id] => {
                    let (pos, id) = (pos.parse().unwrap(), id.to_owned());
                    heard.batches.insert(name.to_owned(), Told::Stands { pos, id });
                }
                ["failed", name, ..] => drop(heard.batches.insert(name.to_owned(), Told::Failed(line.clone()))),
                ["kept", hash] => heard.kept.push(hash.parse().unwrap()),
                _ => assert!(!line.contains("panicked") && !line.starts_with("wrong"), "{line}"),
            }
        }
        heard
    }

    fn standing(&self) -> usize {
        let stands = self.batches.values().filter(|told| matches!(told, Told::Stands { .. }));
        stands.count()
    }
}

fn all(store: &dyn Store) -> Result<Vec<Row>, Error> {
    let (mut rows, mut range) = (Vec::new(), Range::ALL);
    loop {
        let page = store.page(&Select::All, range)?;
        rows.extend(page.rows);
        match page.next {
            Some(next) => range.from = next,
            None => return Ok(rows),
        }
    }
}

/// Holds a store to what was heard of it.
fn check(path: &Path, heard: &Heard) {
    let store = Sqlite::open(path, options()).unwrap();
    let rows = all(&store).unwrap();
    let mut seqs: BTreeMap<&Topic, u64> = BTreeMap::new();
    let mut batches: HashMap<String, (u64, &Digest, usize, usize)> = HashMap::new();
    for (place, row) in (1..).zip(&rows) {
        assert_eq!(row.pos, place, "`pos` has a gap");
        let seq = seqs.entry(&row.topic).or_default();
        *seq += 1;
        assert_eq!(row.seq, *seq, "{} has a gap", row.topic);
        let (name, size, index, _): (String, usize, usize, String) = row.envelope().unwrap().decode().unwrap();
        let (first, _, _, count) = batches.entry(name.clone()).or_insert((row.pos, &row.id, size, 0));
        assert_eq!(
            (row.pos, index),
            (*first + *count as u64, *count),
            "batch {name} is torn apart"
        );
        *count += 1;
    }
    for (name, (_, _, size, count)) in &batches {
        assert_eq!(count, size, "batch {name} stands by half");
    }
    for (name, told) in &heard.batches {
        match (told, batches.get(name)) {
            (Told::Stands { pos, id }, Some((first, first_id, ..))) => {
                assert_eq!((pos, id), (first, &first_id.to_string()), "batch {name}");
            }
            (Told::Stands { pos, .. }, None) => panic!("batch {name} was acknowledged at pos {pos} and is lost"),
            (Told::Failed(why), Some((pos, ..))) => panic!("batch {name} stands at pos {pos}, and was told: {why}"),
            (Told::Failed(_), None) => {}
        }
    }
    for hash in &heard.kept {
        assert!(
            store.manifest(hash).unwrap().is_some(),
            "artifact {hash} was acknowledged and is lost"
        );
    }
    let verified = verify::verify(&store).unwrap();
    assert_eq!(verified.head.pos, rows.len() as u64);
}
