//! Bare rusqlite on the store's own tables and indexes, without its triggers, locks, hashes or JSON.

use std::{path::Path, time::Instant};

use neuron::store::Durability;
use rusqlite::{Connection, params};

/// A stored row, as columns.
pub(crate) struct Columns {
    topic: i64,
    seq: i64,
    kind: i64,
    at: i64,
    cause: Option<i64>,
    key: Option<String>,
    idempotency: Option<String>,
    id: Vec<u8>,
    record: String,
}

/// Tables and indexes of another store, copied from its own schema, so that they cannot drift from it.
fn create(path: &Path, like: &Path, durability: Durability) -> Connection {
    let source = Connection::open(like).unwrap();
    let mut statements = source
        .prepare(
            "SELECT sql FROM sqlite_schema WHERE type IN ('table', 'index') AND tbl_name = 'envelope' AND sql NOT NULL",
        )
        .unwrap();
    let texts: Vec<String> = statements
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let connection = Connection::open(path).unwrap();
    let page: i64 = source.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let synchronous = if durability == Durability::PowerLoss {
        "FULL"
    } else {
        "NORMAL"
    };
    connection
        .execute_batch(&format!(
            "PRAGMA page_size = {page}; PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};"
        ))
        .unwrap();
    for text in texts {
        connection.execute_batch(&text).unwrap();
    }
    connection
}

/// The rows of a store from `from` on, by `pos`.
pub(crate) fn rows(store: &Path, from: i64) -> Vec<Columns> {
    let connection = Connection::open(store).unwrap();
    let mut statement = connection
        .prepare("SELECT topic, seq, type, at, cause, key, idempotency, id, record FROM envelope WHERE pos >= ?1 ORDER BY pos")
        .unwrap();
    let rows = statement.query_map([from], |row| {
        Ok(Columns {
            topic: row.get(0)?,
            seq: row.get(1)?,
            kind: row.get(2)?,
            at: row.get(3)?,
            cause: None,
            key: row.get(5)?,
            idempotency: row.get(6)?,
            id: row.get(7)?,
            record: row.get(8)?,
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Writes rows in transactions of `group` into one file, in as many windows as ours were written in, each on top of those
/// before it. Gives rows per second, the best window.
pub(crate) fn write(like: &Path, rows: &[Columns], group: usize, durability: Durability, windows: usize) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let mut connection = create(&folder.path().join("bare.db"), like, durability);
    let mut pos = 0;
    let best = rows.chunks(rows.len().div_ceil(windows)).map(|window| {
        let began = Instant::now();
        for group in window.chunks(group) {
            write_group(&mut connection, group, &mut pos);
        }
        window.len() as f64 / began.elapsed().as_secs_f64()
    });
    best.fold(0.0, f64::max)
}

fn write_group(connection: &mut Connection, group: &[Columns], pos: &mut i64) {
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .unwrap();
    {
        let mut insert = transaction
            .prepare_cached("INSERT INTO envelope VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")
            .unwrap();
        for row in group {
            *pos += 1;
            let Columns {
                topic,
                seq,
                kind,
                at,
                cause,
                key,
                idempotency,
                id,
                record,
            } = row;
            insert
                .execute(params![*pos, topic, seq, kind, at, cause, key, idempotency, id, record])
                .unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// What the disk asks for one durable row.
pub(crate) fn lone_commit_us() -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let connection = Connection::open(folder.path().join("lone.db")).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE lone (text TEXT);")
        .unwrap();
    let count = 500;
    let began = Instant::now();
    for _ in 0..count {
        connection
            .execute("INSERT INTO lone VALUES (?1)", ["x".repeat(600)])
            .unwrap();
    }
    began.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}

/// Scans rows and parses each record as JSON. Gives rows per second.
pub(crate) fn scan(store: &Path, upto: u64) -> f64 {
    let connection = Connection::open(store).unwrap();
    let mut statement = connection
        .prepare("SELECT pos, id, record FROM envelope WHERE pos <= ?1 ORDER BY pos")
        .unwrap();
    let began = Instant::now();
    let mut scanned = statement.query([i64::try_from(upto).unwrap()]).unwrap();
    let mut sum = 0;
    while let Some(row) = scanned.next().unwrap() {
        let record: serde_json::Value = serde_json::from_str(row.get_ref(2).unwrap().as_str().unwrap()).unwrap();
        sum += record["body"]["payloadJSON"]["count"].as_u64().unwrap_or(0);
    }
    assert!(sum > 0);
    upto as f64 / began.elapsed().as_secs_f64()
}
