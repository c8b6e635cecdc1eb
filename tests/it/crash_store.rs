//! The crash matrix of the store: a child is really aborted before and after every commit of a history, killed under load,
//! and stopped inside a commit. What was acknowledged stands, nothing stands by half, and everybody else goes on.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use neuron::{
    Append, Author, Cause, Deferred, Digest, Draft, Error, ErrorKind, Json, Ledger, Millis, Parent, Receipt, Topic,
    doctor,
    ownership::Ownership,
    store::{Access, Fault, Manifest, Options, Point, Range, Row, Select, Sqlite, Store, conformance, verify},
};
use neuron_workspace::{PATIENCE, Process};

/// What a child does, and when it ends.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Writes the history; aborts before or after this commit, counted from 1.
    History(Option<(Point, usize)>),
    /// Writes without end from several threads.
    Load,
    /// Stands inside its second commit until it is told to go on.
    Stand,
    /// Opens, writes and closes again and again.
    Reopen,
    /// Stands inside a transaction of its own, as a program does that knows nothing of stores.
    Foreign,
}

impl Deed {
    fn words(self) -> String {
        match self {
            Self::History(None) => "history".to_owned(),
            Self::History(Some((point, commit))) => format!("history {} {commit}", point == Point::BeforeCommit),
            Self::Load => "load".to_owned(),
            Self::Stand => "stand".to_owned(),
            Self::Reopen => "reopen".to_owned(),
            Self::Foreign => "foreign".to_owned(),
        }
    }

    fn read(words: &str) -> Self {
        match words.split(' ').collect::<Vec<_>>()[..] {
            ["history"] => Self::History(None),
            ["history", before, commit] => {
                let point = if before == "true" {
                    Point::BeforeCommit
                } else {
                    Point::AfterCommit
                };
                Self::History(Some((point, commit.parse().unwrap())))
            }
            ["load"] => Self::Load,
            ["stand"] => Self::Stand,
            ["reopen"] => Self::Reopen,
            ["foreign"] => Self::Foreign,
            _ => panic!("no deed: {words}"),
        }
    }
}

/// This very test, started as a child with a deed.
fn child(path: &Path, deed: Deed) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "crash_store::a_child_does_its_deed", "--nocapture"])
        .env("CRASH_STORE", path)
        .env("CRASH_DEED", deed.words());
    Process::start(command)
}

/// The children's part of this file. Without a deed it does the history itself, and holds it to its number of commits.
#[test]
fn a_child_does_its_deed() {
    let Some(path) = std::env::var_os("CRASH_STORE").map(PathBuf::from) else {
        let folder = tempfile::tempdir().unwrap();
        let commits = Arc::new(Commits::new(None));
        history(&folder.path().join("own.db"), &commits);
        assert_eq!(commits.made.load(Ordering::SeqCst), COMMITS);
        return;
    };
    match Deed::read(&std::env::var("CRASH_DEED").unwrap()) {
        Deed::History(end) => history(&path, &Arc::new(Commits::new(end))),
        Deed::Load => load(&path),
        Deed::Stand => stand(&path),
        Deed::Reopen => {
            let large = "x".repeat(60_000);
            for _ in 0..150 {
                // Each time the log is moved into a file that grows, and then removed.
                let store = Sqlite::open(&path, Options::default()).unwrap();
                acknowledge(
                    &store
                        .append_blocking(prepared(Append::of([draft("a", &large)])))
                        .unwrap(),
                );
            }
        }
        Deed::Foreign => {
            let foreign = rusqlite::Connection::open(&path).unwrap();
            foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
            say("inside");
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
    }
}

/// Commits that the history makes.
const COMMITS: usize = 8;

/// Counts commits, and aborts the process at one of them.
#[derive(Debug)]
struct Commits {
    end: Option<(Point, usize)>,
    made: AtomicUsize,
}

impl Commits {
    fn new(end: Option<(Point, usize)>) -> Self {
        Self {
            end,
            made: AtomicUsize::new(0),
        }
    }
}

impl Fault for Commits {
    fn at(&self, point: Point) -> Result<(), Error> {
        let commit = match point {
            Point::BeforeCommit => self.made.fetch_add(1, Ordering::SeqCst) + 1,
            _ => self.made.load(Ordering::SeqCst),
        };
        if self.end == Some((point, commit)) {
            std::process::abort();
        }
        Ok(())
    }
}

fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

fn draft(name: &str, text: &str) -> Draft {
    let draft = Draft::new(topic(name), Author::cli(), "said").unwrap();
    draft.json(Json::of(text).unwrap(), None)
}

fn prepared(append: Append) -> neuron::store::Batch {
    conformance::batch(append, Millis(1)).unwrap()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

fn acknowledge(receipts: &[Receipt]) {
    for receipt in receipts {
        say(&format!("stands {} {}", receipt.pos, receipt.id));
    }
}

/// Batches of several shapes, each under its key, so that a second run repeats what stands and goes on after it.
fn history(path: &Path, commits: &Arc<Commits>) {
    let options = Options {
        fault: Some(commits.clone()),
        ..Options::default()
    };
    let store = Sqlite::open(path, options).unwrap();
    let keyed = |append: Append, key: &str| append.idempotency_key(key).unwrap();
    let append = |append: Append, key: &str| {
        let receipts = store.append_blocking(prepared(keyed(append, key))).unwrap();
        acknowledge(&receipts);
    };
    append(Append::of([draft("a", "1")]), "one");
    append(
        Append::of([draft("a", "2"), draft("b", "3").cause(Cause::Index(0)), draft("a", "4")]),
        "three",
    );
    let defer = |text: &str, key: &str| -> Deferred {
        let deferred = Append::of([draft("a", text)]);
        store.defer(prepared(keyed(deferred, key))).unwrap().remove(0)
    };
    let first = defer("5", "deferred");
    append(
        Append::of([draft("a", "6").parent(Parent::Deferred(first))]),
        "after it",
    );
    append(Append::of((0..200).map(|n| draft("bulk", &n.to_string()))), "bulk");
    let chunks: Vec<Arc<[u8]>> = vec![vec![1; 200_000].into(), vec![2; 5].into()];
    let hashes: Vec<Digest> = chunks.iter().map(|chunk| Digest::content(chunk)).collect();
    let manifest = Manifest {
        hash: Digest::content(&chunks.concat()),
        bytes: 200_005,
        chunks: hashes.clone(),
    };
    store.put_chunks(hashes.into_iter().zip(chunks).collect()).unwrap();
    store.put_manifest(&manifest).unwrap();
    say(&format!("artifact {}", manifest.hash));
    append(Append::of([draft("c", "7").key("k").unwrap()]), "keyed");
    defer("8", "last");
    // Goes with the handle.
    drop(store);
    say("done");
}

fn rows(store: &dyn Store) -> Vec<Row> {
    let page = store.page(&Select::All, Range::ALL).unwrap();
    assert_eq!(page.next, None);
    page.rows
}

/// The text of each row, in order: what a history says.
fn texts(store: &dyn Store) -> Vec<String> {
    let text = |row: &Row| row.envelope().unwrap().decode::<String>().unwrap();
    rows(store).iter().map(text).collect()
}

/// What a child acknowledged stands where it said, every batch stands whole, and the store is sound.
fn check(path: &Path, said: &[String]) {
    let store = Sqlite::open(path, Options::default()).unwrap();
    let rows = all(&store);
    for line in said {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["stands", pos, id] => {
                let pos: usize = pos.parse().unwrap();
                let row = rows
                    .get(pos - 1)
                    .unwrap_or_else(|| panic!("pos {pos} was acknowledged and is lost"));
                assert_eq!((row.pos, row.id.to_string().as_str()), (pos as u64, id));
            }
            ["artifact", hash] => assert!(store.manifest(&hash.parse().unwrap()).unwrap().is_some()),
            _ => {}
        }
    }
    let mut batches: BTreeMap<String, usize> = BTreeMap::new();
    for row in &rows {
        if let Some(key) = row.envelope().unwrap().headers.decode::<String>("idempotency-key") {
            *batches.entry(key).or_default() += 1;
        }
    }
    let whole = |key: &str| match key {
        "three" => 3,
        "bulk" => 200,
        _ => 1,
    };
    for (key, count) in batches {
        assert_eq!(count, whole(&key), "batch `{key}` stands by half");
    }
    assert_eq!(verify::verify(&store).unwrap().head.pos, rows.len() as u64);
}

fn all(store: &dyn Store) -> Vec<Row> {
    let (mut rows, mut range) = (Vec::new(), Range::ALL);
    loop {
        let page = store.page(&Select::All, range).unwrap();
        rows.extend(page.rows);
        match page.next {
            Some(next) => range.from = next,
            None => return rows,
        }
    }
}

/// What the history says when nobody interrupts it.
fn uninterrupted() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole.db");
        history(&path, &Arc::new(Commits::new(None)));
        texts(&Sqlite::open(&path, Options::default()).unwrap())
    })
}

#[test]
fn a_history_aborted_at_any_commit_stands_as_acknowledged_and_is_completed_by_a_second_run() {
    for commit in 1..=COMMITS {
        for point in [Point::BeforeCommit, Point::AfterCommit] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("crash.db");
            let (status, said) = child(&path, Deed::History(Some((point, commit)))).wait();
            assert!(!status.success(), "it was to die {point:?} {commit}; it said {said:?}");
            check(&path, &said);
            let (status, said) = child(&path, Deed::History(None)).wait();
            assert!(status.success() && said.iter().any(|line| line == "done"), "{said:?}");
            check(&path, &said);
            let store = Sqlite::open(&path, Options::default()).unwrap();
            assert_eq!(texts(&store), uninterrupted(), "{point:?} {commit}");
        }
    }
}

/// Appends from several threads until somebody ends it.
fn load(path: &Path) {
    let store = Sqlite::open(path, Options::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0.. {
                    let text = format!("{thread} {n}");
                    let own = format!("own.{thread}");
                    let drafts = [draft("all", &text), draft(&own, &text).cause(Cause::Index(0))];
                    acknowledge(&store.append_blocking(prepared(Append::of(drafts))).unwrap());
                }
            });
        }
    });
}

#[test]
fn a_writer_killed_under_load_leaves_what_it_acknowledged_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.db");
    let mut said = Vec::new();
    for acknowledged in [1, 40, 400] {
        let mut writer = child(&path, Deed::Load);
        for _ in 0..acknowledged {
            writer.wait_for("stands");
        }
        writer.kill();
        said.extend(writer.wait().1);
        check(&path, &said);
        let rows = all(&Sqlite::open(&path, Options::default()).unwrap());
        assert!(rows.len().is_multiple_of(2), "every batch has two envelopes");
    }
}

/// Stands inside its second commit until a line is read.
fn stand(path: &Path) {
    #[derive(Debug)]
    struct Stand(AtomicUsize);
    impl Fault for Stand {
        fn at(&self, point: Point) -> Result<(), Error> {
            if point == Point::BeforeCommit && self.0.fetch_add(1, Ordering::SeqCst) == 1 {
                say("inside");
                std::io::stdin().read_line(&mut String::new()).unwrap();
            }
            Ok(())
        }
    }
    let options = Options {
        fault: Some(Arc::new(Stand(AtomicUsize::new(0)))),
        ..Options::default()
    };
    let store = Sqlite::open(path, options).unwrap();
    for text in ["before", "inside"] {
        acknowledge(&store.append_blocking(prepared(Append::of([draft("a", text)]))).unwrap());
    }
    say("done");
}

/// A child that SIGSTOP has caught inside a commit, and a store of this process on the same file.
fn stopped(path: &Path) -> (Process, Sqlite) {
    let mut writer = child(path, Deed::Stand);
    writer.wait_for("inside");
    writer.pause();
    let options = Options {
        wait: Duration::from_millis(100),
        ..Options::default()
    };
    let store = Sqlite::open(path, options).unwrap();
    let error = store
        .append_blocking(prepared(Append::of([draft("a", "too early")])))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let (pid, file) = (format!("pid {}", writer.id()), path.display().to_string());
    assert!(
        error.message().contains(&pid) && error.message().contains(&file),
        "{error}"
    );
    assert_eq!(texts(&store), ["before"], "reading goes on meanwhile");
    (writer, store)
}

#[test]
fn a_writer_stopped_inside_a_commit_is_named_and_both_go_on_when_it_continues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("continue.db");
    let (mut writer, store) = stopped(&path);
    writer.resume();
    writer.say("go on");
    writer.wait_for("done");
    store
        .append_blocking(prepared(Append::of([draft("a", "after")])))
        .unwrap();
    assert_eq!(texts(&store), ["before", "inside", "after"]);
    verify::verify(&store).unwrap();
}

#[test]
fn a_writer_stopped_inside_a_commit_and_killed_frees_the_store_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kill.db");
    let (mut writer, store) = stopped(&path);
    writer.kill();
    store
        .append_blocking(prepared(Append::of([draft("a", "after")])))
        .unwrap();
    assert_eq!(texts(&store), ["before", "after"]);
    verify::verify(&store).unwrap();
}

#[test]
fn another_program_inside_a_transaction_is_named_to_whoever_writes_and_by_the_doctor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foreign.db");
    let options = Options {
        wait: Duration::from_millis(100),
        ..Options::default()
    };
    let ledger = Ledger::open(&path, options).unwrap();
    let owners = Ownership::join(ledger.clone(), Duration::from_secs(9)).unwrap();
    let mut program = child(&path, Deed::Foreign);
    program.wait_for("inside");
    let named = if cfg!(target_os = "linux") {
        format!("another program (pid {})", program.id())
    } else {
        "another program".to_owned()
    };
    let append = || {
        ledger
            .store()
            .append_blocking(prepared(Append::of([draft("a", "!")])))
            .map(drop)
    };
    // That a name cannot be claimed now does not mean that somebody owns it.
    let claim = || futures::executor::block_on(owners.claim_when_free("run:a")).map(drop);
    for refused in [append(), claim()] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        for part in [&*named, "foreign.db", "try again"] {
            assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
        }
    }
    if cfg!(target_os = "linux") {
        let found = doctor::examine(&path).unwrap();
        assert!(
            found.findings.iter().any(|finding| finding.what.contains(&named)),
            "{found:?}"
        );
    }
    program.say("go on");
    program.wait();
    claim().unwrap();
    let found = doctor::examine(&path).unwrap();
    assert!(
        !found
            .findings
            .iter()
            .any(|finding| finding.what.contains("another program"))
    );
}

#[test]
fn whoever_opens_a_store_while_another_closes_it_is_never_told_that_it_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("closing.db");
    drop(Sqlite::open(&path, Options::default()).unwrap());
    let mut writer = child(&path, Deed::Reopen);
    writer.wait_for("stands");
    let (mut last, until) = (0, Instant::now() + PATIENCE);
    while last < 150 {
        assert!(Instant::now() < until, "the writer ended at {last}");
        let reading = Options {
            access: Access::Read,
            ..Options::default()
        };
        let store = Sqlite::open(&path, reading).unwrap();
        let now = store.last().unwrap().0;
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    writer.wait();
}
