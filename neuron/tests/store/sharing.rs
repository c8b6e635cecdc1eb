//! Several writers on one file, and what stands beside it.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use futures::{FutureExt as _, executor::block_on};
use neuron::{
    Append, Deferred, Digest, Error, ErrorKind, Expectation, Millis,
    store::{Durability, Fault, Options, Point, Sqlite, Store, conformance},
};
use rusqlite::Connection;

use super::{append, draft, rows, say, topic};

/// A writer of its own, as another process would be.
fn apart(path: &Path) -> Sqlite {
    let options = Options {
        durability: Durability::Process,
        wait: Duration::from_millis(60),
        ..Options::default()
    };
    Sqlite::open_apart(path, options).unwrap()
}

#[test]
fn two_writers_take_turns_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.db");
    let (one, two) = (apart(&path), apart(&path));
    for n in 0..10 {
        let head = |seq| Expectation::Head(topic("a"), seq);
        append(&one, Append::of([draft("a", "one")]).expect(head(2 * n))).unwrap();
        append(
            &two,
            Append::of([draft("a", "two"), draft("b", "two")]).expect(head(2 * n + 1)),
        )
        .unwrap();
    }
    assert_eq!(rows(&one), rows(&two));
    assert_eq!(
        (one.head(&topic("a")).unwrap(), two.head(&topic("b")).unwrap()),
        (20, 10)
    );
    // A name that was interned by one while the other knew it to be absent.
    let key = |seq| Expectation::Key(topic("c"), "k".into(), seq);
    append(&one, Append::of([draft("a", "!")]).expect(key(None))).unwrap();
    append(&two, Append::of([draft("c", "!").key("k").unwrap()]).expect(key(None))).unwrap();
    append(
        &one,
        Append::of([draft("c", "!").key("k").unwrap()]).expect(key(Some(1))),
    )
    .unwrap();
}

#[test]
fn a_commit_of_another_process_moves_the_tail_and_reaches_no_observer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tail.db");
    let (one, two) = (apart(&path), apart(&path));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let rows = seen.clone();
    let _watching = conformance::observe(&one, move |row| rows.lock().unwrap().push(row.pos));
    say(&two, "a", "1");
    block_on(one.tail().wait_for(|tail| *tail == 1)).unwrap();
    say(&one, "a", "2");
    assert_eq!(*seen.lock().unwrap(), [2]);
}

/// Holds the first commit it meets until it is told to go on.
#[derive(Debug)]
struct Stop {
    reached: Mutex<Option<Sender<()>>>,
    go_on: Mutex<Receiver<()>>,
}

impl Fault for Stop {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == Point::BeforeCommit
            && let Some(reached) = self.reached.lock().unwrap().take()
        {
            reached.send(()).unwrap();
            self.go_on.lock().unwrap().recv().unwrap();
        }
        Ok(())
    }
}

/// A writer that stands inside its first commit, and how to let it go on.
fn stopped(path: &Path) -> (std::thread::JoinHandle<Sqlite>, Sender<()>) {
    let ((reached, seen), (go_on, told)) = (channel(), channel());
    let fault = Stop {
        reached: Mutex::new(Some(reached)),
        go_on: Mutex::new(told),
    };
    let options = Options {
        fault: Some(Arc::new(fault)),
        ..Options::default()
    };
    let store = Sqlite::open_apart(path, options).unwrap();
    let thread = std::thread::spawn(move || {
        say(&store, "a", "from the one that stands");
        store
    });
    seen.recv().unwrap();
    (thread, go_on)
}

/// Shows what is known of deferred appends while a commit is under way.
#[derive(Debug, Default)]
struct Peek {
    handles: Mutex<Vec<Deferred>>,
    seen: Mutex<Vec<bool>>,
}

impl Fault for Peek {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == Point::BeforeCommit {
            let places = self
                .handles
                .lock()
                .unwrap()
                .iter()
                .map(|handle| handle.place().is_some())
                .collect::<Vec<_>>();
            self.seen.lock().unwrap().extend(places);
        }
        Ok(())
    }
}

#[test]
fn a_deferred_append_has_no_place_before_its_commit_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    let peek = Arc::new(Peek::default());
    let options = Options {
        fault: Some(peek.clone()),
        ..Options::default()
    };
    let store = Sqlite::open_apart(folder.path().join("peek.db"), options).unwrap();
    let batch = conformance::batch(Append::of([draft("a", "1")]), Millis(1)).unwrap();
    peek.handles.lock().unwrap().extend(store.defer(batch).unwrap());
    store.flush();
    assert_eq!(*peek.seen.lock().unwrap(), [false]);
    assert!(peek.handles.lock().unwrap()[0].place().is_some());
}

#[test]
fn an_append_that_met_an_artifact_being_written_is_committed_right_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let ((reached, seen), (go_on, told)) = (channel(), channel());
    let fault = Stop {
        reached: Mutex::new(Some(reached)),
        go_on: Mutex::new(told),
    };
    let options = Options {
        fault: Some(Arc::new(fault)),
        ..Options::default()
    };
    let store = Sqlite::open_apart(folder.path().join("blob.db"), options).unwrap();
    let chunk: Arc<[u8]> = Arc::from(*b"chunk");
    std::thread::scope(|threads| {
        let writing = threads.spawn(|| store.put_chunks(vec![(Digest::content(&chunk), chunk.clone())]));
        seen.recv().unwrap();
        let batch = conformance::batch(Append::of([draft("a", "1")]), Millis(1)).unwrap();
        let mut append = store.append(batch);
        // It lets others go first, then finds the writer held.
        assert!((&mut append).now_or_never().is_none());
        assert!((&mut append).now_or_never().is_none());
        go_on.send(()).unwrap();
        writing.join().unwrap().unwrap();
        assert_eq!(append.now_or_never().unwrap().unwrap()[0].seq, 1);
    });
}

#[test]
fn an_append_whose_future_is_dropped_while_it_lets_others_go_first_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let store = apart(&folder.path().join("dropped.db"));
    let batch = conformance::batch(Append::of([draft("a", "1")]), Millis(1)).unwrap();
    assert!(store.append(batch).now_or_never().is_none());
    block_on(store.tail().wait_for(|tail| *tail == 1)).unwrap();
}

#[test]
fn a_writer_that_stands_inside_a_commit_is_named_and_the_other_goes_on_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stop.db");
    let two = apart(&path);
    let (thread, go_on) = stopped(&path);
    let pid = format!("pid {}", std::process::id());
    let error = append(&two, Append::of([draft("a", "too early")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(
        error.message().contains(&pid) && error.message().contains("stop.db"),
        "{error}"
    );
    let batch = conformance::batch(Append::of([draft("a", "too early")]), Millis(1)).unwrap();
    let error = block_on(two.append(batch)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Busy && error.message().contains(&pid),
        "{error}"
    );
    go_on.send(()).unwrap();
    let one = thread.join().unwrap();
    assert_eq!(say(&two, "a", "now").seq, 2);
    assert_eq!(rows(&one).len(), 2);
}

#[test]
fn a_task_waits_for_another_process_without_holding_up_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("task.db");
    let two = Sqlite::open_apart(&path, Options::default()).unwrap();
    let (thread, go_on) = stopped(&path);
    let batch = |text| conformance::batch(Append::of([draft("a", text)]), Millis(1)).unwrap();
    let appended = block_on(async {
        let append = two.append(batch("waits"));
        // The same thread lets the other go on after the append has begun to wait.
        let let_go = async { go_on.send(()).unwrap() };
        futures::join!(append, let_go).0
    });
    assert_eq!(appended.unwrap()[0].seq, 2);
    thread.join().unwrap();
}

#[test]
fn another_program_that_holds_the_file_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shell.db");
    let store = apart(&path);
    let shell = Connection::open(&path).unwrap();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = append(&store, Append::of([draft("a", "!")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.message().contains("another program"), "{error}");
    assert!(!error.to_string().contains("locked"), "{error}");
    shell.execute_batch("ROLLBACK").unwrap();
    say(&store, "a", "now");
}

#[test]
fn a_disk_that_fills_up_inside_a_group_fails_the_group_and_nothing_is_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.db");
    let store = apart(&path);
    say(&store, "a", "1");
    store.limit_growth(Some(3)).unwrap();
    let first = conformance::batch(Append::of([draft("a", "of the same group")]), Millis(1)).unwrap();
    let deferred = store.defer(first).unwrap().remove(0);
    let large = "x".repeat(50_000);
    let error = append(&store, Append::of([draft("new", "small"), draft("a", &large)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(error.to_string().contains("full.db"), "{error}");
    assert_eq!(deferred.place(), None);
    assert_eq!(rows(&store).len(), 1);
    assert_eq!(store.topics().unwrap().len(), 1);
    store.limit_growth(None).unwrap();
    assert_eq!(deferred.refusal().map(|error| error.kind()), Some(ErrorKind::Full));
    // It goes on where it stood.
    let receipts = append(&store, Append::of([draft("new", "small"), draft("a", &large)])).unwrap();
    assert_eq!(
        receipts.iter().map(|r| (r.seq, r.pos)).collect::<Vec<_>>(),
        [(1, 2), (2, 3)]
    );
    store.sound().unwrap();
}
