//! Archives being made: rows go into a file that is sealed before it takes its name.

use std::{collections::HashMap, path::Path};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    connect::TIDY,
    ddl::{self, Form},
    fault::At as _,
    fresh::Fresh,
    number::{signed, unsigned},
    open,
};
use crate::{
    Digest, EnvelopeRef, Error, ErrorKind, Json, Result, Schema, limits,
    store::{Archive, Manifest, Row},
};

/// For everybody, as far as the process's mask lets them.
const MODE: u32 = 0o666;

/// An archive that is being filled.
#[derive(Debug)]
pub(crate) struct Sealing {
    // Closed before the file that is locked goes.
    connection: Connection,
    fresh: Fresh,
    names: HashMap<(&'static str, String), i64>,
}

/// An archive that is whole and has no name yet.
#[derive(Debug)]
pub(crate) struct Sealed(Fresh);

impl Sealed {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        self.0.finish()
    }
}

impl Sealing {
    pub(crate) fn begin(to: &Path) -> Result<Self, Error> {
        let fresh = Fresh::begin(&open::canonical(to)?, MODE)?;
        let begun = Connection::open(fresh.path()).and_then(|connection| {
            // Nobody sees the file before it is whole and durable, so nothing of it has to survive a crash.
            connection.execute_batch(&format!(
                "{TIDY} PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
            ))?;
            connection.query_row("PRAGMA journal_mode = OFF", [], |_| Ok(()))?;
            connection.execute_batch(&format!("BEGIN EXCLUSIVE; {}", ddl::tables(Form::Archive)))?;
            Ok(connection)
        });
        Ok(Self {
            connection: begun.at(fresh.path())?,
            fresh,
            names: HashMap::new(),
        })
    }

    /// Takes a schema; false if it is there.
    pub(crate) fn schema(&self, schema: &Schema) -> Result<bool, Error> {
        let inserted = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO schema (hash, definition) VALUES (?1, ?2)")
            .and_then(|mut insert| {
                insert.execute(params![schema.reference().0.as_bytes(), schema.definition().as_str()])
            });
        inserted.map(|count| count == 1).at(self.fresh.path())
    }

    /// Where an envelope stands, if it is here.
    pub(crate) fn place(&self, of: &EnvelopeRef) -> Result<Option<u64>, Error> {
        let found = self
            .connection
            .prepare_cached(
                "SELECT pos FROM envelope WHERE topic = (SELECT id FROM topic WHERE name = ?1) AND seq = ?2 AND id = ?3",
            )
            .and_then(|mut select| {
                let values = params![of.topic.as_str(), signed(of.seq), of.id.as_bytes()];
                select.query_row(values, |row| row.get(0)).optional()
            });
        found.map(|pos: Option<i64>| pos.map(unsigned)).at(self.fresh.path())
    }

    pub(crate) fn row(&mut self, row: &Row) -> Result<(), Error> {
        let topic = self.number("topic", row.topic.as_str())?;
        let kind = self.number("type", row.kind.as_str())?;
        let inserted = self
            .connection
            .prepare_cached(
                "INSERT INTO envelope (pos, topic, seq, type, at, cause, key, idempotency, id, record)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    signed(row.pos),
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
            });
        match inserted {
            Ok(_) => Ok(()),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
                let (topic, seq) = (&row.topic, row.seq);
                let why = format!("{topic} seq {seq}, or the idempotency key of its batch, stands here twice");
                Err(Error::new(ErrorKind::Malformed, why))
            }
            Err(error) => Err(error).at(self.fresh.path()),
        }
    }

    fn number(&mut self, table: &'static str, name: &str) -> Result<i64, Error> {
        if let Some(number) = self.names.get(&(table, name.to_owned())) {
            return Ok(*number);
        }
        let number = self
            .connection
            .prepare_cached(&format!("INSERT OR IGNORE INTO {table} (name) VALUES (?1)"))
            .and_then(|mut insert| insert.execute([name]))
            .and_then(|_| {
                let select = format!("SELECT id FROM {table} WHERE name = ?1");
                self.connection
                    .prepare_cached(&select)?
                    .query_row([name], |row| row.get(0))
            });
        let number = number.at(self.fresh.path())?;
        if self.names.len() >= limits::CACHED_HEADS_MAX {
            self.names.clear();
        }
        self.names.insert((table, name.to_owned()), number);
        Ok(number)
    }

    /// Takes a chunk; one that is there stays.
    pub(crate) fn chunk(&self, hash: &Digest, bytes: &[u8]) -> Result<(), Error> {
        let inserted = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO chunk (hash, bytes) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![hash.as_bytes(), bytes]));
        inserted.map(|_| ()).at(self.fresh.path())
    }

    /// Takes a manifest; false if it is there.
    pub(crate) fn manifest(&self, manifest: &Manifest) -> Result<bool, Error> {
        let chunks: Vec<u8> = manifest.chunks.iter().flat_map(|chunk| *chunk.as_bytes()).collect();
        let inserted = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO manifest (hash, bytes, chunks) VALUES (?1, ?2, ?3)")
            .and_then(|mut insert| insert.execute(params![manifest.hash.as_bytes(), signed(manifest.bytes), chunks]));
        inserted.map(|count| count == 1).at(self.fresh.path())
    }

    /// Writes what it holds, and closes it for ever.
    pub(crate) fn seal(self, archive: &Archive) -> Result<Sealed, Error> {
        let Self { connection, fresh, .. } = self;
        let manifest = Json::of(archive)?;
        let sealed = connection
            .execute(
                "INSERT INTO archive (one, hash, manifest) VALUES (1, ?1, ?2)",
                params![
                    Digest::content(manifest.as_str().as_bytes()).as_bytes(),
                    manifest.as_str()
                ],
            )
            .and_then(|_| connection.execute_batch(&format!("{} COMMIT;", ddl::guards(Form::Archive))))
            .and_then(|()| connection.close().map_err(|(_, error)| error));
        sealed.at(fresh.path())?;
        Ok(Sealed(fresh))
    }
}
