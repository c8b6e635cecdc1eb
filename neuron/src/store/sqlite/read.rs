//! What a read connection answers.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row as SqlRow, params};

use super::{
    ddl::Form,
    fault::At as _,
    layout,
    number::{signed, unsigned},
};
use crate::{
    Digest, Envelope, Error, ErrorKind, Millis, Pattern, Result, Topic,
    envelope::Kind,
    limits,
    store::{Row, TopicSummary, epoch_of},
    topic::catalog,
};

/// The columns of a row, in the order [`Reader::row_of`] takes them.
pub(super) const COLUMNS: &str = "pos, topic, seq, type, at, cause, key, idempotency, id, record";

/// A read connection with the interned names it has met; names never change, so they are never dropped for that.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) path: Arc<Path>,
    pub(super) connection: Connection,
    names: Names,
    /// Which topics the patterns asked for lately select.
    pub(super) matched: HashMap<Pattern, Matched>,
    /// `data_version` at the last look.
    version: Option<i64>,
    /// Whether the file is an archive, in which places may be missing.
    has_holes: Option<bool>,
}

/// Topics that a pattern selects, and up to which interned number that is known.
#[derive(Debug, Default)]
pub(super) struct Matched {
    pub(super) upto: i64,
    pub(super) numbers: Arc<HashSet<i64>>,
}

#[derive(Debug, Default)]
struct Names {
    topics: HashMap<i64, Topic>,
    kinds: HashMap<i64, Kind>,
    numbers: HashMap<Topic, i64>,
}

impl Names {
    fn topic(&mut self, connection: &Connection, number: i64) -> Result<Topic, Error> {
        if let Some(topic) = self.topics.get(&number) {
            return Ok(topic.clone());
        }
        let topic = topic_named(number, name(connection, TOPIC_NAME, number)?)?;
        self.make_room();
        self.topics.insert(number, topic.clone());
        Ok(topic)
    }

    fn kind(&mut self, connection: &Connection, number: i64) -> Result<Kind, Error> {
        if let Some(kind) = self.kinds.get(&number) {
            return Ok(kind.clone());
        }
        let kind = Kind::new(name(connection, "SELECT name FROM type WHERE id = ?1", number)?)?;
        self.make_room();
        self.kinds.insert(number, kind.clone());
        Ok(kind)
    }

    fn make_room(&mut self) {
        if self.topics.len() + self.kinds.len() + self.numbers.len() >= limits::CACHED_HEADS_MAX {
            *self = Self::default();
        }
    }
}

const TOPIC_NAME: &str = "SELECT name FROM topic WHERE id = ?1";

/// The topic of an interned number and name.
pub(super) fn topic_named(number: i64, name: String) -> Result<Topic, Error> {
    Topic::new(name).map_err(|error| {
        let why = format!("the name of the topic with number {number} is damaged: {error}");
        Error::new(ErrorKind::Corrupt, why)
    })
}

/// Whether an interned number is the one after `last`.
pub(super) fn follows(last: i64, number: i64) -> Result<(), Error> {
    if number == last + 1 {
        Ok(())
    } else {
        Err(missing(last + 1))
    }
}

/// The name of a topic is not there, and its envelopes are.
pub(super) fn missing(number: i64) -> Error {
    let why = format!("of the names of topics number {number} is missing, or stands elsewhere");
    Error::new(ErrorKind::Corrupt, why)
}

fn name(connection: &Connection, query: &str, number: i64) -> Result<String, Error> {
    let found = connection
        .prepare_cached(query)
        .and_then(|mut statement| statement.query_row([number], |row| row.get(0)).optional())
        .map_err(|error| {
            let why =
                format!("the interned name {number} cannot be read: {error}; `neuron verify` looks through the store");
            Error::new(ErrorKind::Corrupt, why)
        })?;
    found.ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("the interned name {number} is missing")))
}

/// The newest epoch of an owned name, on the log of leases with this number.
pub(super) fn epoch(connection: &Connection, leases: i64, owned: &str) -> rusqlite::Result<u64> {
    let found: Option<(i64, i64, i64, Vec<u8>, String)> = connection
        .prepare_cached(
            "SELECT pos, seq, at, id, record FROM envelope WHERE topic = ?1 AND key = ?2 ORDER BY pos DESC LIMIT 1",
        )?
        .query_row(params![leases, owned], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    let lease = found.and_then(|(pos, seq, at, id, record)| {
        let id = Digest::from_slice(&id).ok()?;
        let row = Row {
            pos: unsigned(pos),
            topic: catalog::leases(),
            seq: unsigned(seq),
            kind: Envelope::from_record(unsigned(pos), id, &record).ok()?.body.kind,
            at: Millis(at),
            cause: None,
            key: Some(owned.into()),
            idempotency: None,
            id,
            record: record.into(),
        };
        epoch_of(&row)
    });
    Ok(lease.map_or(0, |(_, epoch)| epoch))
}

impl Reader {
    pub(super) fn new(path: Arc<Path>, connection: Connection) -> Self {
        Self {
            path,
            connection,
            names: Names::default(),
            matched: HashMap::new(),
            version: None,
            has_holes: None,
        }
    }

    pub(super) fn prepare(&self, query: &str) -> Result<CachedStatement<'_>, Error> {
        self.connection.prepare_cached(query).at(&self.path)
    }

    pub(super) fn has_holes(&mut self) -> Result<bool, Error> {
        if self.has_holes.is_none() {
            self.has_holes = Some(layout::form(&self.connection).at(&self.path)? == Form::Archive);
        }
        Ok(self.has_holes == Some(true))
    }

    /// The last `pos`, if something was committed since this was asked last.
    pub(super) fn news(&mut self) -> Result<Option<u64>, Error> {
        let version: i64 = self
            .prepare("PRAGMA data_version")?
            .query_row([], |row| row.get(0))
            .at(&self.path)?;
        if self.version.replace(version) == Some(version) {
            return Ok(None);
        }
        self.last().map(|(pos, _)| Some(pos))
    }

    pub(super) fn last(&self) -> Result<(u64, Millis), Error> {
        let last: Option<(i64, i64)> = self
            .prepare("SELECT pos, at FROM envelope ORDER BY pos DESC LIMIT 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .at(&self.path)?;
        Ok(last.map_or((0, Millis(0)), |(pos, at)| (unsigned(pos), Millis(at))))
    }

    /// The interned number of a topic, if anything was ever written to it.
    pub(super) fn number(&mut self, topic: &Topic) -> Result<Option<i64>, Error> {
        if let Some(number) = self.names.numbers.get(topic) {
            return Ok(Some(*number));
        }
        let number = self
            .prepare("SELECT id FROM topic WHERE name = ?1")?
            .query_row([topic.as_str()], |row| row.get(0))
            .optional()
            .at(&self.path)?;
        if let Some(number) = number {
            self.names.make_room();
            self.names.numbers.insert(topic.clone(), number);
        }
        Ok(number)
    }

    /// The topic of an interned number.
    pub(super) fn topic(&self, number: i64) -> Result<Topic, Error> {
        if let Some(topic) = self.names.topics.get(&number) {
            return Ok(topic.clone());
        }
        topic_named(number, name(&self.connection, TOPIC_NAME, number)?)
    }

    pub(super) fn kind_number(&self, kind: &Kind) -> Result<Option<i64>, Error> {
        self.prepare("SELECT id FROM type WHERE name = ?1")?
            .query_row([kind.as_str()], |row| row.get(0))
            .optional()
            .at(&self.path)
    }

    /// Rows of a query over [`COLUMNS`], up to `limit` and to a page's worth of bytes; true if it gave up before the end.
    pub(super) fn rows(
        &mut self,
        query: &str,
        values: &[i64],
        key: Option<&str>,
        limit: usize,
        into: &mut Vec<Row>,
    ) -> Result<bool, Error> {
        let Self {
            connection,
            names,
            path,
            ..
        } = self;
        let mut statement = connection.prepare_cached(query).at(path)?;
        for (place, value) in values.iter().enumerate() {
            statement.raw_bind_parameter(place + 1, value).at(path)?;
        }
        if let Some(key) = key {
            statement.raw_bind_parameter(values.len() + 1, key).at(path)?;
        }
        let mut rows = statement.raw_query();
        let mut bytes: usize = into.iter().map(|row| row.record.len()).sum();
        while let Some(row) = rows.next().at(path)? {
            if into.len() >= limit || (bytes > limits::PAGE_BYTES_MAX && !into.is_empty()) {
                return Ok(true);
            }
            let row = row_of(connection, names, row)?;
            bytes += row.record.len();
            into.push(row);
        }
        Ok(false)
    }

    pub(super) fn row(&mut self, topic: &Topic, seq: u64) -> Result<Option<Row>, Error> {
        let Some(number) = self.number(topic)? else {
            return Ok(None);
        };
        let mut rows = Vec::new();
        let query = select(COLUMNS, "topic = ?1 AND seq = ?2");
        self.rows(&query, &[number, signed(seq)], None, 1, &mut rows)?;
        Ok(rows.pop())
    }

    pub(super) fn head(&mut self, topic: &Topic) -> Result<u64, Error> {
        let Some(number) = self.number(topic)? else {
            return Ok(0);
        };
        let head: i64 = self
            .prepare("SELECT ifnull(max(seq), 0) FROM envelope WHERE topic = ?1")?
            .query_row([number], |row| row.get(0))
            .at(&self.path)?;
        Ok(unsigned(head))
    }

    pub(super) fn keyed(&mut self, topic: &Topic, key: &str) -> Result<Option<u64>, Error> {
        let Some(number) = self.number(topic)? else {
            return Ok(None);
        };
        let seq: Option<i64> = self
            .prepare("SELECT seq FROM envelope WHERE topic = ?1 AND key = ?2 ORDER BY pos DESC LIMIT 1")?
            .query_row(params![number, key], |row| row.get(0))
            .optional()
            .at(&self.path)?;
        Ok(seq.map(unsigned))
    }

    pub(super) fn epoch(&mut self, owned: &str) -> Result<u64, Error> {
        match self.number(&catalog::leases())? {
            Some(number) => epoch(&self.connection, number, owned).at(&self.path),
            None => Ok(0),
        }
    }

    /// The greatest number of a topic that an envelope stands on. Asked before the names are read, it has one.
    pub(super) fn last_number(&self) -> Result<i64, Error> {
        self.prepare("SELECT ifnull(max(topic), 0) FROM envelope")?
            .query_row([], |row| row.get(0))
            .at(&self.path)
    }

    /// All topics, by name. Their numbers count from 1 without gaps, and each holds something: what is missing is damage.
    pub(super) fn topics(&self) -> Result<Vec<TopicSummary>, Error> {
        let greatest = self.last_number()?;
        let mut statement = self.prepare(
            "SELECT topic.id, name, seq, pos FROM topic LEFT JOIN envelope
             ON envelope.topic = topic.id AND seq = (SELECT max(seq) FROM envelope WHERE topic = topic.id)
             ORDER BY topic.id",
        )?;
        let mut rows = statement.query([]).at(&self.path)?;
        let (mut topics, mut last) = (Vec::new(), 0);
        while let Some(row) = rows.next().at(&self.path)? {
            let (number, name): (i64, String) = (row.get(0).at(&self.path)?, row.get(1).at(&self.path)?);
            follows(last, number)?;
            let place: (Option<i64>, Option<i64>) = (row.get(2).at(&self.path)?, row.get(3).at(&self.path)?);
            let (Some(head), Some(pos)) = place else {
                let why = format!("topic `{}` is known and holds no envelope", name.escape_debug());
                return Err(Error::new(ErrorKind::Corrupt, why));
            };
            last = number;
            topics.push(TopicSummary {
                topic: topic_named(number, name)?,
                head: unsigned(head),
                last_pos: unsigned(pos),
            });
        }
        if last < greatest {
            return Err(missing(last + 1));
        }
        topics.sort_unstable_by(|one, other| one.topic.cmp(&other.topic));
        Ok(topics)
    }

    /// Bytes of the records from one `seq` to another; none if there is no envelope there.
    pub(super) fn bytes(&mut self, topic: &Topic, from: u64, to: u64) -> Result<Option<u64>, Error> {
        let Some(number) = self.number(topic)? else {
            return Ok(None);
        };
        let bytes: Option<i64> = self
            .prepare("SELECT sum(octet_length(record)) FROM envelope WHERE topic = ?1 AND seq BETWEEN ?2 AND ?3")?
            .query_row(params![number, signed(from), signed(to)], |row| row.get(0))
            .at(&self.path)?;
        Ok(bytes.map(unsigned))
    }
}

/// `SELECT` over the columns of a row.
pub(super) fn select(columns: &str, condition: &str) -> String {
    format!("SELECT {columns} FROM envelope WHERE {condition}")
}

fn row_of(connection: &Connection, names: &mut Names, row: &SqlRow<'_>) -> Result<Row, Error> {
    let pos: i64 = row.get(0).map_err(|error| Error::new(ErrorKind::Corrupt, error))?;
    columns_of(connection, names, row, unsigned(pos)).map_err(|error| {
        let why = format!("the envelope at pos {pos} cannot be read: {error}");
        Error::new(ErrorKind::Corrupt, why)
    })
}

fn columns_of(connection: &Connection, names: &mut Names, row: &SqlRow<'_>, pos: u64) -> Result<Row, Error> {
    let wrong = |error: rusqlite::Error| Error::new(ErrorKind::Corrupt, error);
    let other = |error: rusqlite::types::FromSqlError| Error::new(ErrorKind::Corrupt, error);
    let text = |place| row.get::<_, Option<Arc<str>>>(place).map_err(wrong);
    Ok(Row {
        pos,
        topic: names.topic(connection, row.get(1).map_err(wrong)?)?,
        seq: unsigned(row.get(2).map_err(wrong)?),
        kind: names.kind(connection, row.get(3).map_err(wrong)?)?,
        at: Millis(row.get(4).map_err(wrong)?),
        cause: row.get::<_, Option<i64>>(5).map_err(wrong)?.map(unsigned),
        key: text(6)?,
        idempotency: text(7)?,
        id: Digest::from_slice(row.get_ref(8).map_err(wrong)?.as_blob().map_err(other)?)?,
        record: row.get_ref(9).map_err(wrong)?.as_str().map_err(other)?.into(),
    })
}
