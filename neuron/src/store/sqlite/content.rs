//! What stands in the store by its hash: schemas, manifests, chunks.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, Row as SqlRow};

use super::{fault::At as _, number::unsigned, read::Reader};
use crate::{Digest, Error, ErrorKind, Json, Result, Schema, SchemaRef, store::Manifest};

impl Reader {
    pub(super) fn schema(&self, reference: &SchemaRef) -> Result<Option<Arc<Schema>>, Error> {
        let found = self
            .prepare("SELECT hash, definition FROM schema WHERE hash = ?1")?
            .query_row([reference.0.as_bytes()], schema_columns)
            .optional()
            .at(&self.path)?;
        found
            .map(|(hash, definition)| stored_schema(&hash, &definition))
            .transpose()
    }

    pub(super) fn schemas(&self) -> Result<Vec<Arc<Schema>>, Error> {
        let mut statement = self.prepare("SELECT hash, definition FROM schema ORDER BY place")?;
        let rows = statement.query_map([], schema_columns).at(&self.path)?;
        rows.map(|row| {
            let (hash, definition) = row.at(&self.path)?;
            stored_schema(&hash, &definition)
        })
        .collect()
    }

    pub(super) fn manifest(&self, hash: &Digest) -> Result<Option<Manifest>, Error> {
        let found: Option<(i64, Vec<u8>)> = self
            .prepare("SELECT bytes, chunks FROM manifest WHERE hash = ?1")?
            .query_row([hash.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .at(&self.path)?;
        let Some((bytes, chunks)) = found else { return Ok(None) };
        Ok(Some(Manifest {
            hash: *hash,
            bytes: unsigned(bytes),
            chunks: chunks.chunks(32).map(Digest::from_slice).collect::<Result<_, _>>()?,
        }))
    }

    pub(super) fn manifests(&self) -> Result<Vec<(Digest, u64)>, Error> {
        let mut statement = self.prepare("SELECT hash, bytes FROM manifest ORDER BY hash")?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)))
            .at(&self.path)?;
        rows.map(|row| {
            let (hash, bytes) = row.at(&self.path)?;
            Ok((Digest::from_slice(&hash)?, unsigned(bytes)))
        })
        .collect()
    }

    pub(super) fn chunk(&self, hash: &Digest) -> Result<Option<Arc<[u8]>>, Error> {
        self.prepare("SELECT bytes FROM chunk WHERE hash = ?1")?
            .query_row([hash.as_bytes()], |row| Ok(row.get_ref(0)?.as_blob()?.into()))
            .optional()
            .at(&self.path)
    }
}

fn schema_columns(row: &SqlRow<'_>) -> rusqlite::Result<(Vec<u8>, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

/// A schema of the registry, which must be what its hash says.
fn stored_schema(hash: &[u8], definition: &str) -> Result<Arc<Schema>, Error> {
    let hash = SchemaRef(Digest::from_slice(hash)?);
    let definition = Json::parse(definition).map_err(|error| {
        let why = format!("schema {} of the registry is damaged: {error}", hash.0);
        Error::new(ErrorKind::Corrupt, why)
    })?;
    let value = definition.to_value();
    let schema = Schema::known(definition, value);
    if schema.reference() != hash {
        let why = format!(
            "schema {} of the registry is damaged: its definition has another hash",
            hash.0
        );
        return Err(Error::new(ErrorKind::Corrupt, why));
    }
    Ok(Arc::new(schema))
}
