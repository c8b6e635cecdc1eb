//! SQL on tables of the program: one commit with its answer, and everything else closed.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

mod world;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Instant,
};

use neuron::{
    Author, Cx, Error, ErrorKind, Ledger, Result, Transaction, agent, doctor, limits,
    ownership::Ownership,
    schema::Upcasters,
    scope::{Finding, Manner, Rehearsal, Runtime, Scope, Stop, rehearse},
    step,
    store::{Access, Options, Select, Sqlite, verify},
};
use serde::{Deserialize, Serialize};
use world::{Log, Seen, World, entry};

static SEEN: Seen = Seen::new();

/// A store in a file.
struct File {
    folder: tempfile::TempDir,
    ledger: Ledger,
}

impl File {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path().join("shop.db"), Options::default()).unwrap();
        Self { folder, ledger }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("shop.db")
    }

    fn runtime(&self) -> Arc<Runtime> {
        Arc::new(Log::runtime_on(&self.ledger, 0))
    }

    async fn run<T: neuron::Payload, F, M>(&self, agent: F) -> Result<T, Error>
    where
        F: neuron::Callable<M>,
        F::Def: neuron::def::Def<Args = (), Output = T>,
    {
        let outcome = World::new().run_in(&self.runtime(), agent, ()).await;
        outcome.map_err(Stop::into_error)?
    }

    /// What an answer of a query outside of any transaction gives.
    fn asks(&self, sql: &str) -> i64 {
        let reader = rusqlite::Connection::open_with_flags(self.path(), rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
        reader.unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn kinds(&self) -> Vec<String> {
        let own = self.ledger.read(Select::Topic(Log::steps())).envelopes();
        own.map(|envelope| envelope.unwrap().body.kind.to_string()).collect()
    }

    fn count(&self, kind: &str) -> usize {
        self.kinds().iter().filter(|known| *known == kind).count()
    }

    /// What a body of transactions is told, on this file.
    async fn does<T: neuron::Payload>(
        &self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        // A scope of its own each time: in one of the same name the first answer would stand.
        let scope = format!("test-{}", self.ledger.store().last().unwrap().0);
        let scope = Scope::root(&self.runtime(), &scope, neuron::Millis(1), Manner::Undriven);
        let cx: Cx = neuron::Context::of(scope);
        cx.transaction(body).await
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Booking {
    seat: String,
    price: f64,
    paid: bool,
    ticket: Option<Vec<u8>>,
}

#[step]
async fn book(cx: &Cx, seat: String) -> Result<u64> {
    let booked = cx.transaction(move |tx| {
        SEEN.note(format!("book {seat}"));
        tx.execute(
            "CREATE TABLE IF NOT EXISTS booking (seat TEXT PRIMARY KEY, price REAL, paid INTEGER, ticket BLOB)",
            (),
        )?;
        let booking = Booking {
            seat,
            price: 9.5,
            paid: true,
            ticket: Some(vec![1, 2]),
        };
        let sql = "INSERT INTO booking VALUES (:seat, :price, :paid, :ticket)";
        assert_eq!(tx.execute(sql, &booking)?, 1);
        let read: Vec<Booking> = tx.query("SELECT * FROM booking WHERE seat = ?1", [&booking.seat])?;
        assert_eq!(read, [booking]);
        Ok(tx.query_one("SELECT count(*) FROM booking", ())?.unwrap_or(0))
    });
    Ok(booked.await?)
}

#[agent]
async fn clerk(cx: &Cx) -> Result<u64> {
    book(cx, "12a".into()).await?;
    let direct = cx.transaction(|tx| {
        SEEN.note("raise");
        Ok(tx.execute("UPDATE booking SET price = price + 1", ())?)
    });
    assert_eq!(direct.await?, 1);
    Ok(book(cx, "12b".into()).await?)
}

#[tokio::test]
async fn the_change_and_its_answer_are_one_commit_and_a_replay_runs_nothing() {
    let file = File::new();
    assert_eq!(file.run(clerk).await.unwrap(), 2);
    assert_eq!(file.asks("SELECT count(*) FROM booking WHERE price = 10.5"), 1);
    assert_eq!(file.count("transaction.committed"), 3);
    let ran = SEEN.all().len();
    assert_eq!(file.run(clerk).await.unwrap(), 2);
    assert_eq!(SEEN.all().len(), ran, "a replay is given the answers");
    assert_eq!(file.count("transaction.committed"), 3);
    let own = file.ledger.read(Select::Topic(Log::steps())).envelopes();
    for envelope in own
        .map(Result::unwrap)
        .filter(|it| it.body.kind == "transaction.committed")
    {
        assert_eq!(
            envelope.headers.decode::<u64>("epoch"),
            Some(0),
            "under the epoch of its run"
        );
        assert_eq!(envelope.author.as_str(), "body-1");
    }
}

/// Whatever is done to what is not the program's, by name of the way.
const CLOSED: &[(&str, &str)] = &[
    ("read", "SELECT record FROM envelope"),
    ("read by another case", "SELECT count(*) FROM main.ENVELOPE"),
    (
        "read in a part of a query",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM topic)",
    ),
    (
        "read by name of a module",
        "SELECT * FROM pragma_table_info('envelope')",
    ),
    ("insert", "INSERT INTO type (name) VALUES ('mine')"),
    ("insert from", "INSERT INTO mine (n) SELECT pos FROM envelope"),
    ("update", "UPDATE envelope SET record = '{}'"),
    ("delete", "DELETE FROM chunk"),
    (
        "replace",
        "REPLACE INTO manifest (hash, bytes, chunks) VALUES (zeroblob(32), 0, x'')",
    ),
    ("drop", "DROP TABLE envelope"),
    ("drop an index", "DROP INDEX envelope_key"),
    ("drop a guard", "DROP TRIGGER envelope_no_DELETE"),
    ("alter", "ALTER TABLE envelope ADD COLUMN mine"),
    ("rename", "ALTER TABLE topic RENAME TO mine3"),
    ("an index on it", "CREATE INDEX mine_index ON envelope (at)"),
    (
        "a trigger on it",
        "CREATE TRIGGER mine_trigger AFTER INSERT ON envelope BEGIN SELECT 1; END",
    ),
    (
        "a temporary trigger on it",
        "CREATE TEMP TRIGGER t AFTER INSERT ON main.envelope BEGIN SELECT 1; END",
    ),
    ("a temporary table before it", "CREATE TEMP TABLE envelope (n)"),
    ("a temporary view before it", "CREATE TEMP VIEW topic AS SELECT 1"),
    ("what would make it an archive", "CREATE TABLE archive (n)"),
    ("the same as a view", "CREATE VIEW Archive AS SELECT 1"),
    ("the same by a new name", "ALTER TABLE spare RENAME TO archive"),
    ("the same as an index", "CREATE INDEX envelope_sealed ON mine (n)"),
    ("a key into it", "CREATE TABLE child (n REFERENCES envelope (pos))"),
    (
        "the same as a text index",
        "CREATE VIRTUAL TABLE archive USING fts5(record)",
    ),
    ("another file", "ATTACH 'other.db' AS other"),
    ("no file", "DETACH main"),
    ("a pragma", "PRAGMA writable_schema = ON"),
    ("a pragma that reads", "PRAGMA user_version"),
    ("synchronous", "PRAGMA synchronous = OFF"),
    ("begin", "BEGIN"),
    ("commit", "COMMIT"),
    ("end", "END TRANSACTION"),
    ("rollback", "ROLLBACK"),
    ("savepoint", "SAVEPOINT mine"),
    ("release", "RELEASE mine"),
    ("rollback to", "ROLLBACK TO mine"),
    ("analyze", "ANALYZE"),
    ("analyze one", "ANALYZE mine"),
    ("reindex", "REINDEX"),
    ("an extension", "SELECT load_extension('mine')"),
];

#[tokio::test]
async fn everything_but_the_programs_own_tables_is_closed_each_way() {
    let file = File::new();
    for table in ["mine", "spare"] {
        file.does(move |tx| Ok(tx.execute(&format!("CREATE TABLE {table} (n)"), ())?))
            .await
            .unwrap();
    }
    let layout = "SELECT sum(length(sql)) FROM sqlite_schema";
    let (before, rows) = (file.asks(layout), file.ledger.store().last().unwrap().0);
    for (nth, (way, sql)) in CLOSED.iter().enumerate() {
        let told = file.does(move |tx| {
            let first = tx.query::<serde_json::Value>(sql, ()).map(drop);
            // What was refused stays refused, and the rest stays open.
            tx.execute("INSERT INTO mine (n) VALUES (1)", ())?;
            Ok(first?)
        });
        let error = told.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{way}: {error}");
        assert!(error.is_terminal(), "{way}");
        let (last, _) = file.ledger.store().last().unwrap();
        assert_eq!(last, rows + nth as u64 + 1, "{way}: its failure alone was written");
    }
    assert_eq!(file.asks(layout), before, "nothing of the layout has changed");
    assert_eq!(
        file.asks("SELECT count(*) FROM mine"),
        0,
        "nothing of a refused transaction stands"
    );
    verify::verify(&**file.ledger.store()).unwrap();
}

/// What may be made, and what it would reach then.
const INDIRECT: &[(&str, &str, &str)] = &[
    (
        "a view",
        "CREATE VIEW seen AS SELECT record FROM envelope",
        "SELECT * FROM seen",
    ),
    (
        "a trigger",
        "CREATE TRIGGER told AFTER INSERT ON mine BEGIN INSERT INTO type (name) VALUES ('mine'); END",
        "INSERT INTO mine (n) VALUES (1)",
    ),
    (
        "a trigger that reads",
        "CREATE TRIGGER told AFTER INSERT ON mine BEGIN UPDATE mine SET n = (SELECT max(pos) FROM envelope); END",
        "INSERT INTO mine (n) VALUES (1)",
    ),
    (
        "a text index over the log",
        "CREATE VIRTUAL TABLE words USING fts5(record, content='envelope', content_rowid='pos')",
        "INSERT INTO words (words) VALUES ('rebuild')",
    ),
];

#[tokio::test]
async fn what_is_closed_is_not_reached_by_way_of_the_programs_own_either() {
    for (way, make, reach) in INDIRECT {
        let file = File::new();
        file.does(|tx| Ok(tx.execute("CREATE TABLE mine (n)", ())?))
            .await
            .unwrap();
        let refused = |made: bool| {
            file.does(move |tx| {
                if !made {
                    tx.execute(make, ())?;
                }
                Ok(tx.query::<(serde_json::Value,)>(reach, ()).map(drop)?)
            })
        };
        let error = refused(false).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{way}: {error}");
        // And not if somebody else has made it.
        rusqlite::Connection::open(file.path())
            .unwrap()
            .execute_batch(make)
            .unwrap();
        let error = refused(true).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{way}: {error}");
    }
}

/// Names that stand for nothing of the store are the program's, whatever they look like.
#[tokio::test]
async fn tables_of_the_program_may_be_made_and_changed_at_will() {
    let file = File::new();
    let ways = [
        "CREATE TABLE topics (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL)",
        "INSERT INTO topics (name) VALUES ('a'), ('b')",
        "CREATE UNIQUE INDEX topics_name ON topics (name)",
        "CREATE TABLE seen (topic INTEGER REFERENCES topics (id) ON DELETE CASCADE, at TEXT DEFAULT (datetime('now')))",
        "CREATE TRIGGER topics_seen AFTER INSERT ON topics BEGIN INSERT INTO seen (topic) VALUES (NEW.id); END",
        "INSERT INTO topics (name) VALUES ('c')",
        "CREATE VIEW latest AS SELECT max(id) AS id FROM topics",
        "ALTER TABLE seen RENAME TO visits",
        "ALTER TABLE visits ADD COLUMN by TEXT",
        "ALTER TABLE visits RENAME COLUMN by TO who",
        "ALTER TABLE visits DROP COLUMN who",
        "CREATE VIRTUAL TABLE words USING fts5(text)",
        "INSERT INTO words (text) VALUES ('a word')",
        "DELETE FROM topics WHERE name = 'c'",
        "DROP TRIGGER topics_seen",
        "DROP VIEW latest",
        "DROP TABLE words",
    ];
    for way in ways {
        file.does(move |tx| Ok(tx.execute(way, ())?))
            .await
            .unwrap_or_else(|error| panic!("{way}: {error}"));
    }
    assert_eq!(file.asks("SELECT count(*) FROM topics"), 2);
    assert_eq!(
        file.asks("SELECT count(*) FROM visits"),
        0,
        "a cascade of the program's own"
    );
    assert_eq!(
        file.does(|tx| Ok(tx.query::<(String, i64)>(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2)
             SELECT name, i FROM topics JOIN n ON n.i = topics.id ORDER BY i",
            ()
        )?))
        .await
        .unwrap(),
        [("a".to_owned(), 1), ("b".to_owned(), 2)]
    );
    file.run(clerk).await.unwrap();
    verify::verify(&**file.ledger.store()).unwrap();
}

#[tokio::test]
async fn an_error_or_a_panic_of_the_body_takes_everything_back_and_is_the_recorded_answer() {
    #[agent]
    async fn stumbler(cx: &Cx) -> Result<Vec<String>> {
        cx.transaction(|tx| Ok(tx.execute("CREATE TABLE mine (n UNIQUE)", ())?))
            .await?;
        let calls = [
            cx.transaction(|tx| {
                SEEN.note("stumbles");
                tx.execute("INSERT INTO mine VALUES (1)", ())?;
                Err("out of luck".into())
            }),
            cx.transaction(|tx| {
                tx.execute("INSERT INTO mine VALUES (2)", ())?;
                panic!("oh no")
            }),
            cx.transaction(|tx| {
                tx.execute("INSERT INTO mine VALUES (3)", ())?;
                Ok(tx.execute("INSERT INTO mine VALUES (3)", ())?)
            }),
            cx.transaction(|tx| Ok(tx.execute("INSERT INTO nowhere VALUES (3)", ())?)),
            cx.transaction(|tx| Ok(tx.execute("INSERT INTO mine VALUES (?1)", (1, 2))?)),
            cx.transaction(|tx| Ok(tx.execute("DELETE FROM mine; DELETE FROM mine", ())?)),
            cx.transaction(|tx| Ok(tx.execute("SELECT 1", ())?)),
            cx.transaction(|tx| Ok(tx.query_one::<u64>("SELECT 'text'", ())?.unwrap_or(0))),
        ];
        let mut told = Vec::new();
        for call in calls {
            let error = call.await.unwrap_err();
            assert!(error.is_terminal(), "to a body that is replayed it is the answer");
            told.push(format!("{:?}: {error}", error.kind()));
        }
        // One that goes wrong and that the body gets over is no failure of the transaction.
        let kept = cx.transaction(|tx| {
            tx.execute("INSERT INTO mine VALUES (7)", ())?;
            tx.execute("INSERT INTO mine VALUES (7)", ()).unwrap_err();
            Ok(())
        });
        kept.await?;
        Ok(told)
    }
    let file = File::new();
    let told = file.run(stumbler).await.unwrap();
    let wanted = [
        "Failed: out of luck",
        "Panicked: panicked: oh no",
        "Conflict: `INSERT INTO mine VALUES (3)`: a constraint does not hold",
        "Misuse: `INSERT INTO nowhere VALUES (3)`: SQLite does not take it: no such table",
        "Misuse: `INSERT INTO mine VALUES (?1)`: it has 1 parameters, and 2 are given",
        "Misuse: one statement at a time",
        "Misuse: this statement gives rows: take them with `query`",
        "Schema: a row with the columns `'text'` is no `u64`",
    ];
    assert_eq!(told.len(), wanted.len());
    for (told, wanted) in told.iter().zip(wanted) {
        assert!(told.starts_with(wanted), "{told}");
    }
    assert_eq!(file.asks("SELECT group_concat(n) = '7' FROM mine"), 1);
    assert_eq!(file.count("transaction.failed"), wanted.len());
    let stumbled = SEEN.starting("stumbles");
    assert_eq!(file.run(stumbler).await.unwrap(), told);
    assert_eq!(
        (SEEN.starting("stumbles"), file.count("transaction.failed")),
        (stumbled, wanted.len())
    );
}

static ATTEMPTS: Mutex<u32> = Mutex::new(0);

fn attempt() -> u32 {
    let mut attempts = ATTEMPTS.lock().unwrap();
    *attempts += 1;
    *attempts
}

/// Fails in its second transaction, twice.
#[step(retry(4, backoff = "1ms"))]
async fn persistent(cx: &Cx) -> Result<(u32, u32)> {
    let first = cx.transaction(|tx| {
        tx.execute("CREATE TABLE IF NOT EXISTS tried (n)", ())?;
        Ok(u32::try_from(tx.execute("INSERT INTO tried VALUES ('first')", ())?)?)
    });
    let first = first.await?;
    let second = cx.transaction(|tx| {
        tx.execute("INSERT INTO tried VALUES ('second')", ())?;
        match attempt() {
            3 => Ok(3),
            other => Err(format!("not yet: {other}").into()),
        }
    });
    let second = second.await?;
    let third = cx.transaction(|tx| {
        tx.execute("INSERT INTO tried VALUES ('third')", ())?;
        Ok(())
    });
    third.await?;
    if cx.attempt() < 4 {
        return Err("once more".into());
    }
    Ok((first, second))
}

#[agent]
async fn patient(cx: &Cx) -> Result<(u32, u32)> {
    Ok(persistent(cx).await?)
}

#[tokio::test]
async fn a_later_attempt_of_a_step_repeats_what_failed_and_nothing_that_was_committed() {
    let file = File::new();
    assert_eq!(file.run(patient).await.unwrap(), (1, 3));
    assert_eq!(file.count("step.attempted"), 3);
    assert_eq!(
        (file.count("transaction.failed"), file.count("transaction.committed")),
        (2, 3)
    );
    assert_eq!(file.asks("SELECT group_concat(n) = 'first,second,third' FROM tried"), 1);
}

static LET_GO: AtomicBool = AtomicBool::new(false);

/// Tells that the body was dropped.
struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        LET_GO.store(true, SeqCst);
    }
}

/// In its first attempt the transaction is under way until the body is dropped.
#[step(retry(2, backoff = "1ms"), timeout = "20ms")]
async fn hasty(cx: &Cx) -> Result<u32> {
    let _dropped = Dropped;
    let (attempt, began) = (cx.attempt(), Instant::now());
    let tried = cx.transaction(move |tx| {
        SEEN.note("hasty");
        tx.execute("CREATE TABLE IF NOT EXISTS haste (attempt)", ())?;
        tx.execute("INSERT INTO haste VALUES (?1)", attempt)?;
        while !LET_GO.load(SeqCst) && began.elapsed() < limits::TRANSACTION_TIME_MAX {
            thread::yield_now();
        }
        Ok(attempt)
    });
    Ok(tried.await?)
}

#[agent]
async fn in_haste(cx: &Cx) -> Result<u32> {
    Ok(hasty(cx).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_under_way_when_its_attempt_ends_is_the_answer_of_the_next() {
    let file = File::new();
    assert_eq!(file.run(in_haste).await.unwrap(), 1, "what the first has done");
    assert_eq!((SEEN.starting("hasty"), file.count("step.attempted")), (1, 1));
    assert_eq!(file.asks("SELECT count(*) FROM haste"), 1);
}

#[step(retry(5))]
async fn final_word(cx: &Cx) -> Result<u32> {
    Ok(cx.transaction(|_| Err(Error::terminal("no seat left").into())).await?)
}

#[agent]
async fn hopeless(cx: &Cx) -> Result<u32> {
    Ok(final_word(cx).await?)
}

#[tokio::test]
async fn a_terminal_failure_ends_its_step_at_once() {
    let file = File::new();
    assert_eq!(file.run(hopeless).await.unwrap_err().message(), "no seat left");
    assert_eq!((file.count("step.failed"), file.count("step.attempted")), (1, 0));
}

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_has_its_time_and_no_more() {
    let file = File::new();
    file.does(|tx| Ok(tx.execute("CREATE TABLE mine (n)", ())?))
        .await
        .unwrap();
    let reading = file.does(|tx| Ok(tx.query_one::<i64>(ENDLESS, ())?));
    let writing = file.does(|tx| {
        tx.execute("INSERT INTO mine VALUES (1)", ())?;
        let sql = format!("INSERT INTO mine {ENDLESS}");
        // Whatever it makes of the failure.
        let _ = tx.execute(&sql, ());
        let _ = tx.execute("INSERT INTO mine VALUES (2)", ());
        Ok(None)
    });
    for late in [reading.await, writing.await] {
        let error = late.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(!error.is_terminal(), "a step may try again");
        assert!(error.message().contains(&format!("{:?}", limits::TRANSACTION_TIME_MAX)));
    }
    assert_eq!(file.asks("SELECT count(*) FROM mine"), 0);
    assert_eq!(
        file.does(|tx| Ok(tx.execute("INSERT INTO mine VALUES (3)", ())?))
            .await
            .unwrap(),
        1
    );
}

#[tokio::test]
async fn more_rows_than_may_be_and_a_long_answer_are_refused() {
    let file = File::new();
    let many = |rows: usize| {
        let sql =
            format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n");
        file.does(move |tx| Ok(tx.query::<u64>(&sql, ())?.len()))
    };
    let most = limits::TRANSACTION_ROWS_MAX;
    assert_eq!(many(most).await.unwrap(), most);
    let error = many(most + 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("LIMIT"), "{error}");
    let long = |bytes: usize| file.does(move |_| Ok("x".repeat(bytes)));
    let most = limits::INLINE_VALUE_BYTES_MAX - 2;
    assert_eq!(long(most).await.unwrap().len(), most);
    assert_eq!(long(most + 1).await.unwrap_err().kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn what_would_end_the_transaction_under_way_fails_it_whatever_the_body_makes_of_it() {
    let file = File::new();
    file.does(|tx| {
        tx.execute("CREATE TABLE mine (n UNIQUE ON CONFLICT ROLLBACK)", ())?;
        tx.execute(
            "CREATE TABLE child (n REFERENCES mine (n) DEFERRABLE INITIALLY DEFERRED)",
            (),
        )?;
        Ok(())
    })
    .await
    .unwrap();
    let rolled = file.does(|tx| {
        tx.execute("INSERT INTO mine VALUES (1)", ())?;
        let _ = tx.execute("INSERT INTO mine VALUES (1)", ());
        // Outside of the transaction this would stand by itself.
        let _ = tx.execute("INSERT INTO mine VALUES (2)", ());
        Ok(())
    });
    let error = rolled.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let orphan = file.does(|tx| Ok(tx.execute("INSERT INTO child VALUES (9)", ())?));
    let error = orphan.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("foreign key"), "{error}");
    assert_eq!(
        file.asks("SELECT (SELECT count(*) FROM mine) + (SELECT count(*) FROM child)"),
        0
    );
    let both = file.does(|tx| {
        tx.execute("INSERT INTO child VALUES (9)", ())?;
        Ok(tx.execute("INSERT INTO mine VALUES (9)", ())?)
    });
    assert_eq!(both.await.unwrap(), 1);
}

#[tokio::test]
async fn an_owner_of_the_past_changes_nothing_and_its_body_is_told_nothing() {
    let file = File::new();
    let owners = Ownership::join(file.ledger.clone(), limits::OWNER_TTL).unwrap();
    let runtime = file.runtime();
    owners.claim("run:r").await.unwrap();
    #[agent]
    async fn late(cx: &Cx) -> Result<u64> {
        Ok(cx
            .transaction(|tx| Ok(tx.execute("CREATE TABLE late (n)", ())?))
            .await?)
    }
    match World::new().run_in(&runtime, late, ()).await {
        Err(Stop::Refused(error)) => assert_eq!(error.kind(), ErrorKind::Fenced),
        other => unreachable!("{other:?}"),
    }
    assert_eq!(file.asks("SELECT count(*) FROM sqlite_schema WHERE name = 'late'"), 0);
    assert!(file.kinds().is_empty());
}

#[tokio::test]
async fn a_store_in_memory_says_that_it_has_no_tables() {
    let log = Log::with(&[]).await;
    let error = log.run(hopeful, ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("in memory"), "{error}");
    assert_eq!(log.count("transaction.failed"), 1, "the log goes on");
}

#[agent]
async fn hopeful(cx: &Cx) -> Result<u64> {
    SEEN.note("hopes");
    let made = cx.transaction(|tx| {
        SEEN.note("makes");
        Ok(tx.execute("CREATE TABLE hope (n)", ())?)
    });
    Ok(made.await?)
}

#[tokio::test]
async fn a_dry_run_of_a_body_runs_no_transaction() {
    let file = File::new();
    let rehearsal = Rehearsal::new(file.ledger.clone(), Arc::new(Upcasters::default()), neuron::Millis(1));
    let runtime = Arc::new(Runtime::rehearsed(rehearsal.clone()));
    let entry = entry(hopeful);
    let body = move |scope| {
        let body = entry.run(scope, neuron::Json::parse("{}")?);
        Ok(Box::pin(async move { body.await.map(|ran| ran.json) }) as _)
    };
    let found: Vec<Finding> = rehearse(&runtime, &rehearsal, "run", neuron::Millis(1), body, None).await;
    assert_eq!(found, [], "it would go on where its log ends");
    assert_eq!((SEEN.starting("hopes"), SEEN.starting("makes")), (1, 0));
    assert_eq!(file.asks("SELECT count(*) FROM sqlite_schema WHERE name = 'hope'"), 0);
}

#[tokio::test]
async fn tables_of_the_program_are_in_its_backup_and_no_finding_of_verify_and_doctor() {
    let file = File::new();
    file.run(clerk).await.unwrap();
    verify::verify(&**file.ledger.store()).unwrap();
    file.ledger.store().guarded().unwrap();
    let copy = file.folder.path().join("copy.db");
    file.ledger.store().backup(&copy, &mut |_| {}).unwrap();
    let File { folder, ledger } = file;
    let path = folder.path().join("shop.db");
    drop(ledger);
    for path in [&path, &copy] {
        let diagnosis = doctor::examine(path).unwrap();
        assert!(
            diagnosis.severity().is_none_or(|worst| worst == doctor::Severity::Note),
            "{diagnosis:?}"
        );
        let _ = doctor::mend(path).unwrap();
        let reader = rusqlite::Connection::open(path).unwrap();
        let rows: i64 = reader
            .query_row("SELECT count(*) FROM booking", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 2);
        drop(reader);
        let reading = Options {
            access: Access::Read,
            ..Options::default()
        };
        verify::verify(&Sqlite::open(path, reading).unwrap()).unwrap();
    }
    let again = Ledger::open(&path, Options::default()).unwrap();
    again
        .publish(neuron::Draft::new(Log::steps(), Author::cli(), "x").unwrap())
        .await
        .unwrap();
}

#[test]
fn the_vector_of_a_transaction_comes_out_as_written() {
    let wire = include_str!("../docs/WIRE.md");
    for args in ["{}", r#"{"after":"k#1"}"#] {
        let text = format!(r#"["run","$transaction",{args}]"#);
        let call = neuron::Digest::derive(neuron::CALL_CONTEXT, text.as_bytes()).to_string();
        let row = wire
            .lines()
            .find(|line| line.contains("call of `$transaction`") && line.contains(&format!("`{args}`")));
        assert!(row.unwrap_or_default().contains(&call), "{args}: {call}");
    }
}
