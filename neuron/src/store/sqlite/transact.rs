//! What a batch reads and writes inside the write transaction.

use std::collections::HashMap;

use rusqlite::{OptionalExtension as _, params};

use super::{
    number::{signed, unsigned},
    write::{Place, Writer},
};
use crate::{
    Digest, Envelope, Error, ErrorKind, Millis, Result, Schema, Topic,
    envelope::{Kind, Prepared},
    limits,
    store::{Row, epoch_of, same_batch, seal::Transaction, tables::Work},
    topic::catalog,
};

/// A cache that is emptied when full.
fn bounded<K, V>(cache: &mut HashMap<K, V>) -> &mut HashMap<K, V> {
    if cache.len() >= limits::CACHED_HEADS_MAX {
        cache.clear();
    }
    cache
}

impl Transaction for Writer {
    fn work(&mut self, work: Work) -> Result<Prepared, Error> {
        self.open_tables(work)
    }

    fn last(&mut self) -> Result<(u64, Millis), Error> {
        if let Some(last) = self.known.last {
            return Ok(last);
        }
        let last: Option<(i64, i64)> = self.seen(|connection| {
            connection
                .prepare_cached("SELECT pos, at FROM envelope ORDER BY pos DESC LIMIT 1")?
                .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })?;
        let last = last.map_or((0, Millis(0)), |(pos, at)| (unsigned(pos), Millis(at)));
        self.known.last = Some(last);
        Ok(last)
    }

    fn head(&mut self, topic: &Topic) -> Result<u64, Error> {
        self.place(topic).map(|place| place.head)
    }

    fn keyed(&mut self, topic: &Topic, key: &str) -> Result<Option<u64>, Error> {
        let Some(number) = self.place(topic)?.number else {
            return Ok(None);
        };
        let seq: Option<i64> = self.seen(|connection| {
            connection
                .prepare_cached("SELECT seq FROM envelope WHERE topic = ?1 AND key = ?2 ORDER BY pos DESC LIMIT 1")?
                .query_row(params![number, key], |row| row.get(0))
                .optional()
        })?;
        Ok(seq.map(unsigned))
    }

    fn epoch(&mut self, name: &str) -> Result<u64, Error> {
        if let Some(epoch) = self.known.epochs.get(name) {
            return Ok(*epoch);
        }
        let leases = catalog::leases();
        let epoch = match self.place(&leases)?.number {
            Some(number) => self.seen(|connection| super::read::epoch(connection, number, name))?,
            None => 0,
        };
        bounded(&mut self.known.epochs).insert(name.to_owned(), epoch);
        Ok(epoch)
    }

    fn find(&mut self, topic: &Topic, seq: u64) -> Result<Option<(u64, Digest, Kind)>, Error> {
        let Some(number) = self.place(topic)?.number else {
            return Ok(None);
        };
        let found: Option<(i64, Vec<u8>, String)> = self.seen(|connection| {
            connection
                .prepare_cached(
                    "SELECT pos, envelope.id, name FROM envelope JOIN type ON type.id = envelope.type
                     WHERE topic = ?1 AND seq = ?2",
                )?
                .query_row(params![number, signed(seq)], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()
        })?;
        found
            .map(|(pos, id, kind)| Ok((unsigned(pos), Digest::from_slice(&id)?, Kind::new(kind)?)))
            .transpose()
    }

    fn batch(&mut self, key: &str) -> Result<Option<Vec<Envelope>>, Error> {
        let found: Vec<(i64, Vec<u8>, String)> = self.seen(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT pos, id, record, idempotency FROM envelope
                 WHERE pos >= (SELECT pos FROM envelope WHERE idempotency = ?1) ORDER BY pos",
            )?;
            let mut rows = statement.query([key])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let record: String = row.get(2)?;
                let begins_another = !found.is_empty() && row.get_ref(3)? != rusqlite::types::ValueRef::Null;
                // Every envelope of a batch carries the key, so that what follows the batch is not read.
                if begins_another || !record.contains("\"idempotency-key\"") {
                    break;
                }
                found.push((row.get(0)?, row.get(1)?, record));
            }
            Ok(found)
        })?;
        if found.is_empty() {
            return Ok(None);
        }
        let envelopes = found
            .into_iter()
            .map(|(pos, id, record)| Envelope::from_record(unsigned(pos), Digest::from_slice(&id)?, &record));
        same_batch(envelopes, key).map(Some)
    }

    fn register(&mut self, schema: &Schema) -> Result<(), Error> {
        let (hash, definition) = (schema.reference(), schema.definition().clone());
        self.written(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO schema (place, hash, definition)
                     SELECT (SELECT ifnull(max(place), 0) + 1 FROM schema), ?1, ?2
                     WHERE NOT EXISTS (SELECT 1 FROM schema WHERE hash = ?1)",
                )?
                .execute(params![hash.0.as_bytes(), definition.as_str()])
        })?;
        Ok(())
    }

    fn insert(&mut self, row: &Row) -> Result<(), Error> {
        let (topic, kind) = (self.number_of_topic(&row.topic)?, self.number_of_kind(&row.kind)?);
        // Without its `pos`, which SQLite gives as the next one: see the guard of the table.
        let pos = self.written(|connection| {
            connection
                .prepare_cached(
                    "INSERT OR FAIL INTO envelope (topic, seq, type, at, cause, key, idempotency, id, record)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                )?
                .insert(params![
                    topic,
                    signed(row.seq),
                    kind,
                    row.at.0,
                    row.cause.map(signed),
                    row.key.as_deref(),
                    row.idempotency.as_deref(),
                    row.id.as_bytes(),
                    &*row.record,
                ])
        })?;
        if unsigned(pos) != row.pos {
            let file = self.path.display();
            let why = format!(
                "{file} gave the next envelope pos {pos}, and its last one says {}: nothing is written; `neuron doctor` \
                 looks into it",
                row.pos
            );
            return Err(self.broken(Error::new(ErrorKind::Corrupt, why)));
        }
        let place = Place {
            number: Some(topic),
            head: row.seq,
        };
        bounded(&mut self.known.topics).insert(row.topic.clone(), place);
        self.known.last = Some((row.pos, row.at));
        if let Some((name, epoch)) = epoch_of(row) {
            bounded(&mut self.known.epochs).insert(name, epoch);
        }
        Ok(())
    }
}

impl Writer {
    fn place(&mut self, topic: &Topic) -> Result<Place, Error> {
        if let Some(place) = self.known.topics.get(topic) {
            return Ok(*place);
        }
        let found: Option<(i64, i64)> = self.seen(|connection| {
            connection
                .prepare_cached(
                    "SELECT id, (SELECT ifnull(max(seq), 0) FROM envelope WHERE topic = topic.id)
                     FROM topic WHERE name = ?1",
                )?
                .query_row([topic.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })?;
        let place = Place {
            number: found.map(|(number, _)| number),
            head: found.map_or(0, |(_, head)| unsigned(head)),
        };
        bounded(&mut self.known.topics).insert(topic.clone(), place);
        Ok(place)
    }

    fn number_of_topic(&mut self, topic: &Topic) -> Result<i64, Error> {
        if let Some(number) = self.place(topic)?.number {
            return Ok(number);
        }
        self.written(|connection| {
            connection
                .prepare_cached("INSERT INTO topic (name) VALUES (?1)")?
                .insert([topic.as_str()])
        })
    }

    fn number_of_kind(&mut self, kind: &Kind) -> Result<i64, Error> {
        if let Some(number) = self.known.kinds.get(kind) {
            return Ok(*number);
        }
        let found: Option<i64> = self.seen(|connection| {
            connection
                .prepare_cached("SELECT id FROM type WHERE name = ?1")?
                .query_row([kind.as_str()], |row| row.get(0))
                .optional()
        })?;
        let number = match found {
            Some(number) => number,
            None => self.written(|connection| {
                connection
                    .prepare_cached("INSERT INTO type (name) VALUES (?1)")?
                    .insert([kind.as_str()])
            })?,
        };
        bounded(&mut self.known.kinds).insert(kind.clone(), number);
        Ok(number)
    }

    /// Stores a chunk; one that is there stays.
    pub(super) fn chunk(&mut self, hash: &Digest, bytes: &[u8]) -> Result<(), Error> {
        self.written(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO chunk (hash, bytes) SELECT ?1, ?2
                     WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE hash = ?1)",
                )?
                .execute(params![hash.as_bytes(), bytes])
        })?;
        Ok(())
    }

    pub(super) fn has_chunk(&mut self, hash: &Digest) -> Result<bool, Error> {
        self.seen(|connection| {
            connection
                .prepare_cached("SELECT 1 FROM chunk WHERE hash = ?1")?
                .exists([hash.as_bytes()])
        })
    }

    /// Stores a manifest; one that is there stays.
    pub(super) fn manifest(&mut self, hash: &Digest, bytes: u64, chunks: &[u8]) -> Result<(), Error> {
        self.written(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO manifest (hash, bytes, chunks) SELECT ?1, ?2, ?3
                     WHERE NOT EXISTS (SELECT 1 FROM manifest WHERE hash = ?1)",
                )?
                .execute(params![hash.as_bytes(), signed(bytes), chunks])
        })?;
        Ok(())
    }
}
