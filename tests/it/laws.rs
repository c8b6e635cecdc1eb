//! The laws of `ARCHITECTURE.md`, each as a test named as a sentence: what holds for every input is a property, on the
//! store in memory and on a SQLite file.

mod bounds;
mod control;
mod ephemeral;
mod folds;
mod headers;
mod ids;
mod owners;
mod past;
mod references;
mod visible;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use neuron::{
    Append, Author, Contract, Draft, Ledger, ManualClock, Millis, Parent, Pattern, Receipt, Topic,
    pipeline::Pipeline,
    store::{Durability, Fault, Memory, Options, Row, Select, Sqlite, Store},
};
use neuron_workspace::{is_long, scratch};
use proptest::{
    collection::vec,
    prelude::{Just, ProptestConfig, Strategy, any, prop_oneof},
    sample::select,
};
use tempfile::TempDir;

#[test]
fn every_law_is_told_with_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("neuron/docs/ARCHITECTURE.md")).unwrap();
    let (_, rest) = text.split_once("\n## Invariants\n").unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let laws: Vec<&str> = section.split("\n- **L").skip(1).collect();
    assert_eq!(laws.len(), 14);
    for (number, law) in (1..).zip(laws) {
        assert!(law.starts_with(&format!("{number} ")), "law {number} is told as {law}");
        let law = law.split("\n\n").next().unwrap();
        let (mut file, mut tests) = (None, 0);
        // Between backquotes stands a file, then the tests in it.
        for quoted in law.split_once("**").unwrap().1.split('`').skip(1).step_by(2) {
            if Path::new(quoted).extension().is_some_and(|kind| kind == "rs") {
                file = Some((quoted, fs::read_to_string(root.join(quoted)).unwrap()));
            } else if let Some((name, source)) = &file {
                assert!(
                    source.contains(&format!("fn {quoted}(")),
                    "L{number}: {name} has no test `{quoted}`"
                );
                tests += 1;
            }
        }
        assert!(tests > 0, "L{number} names no test");
    }
}

const TOPICS: [&str; 3] = ["law.a", "law.b", "law.c"];
const KINDS: [&str; 3] = ["said", "asked", "sung"];
const KEYS: [&str; 3] = ["red", "green", "blue"];
const BEGIN: Millis = Millis(1_790_000_000_000);

/// So many cases of a property; each makes a store.
fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: if is_long() { count * 20 } else { count },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// One envelope that a script writes.
#[derive(Clone, Debug)]
struct Line {
    topic: usize,
    kind: usize,
    key: Option<usize>,
    text: String,
    /// Responds to the last envelope of its topic, if there is one.
    responds: bool,
}

/// Batches of lines, each batch one append.
type Script = Vec<Vec<Line>>;

fn line() -> impl Strategy<Value = Line> {
    let key = prop_oneof![Just(None), (0..KEYS.len()).prop_map(Some)];
    (0..TOPICS.len(), 0..KINDS.len(), key, "\\PC{0,12}", any::<bool>()).prop_map(
        |(topic, kind, key, text, responds)| Line {
            topic,
            kind,
            key,
            text,
            responds,
        },
    )
}

fn script() -> impl Strategy<Value = Script> {
    vec(vec(line(), 1..4), 1..8)
}

/// Which store a property runs on.
fn backend() -> impl Strategy<Value = Backend> {
    // A file costs a hundred times as much as memory.
    prop_oneof![5 => Just(Backend::Memory), 1 => Just(Backend::Sqlite)]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    Memory,
    Sqlite,
}

const BOTH: [Backend; 2] = [Backend::Memory, Backend::Sqlite];

/// A store, its ledger, and the clock that both go by.
struct Home {
    ledger: Ledger,
    clock: Arc<ManualClock>,
    memory: Option<Memory>,
    folder: Option<TempDir>,
}

impl Home {
    fn new(backend: Backend) -> Self {
        Self::with(backend, None)
    }

    fn with(backend: Backend, fault: Option<Arc<dyn Fault>>) -> Self {
        let clock = Arc::new(ManualClock::at(BEGIN));
        let (memory, folder) = match backend {
            Backend::Memory => (Some(Memory::with(clock.clone(), fault.clone()).unwrap()), None),
            Backend::Sqlite => (None, Some(scratch())),
        };
        let store: Arc<dyn Store> = match (&memory, &folder) {
            (Some(memory), _) => Arc::new(memory.clone()),
            (_, folder) => {
                let path = folder.as_ref().unwrap().path().join("law.db");
                Arc::new(Sqlite::open(path, options(&clock, fault)).unwrap())
            }
        };
        let home = Self {
            ledger: Ledger::over(store, clock.clone(), Pipeline::default()).unwrap(),
            clock,
            memory,
            folder,
        };
        home.declare("law.*", Contract::Durable);
        home
    }

    fn declare(&self, family: &str, contract: Contract) {
        let pattern = Pattern::new(family).unwrap();
        block_on(self.ledger.declare(&pattern, contract, &Author::cli())).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.folder.as_ref().unwrap().path().join("law.db")
    }

    /// The same store, as another process sees it: no cache, no ring, no declaration is shared.
    fn another(&self) -> Ledger {
        let store: Arc<dyn Store> = match &self.memory {
            Some(memory) => Arc::new(memory.clone()),
            None => Arc::new(Sqlite::open_apart(self.path(), options(&self.clock, None)).unwrap()),
        };
        Ledger::over(store, self.clock.clone(), Pipeline::default()).unwrap()
    }

    /// Closes the store, deletes everything beside it that is not of record, and opens it again.
    fn reopened(self) -> Self {
        let Self {
            ledger,
            clock,
            memory,
            folder,
        } = self;
        let rows = rows(&ledger).len();
        drop(ledger);
        let memory = memory.map(|memory| memory.cut(rows).unwrap());
        let store: Arc<dyn Store> = if let Some(memory) = &memory {
            Arc::new(memory.clone())
        } else {
            let folder = folder.as_ref().unwrap().path();
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_name() != "law.db" && entry.path().is_file() {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
            Arc::new(Sqlite::open(folder.join("law.db"), options(&clock, None)).unwrap())
        };
        Self {
            ledger: Ledger::over(store, clock.clone(), Pipeline::default()).unwrap(),
            clock,
            memory,
            folder,
        }
    }

    fn write(&self, script: &[Vec<Line>]) -> Vec<Receipt> {
        let batches = script.iter().map(|batch| {
            self.clock.set(Millis(self.clock_now() + 7));
            self.ledger.append_blocking(self.batch(batch)).unwrap()
        });
        batches.collect::<Vec<_>>().concat()
    }

    fn clock_now(&self) -> i64 {
        use neuron::Clock as _;
        self.clock.now().0
    }

    fn batch(&self, lines: &[Line]) -> Append {
        let mut heads: Vec<u64> = (0..TOPICS.len())
            .map(|index| self.ledger.store().head(&topic(index)).unwrap())
            .collect();
        Append::of(lines.iter().map(|line| {
            let mut draft = Draft::new(topic(line.topic), Author::cli(), KINDS[line.kind]).unwrap();
            draft = draft.payload(&line.text).unwrap();
            if let Some(key) = line.key {
                draft = draft.key(KEYS[key]).unwrap();
            }
            let head = &mut heads[line.topic];
            if line.responds && *head > 0 {
                draft = draft.parent(Parent::Seq(*head));
            }
            *head += 1;
            draft
        }))
    }
}

fn options(clock: &Arc<ManualClock>, fault: Option<Arc<dyn Fault>>) -> Options {
    Options {
        durability: Durability::Process,
        clock: clock.clone(),
        fault,
        ..Options::default()
    }
}

fn topic(index: usize) -> Topic {
    Topic::new(TOPICS[index]).unwrap()
}

fn note(text: &str) -> Draft {
    let draft = Draft::new(topic(0), Author::cli(), "said").unwrap();
    draft.payload(&text.to_owned()).unwrap()
}

/// Every row of a store, in order.
fn rows(ledger: &Ledger) -> Vec<Row> {
    let mut reading = ledger.read(Select::All);
    let mut rows = Vec::new();
    loop {
        let page = reading.page().unwrap();
        if page.is_empty() {
            return rows;
        }
        rows.extend(page);
    }
}

/// A runtime of this thread alone, for what waits.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(work)
}

fn any_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    select(words)
}
