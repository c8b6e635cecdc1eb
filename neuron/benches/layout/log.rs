//! One log in one file: filled, appended to under a clock, read back.

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Statement, params};

use crate::candidate::{Candidate, Indexes, Shape, Wal};
use crate::rows::{RUN_TOPICS, Row, Source};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Rows a reader takes at once, as the store's pages do.
const PAGE_ROWS: i64 = 512;
const FILL_GROUP: usize = 4_096;

/// How far a commit is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    Full,
    Normal,
}

/// What one commit holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// The two envelopes of a lone sequential step, counted as one.
    Step,
    /// So many envelopes of as many writers.
    Of(usize),
}

/// What a row (or step) cost, in microseconds, and the longest commit of the window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) wall: f64,
    /// Processor time alone: other work on the machine does not show in it.
    pub(crate) busy: f64,
    pub(crate) longest: Duration,
}

impl Cost {
    /// The cheaper of two windows, each figure by itself; the longest commit of both.
    pub(crate) fn best(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            busy: self.busy.min(other.busy),
            longest: self.longest.max(other.longest),
        }
    }
}

/// A log under one layout; its file goes with it.
#[derive(Debug)]
pub(crate) struct Log {
    candidate: Candidate,
    connection: Connection,
    folder: tempfile::TempDir,
    wal_pages: Arc<AtomicI32>,
    source: Source,
}

impl Log {
    pub(crate) fn create(candidate: Candidate, live: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut connection = Connection::open(folder.path().join("log.db"))?;
        connection.execute_batch(&format!(
            "PRAGMA page_size = {}; PRAGMA journal_mode = WAL; PRAGMA cache_size = -{}; {}",
            candidate.page,
            candidate.cache_kib,
            candidate.ddl()
        ))?;
        let wal_pages = Arc::new(AtomicI32::new(0));
        if candidate.wal != Wal::Auto {
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
            let pages = Arc::clone(&wal_pages);
            connection.wal_hook(Some(move |_: &mut _, count| {
                pages.store(count, Ordering::Relaxed);
                Ok(())
            }))?;
        }
        Ok(Self {
            candidate,
            connection,
            folder,
            wal_pages,
            source: Source::new(live),
        })
    }

    /// Appends until the log holds `rows`.
    pub(crate) fn fill(&mut self, rows: i64) -> Result<()> {
        let missing = usize::try_from(rows - self.source.pos())?;
        self.append(Sync::Normal, Group::Of(FILL_GROUP), missing)?;
        Ok(())
    }

    /// Appends `count` rows (or steps) in groups and charges them with their checkpoints.
    pub(crate) fn append(&mut self, sync: Sync, group: Group, count: usize) -> Result<Cost> {
        let level = if sync == Sync::Full { "FULL" } else { "NORMAL" };
        self.connection.pragma_update(None, "synchronous", level)?;
        let (mut wall, mut busy, mut longest) = (Duration::ZERO, 0, Duration::ZERO);
        let mut left = count;
        while left > 0 {
            let (batch, counted) = match group {
                Group::Step => (self.source.step(), 1),
                Group::Of(rows) => (self.source.group(rows.min(left)), rows.min(left)),
            };
            left -= counted;
            let start_busy = processor_nanos();
            let start = Instant::now();
            self.commit(&batch)?;
            if left == 0 {
                self.checkpoint()?;
            }
            let took = start.elapsed();
            busy += processor_nanos() - start_busy;
            wall += took;
            longest = longest.max(took);
        }
        Ok(Cost {
            wall: micros(wall, count),
            busy: micros(Duration::from_nanos(busy), count),
            longest,
        })
    }

    fn commit(&self, batch: &[Row]) -> Result<()> {
        let connection = &self.connection;
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        {
            let mut insert = connection.prepare_cached(insert_text(&self.candidate))?;
            let mut record = match self.candidate.shape {
                Shape::Split => Some(connection.prepare_cached("INSERT INTO record VALUES (?1, ?2)")?),
                _ => None,
            };
            for row in batch {
                insert_row(&self.candidate, &mut insert, record.as_deref_mut(), row)?;
            }
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        if let Wal::Passive(bytes) = self.candidate.wal {
            let pages = u64::try_from(self.wal_pages.load(Ordering::Relaxed))?;
            if pages * u64::from(self.candidate.page) > bytes {
                self.checkpoint()?;
            }
        }
        Ok(())
    }

    fn checkpoint(&self) -> Result<()> {
        self.wal_pages.store(0, Ordering::Relaxed);
        self.connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
    }

    pub(crate) fn bytes_per_row(&self) -> Result<u64> {
        Ok(fs::metadata(self.path())?.len() / self.source.pos().unsigned_abs())
    }

    /// A reader of its own, as the store has them.
    pub(crate) fn reader(&self) -> Result<Reader> {
        Ok(Reader {
            connection: Connection::open(self.path())?,
            split: self.candidate.shape == Shape::Split,
            run_index: self.candidate.indexes == Indexes::WithRun,
        })
    }

    /// Topics and runs from the middle of the log, enough of them to read.
    pub(crate) fn readable(&self) -> (Range<i64>, Range<i64>) {
        let run = self.source.topics() / RUN_TOPICS / 2;
        let topic = run * RUN_TOPICS;
        (topic + 1..topic + 41, run + 1..run + 9)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("log.db")
    }
}

/// Reads pages of records; every figure is microseconds a row, the file in the system's cache.
#[derive(Debug)]
pub(crate) struct Reader {
    connection: Connection,
    split: bool,
    run_index: bool,
}

impl Reader {
    /// Whole topics in `seq` order.
    pub(crate) fn by_topic(&self, topics: Range<i64>) -> Result<f64> {
        let text = self.select("topic = ?1 AND seq > ?2 ORDER BY seq", "seq");
        let mut statement = self.connection.prepare(&text)?;
        timed(|| topics.map(|topic| pages(&mut statement, topic, i64::MAX)).sum())
    }

    /// Rows of one type in `pos` order.
    pub(crate) fn by_type(&self, kind: i64, rows: i64) -> Result<f64> {
        let text = self.select("type = ?1 AND pos > ?2 ORDER BY pos", "pos");
        let mut statement = self.connection.prepare(&text)?;
        timed(|| pages(&mut statement, kind, rows))
    }

    /// Rows of the log in `pos` order, from its begin.
    pub(crate) fn all(&self, rows: i64) -> Result<f64> {
        let text = self.select("?1 IS NOT NULL AND pos > ?2 ORDER BY pos", "pos");
        let mut statement = self.connection.prepare(&text)?;
        timed(|| pages(&mut statement, 0, rows))
    }

    /// The envelopes of whole runs in `pos` order: by the index of runs, else one cursor per topic, merged.
    pub(crate) fn replay(&self, runs: Range<i64>) -> Result<f64> {
        if self.run_index {
            let text = self.select("run = ?1 AND pos > ?2 ORDER BY pos", "pos");
            let mut statement = self.connection.prepare(&text)?;
            return timed(|| runs.map(|run| pages(&mut statement, run, i64::MAX)).sum());
        }
        let text = self.select("topic = ?1 AND seq > ?2 ORDER BY seq", "pos");
        let text = text.trim_end_matches("LIMIT 512");
        let mut cursors = (0..RUN_TOPICS)
            .map(|_| self.connection.prepare(text))
            .collect::<rusqlite::Result<Vec<_>>>()?;
        timed(|| runs.map(|run| merge(&mut cursors, (run - 1) * RUN_TOPICS)).sum())
    }

    fn select(&self, condition: &str, resume: &str) -> String {
        let from = if self.split {
            "envelope JOIN record USING (pos)"
        } else {
            "envelope"
        };
        format!("SELECT {resume}, id, record FROM {from} WHERE {condition} LIMIT 512")
    }
}

/// Rows read page after page, each resumed where the last one ended.
fn pages(statement: &mut Statement<'_>, of: i64, limit: i64) -> rusqlite::Result<i64> {
    let (mut count, mut after) = (0, 0);
    loop {
        let mut rows = statement.query(params![of, after])?;
        let mut page = 0;
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            touch(row)?;
            page += 1;
        }
        count += page;
        if page < PAGE_ROWS || count >= limit {
            return Ok(count);
        }
    }
}

fn merge(cursors: &mut [Statement<'_>], before: i64) -> rusqlite::Result<i64> {
    let mut rows = Vec::new();
    for (cursor, topic) in cursors.iter_mut().zip(before + 1..) {
        rows.push(cursor.query(params![topic, 0])?);
    }
    let mut heads = Vec::new();
    for cursor in &mut rows {
        heads.push(cursor.next()?.map(|row| row.get::<_, i64>(0)).transpose()?);
    }
    let mut count = 0;
    while let Some((slot, _)) = heads
        .iter()
        .enumerate()
        .filter_map(|(slot, head)| head.map(|pos| (slot, pos)))
        .min_by_key(|(_, pos)| *pos)
    {
        let row = rows[slot].next()?;
        if let Some(row) = row {
            touch(row)?;
        }
        heads[slot] = row.map(|row| row.get(0)).transpose()?;
        count += 1;
    }
    Ok(count)
}

fn touch(row: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
    std::hint::black_box(row.get_ref(1)?);
    std::hint::black_box(row.get_ref(2)?.as_str()?);
    Ok(())
}

fn timed(read: impl FnOnce() -> rusqlite::Result<i64>) -> Result<f64> {
    let start = Instant::now();
    let rows = read()?;
    Ok(micros(start.elapsed(), usize::try_from(rows.max(1))?))
}

fn insert_text(candidate: &Candidate) -> &'static str {
    match (candidate.shape, candidate.indexes) {
        (Shape::Split, _) => {
            "INSERT INTO envelope (pos, topic, seq, type, at, cause, key, idempotency, id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        }
        (_, Indexes::WithRun) => {
            "INSERT INTO envelope (pos, topic, seq, type, at, cause, key, idempotency, id, record, run)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        }
        _ => {
            "INSERT INTO envelope (pos, topic, seq, type, at, cause, key, idempotency, id, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        }
    }
}

fn insert_row(
    candidate: &Candidate,
    insert: &mut Statement<'_>,
    record: Option<&mut Statement<'_>>,
    row: &Row,
) -> rusqlite::Result<()> {
    insert.raw_bind_parameter(1, row.pos)?;
    insert.raw_bind_parameter(2, row.topic)?;
    insert.raw_bind_parameter(3, row.seq)?;
    insert.raw_bind_parameter(4, row.kind)?;
    insert.raw_bind_parameter(5, row.at)?;
    insert.raw_bind_parameter(6, row.cause)?;
    insert.raw_bind_parameter(7, row.key.as_deref())?;
    insert.raw_bind_parameter(8, row.idempotency.as_deref())?;
    insert.raw_bind_parameter(9, row.id.as_slice())?;
    if candidate.indexes == Indexes::WithRun {
        insert.raw_bind_parameter(11, row.run)?;
    }
    match record {
        Some(record) => {
            record.execute(params![row.pos, row.record])?;
        }
        None => insert.raw_bind_parameter(10, row.record.as_str())?,
    }
    insert.raw_execute()?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a count of rows is far below 2^52")]
fn micros(time: Duration, rows: usize) -> f64 {
    time.as_secs_f64() * 1e6 / rows as f64
}

/// Nanoseconds this thread has run; 0 where the system does not say.
fn processor_nanos() -> u64 {
    fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
