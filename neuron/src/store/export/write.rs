use std::collections::BTreeSet;

use data_encoding::BASE64;

use super::line::{Opening, Trailer, VERSION, Written};
use crate::{
    Digest, DigestStream, Error, ErrorKind, Json, Result, Schema,
    store::{Part, Range, Select, Store, gapless, verify},
};

/// Writes a part of a store as lines of JSON, each handed to `emit` with its end: what the part is, all schemas, the
/// envelopes in order, the artifacts that they name (of a whole store all there are), and what must have been read.
///
/// Others may write meanwhile: what comes after the last envelope that stands now is not in it. Memory holds one page,
/// and 32 bytes for each artifact.
///
/// ```
/// use neuron::{Error, store::{Memory, Part, export}};
/// let mut lines = String::new();
/// let ended = export::export(&Memory::new()?, &Part::ALL, |line| {
///     lines.push_str(line);
///     Ok::<(), Error>(())
/// })?;
/// assert_eq!((ended.envelopes, lines.lines().count()), (0, 3));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// What `emit` says; [`ErrorKind::Corrupt`] where the store is damaged, [`ErrorKind::Misuse`] for a part that an archive
/// cannot give, or a kind of the disk.
pub fn export<E: From<Error>>(
    store: &dyn Store,
    part: &Part,
    emit: impl FnMut(&str) -> Result<(), E>,
) -> Result<Trailer, E> {
    let opening = opening(store, part)?;
    let mut lines = Lines {
        emit,
        line: String::new(),
        hash: Digest::stream(),
    };
    lines.write(&Written::Export(&opening))?;
    let schemas = store.schemas()?;
    for schema in &schemas {
        let (hash, definition) = (schema.reference(), schema.definition());
        lines.write(&Written::Schema { hash, definition })?;
    }
    let (envelopes, named) = self::envelopes(store, &opening.part, &mut lines)?;
    let all = opening.part.topics.is_none() && opening.part.from == 1 && part.to == u64::MAX;
    let artifacts: BTreeSet<Digest> = if all {
        store.manifests()?.into_iter().map(|(hash, _)| hash).collect()
    } else {
        named
    };
    let (mut count, mut bytes) = (0, 0);
    for hash in artifacts {
        // What an envelope names may lie elsewhere.
        if let Some(written) = artifact(store, &hash, &mut lines)? {
            count += 1;
            bytes += written;
        }
    }
    let trailer = Trailer {
        schemas: schemas.len() as u64,
        envelopes,
        artifacts: count,
        artifact_bytes: bytes,
        hash: lines.hash.finish(),
    };
    lines.write(&Written::End(&trailer))?;
    Ok(trailer)
}

fn opening(store: &dyn Store, part: &Part) -> Result<Opening, Error> {
    let (last, _) = store.last()?;
    let root = store.schemas()?.first().map(|root| root.reference());
    let own = Schema::plane0().reference();
    if root != Some(own) {
        let why = format!("only a store whose root is {} can be exported by this program", own.0);
        return Err(Error::new(ErrorKind::NotAStore, why));
    }
    let mut part = Part {
        topics: part.topics.clone(),
        from: part.from.max(1),
        to: part.to.min(last),
    };
    let head = match store.archive()? {
        None => verify::head_at(store, part.to)?,
        // Of what an archive does not hold it knows no head but the one it was given.
        Some(archive) if part.topics.is_none() && part.from <= archive.part.from && part.to == last => {
            part = archive.part;
            archive.head
        }
        Some(_) => {
            let why = "an archive is a part of a store already, and is exported whole: take a part of the store itself";
            return Err(Error::new(ErrorKind::Misuse, why));
        }
    };
    Ok(Opening {
        version: VERSION,
        root: own,
        head,
        part,
    })
}

struct Lines<F> {
    emit: F,
    line: String,
    hash: DigestStream,
}

impl<E: From<Error>, F: FnMut(&str) -> Result<(), E>> Lines<F> {
    fn write(&mut self, line: &Written<'_>) -> Result<(), E> {
        let text = serde_json::to_string(line).map_err(|error| Error::new(ErrorKind::Malformed, error))?;
        self.line.clear();
        self.line.push_str(&text);
        self.line.push('\n');
        self.hash.update(self.line.as_bytes());
        (self.emit)(&self.line)
    }
}

/// The envelopes of the part, and the artifacts that they name.
fn envelopes<E: From<Error>, F: FnMut(&str) -> Result<(), E>>(
    store: &dyn Store,
    part: &Part,
    lines: &mut Lines<F>,
) -> Result<(u64, BTreeSet<Digest>), E> {
    let select = part
        .topics
        .as_ref()
        .map_or(Select::All, |topics| Select::Pattern(topics.clone()));
    let mut range = Range {
        from: part.from,
        to: part.to,
        ..Range::ALL
    };
    let (mut count, mut named) = (0, BTreeSet::new());
    while range.from <= range.to {
        let page = gapless::page(store, &select, range)?;
        for row in page.rows {
            // What is not what was written would be refused when it is read back, when the store may be gone.
            let artifacts = row.checked()?.body.artifacts;
            named.extend(artifacts.iter().filter_map(|artifact| artifact.hash));
            lines.write(&Written::Envelope {
                pos: row.pos,
                id: row.id,
                record: Json::trusted(row.record),
            })?;
            count += 1;
        }
        match page.next {
            Some(next) => range.from = next,
            None => break,
        }
    }
    Ok((count, named))
}

/// An artifact, chunk by chunk; nothing if the store does not hold it.
fn artifact<E: From<Error>, F: FnMut(&str) -> Result<(), E>>(
    store: &dyn Store,
    hash: &Digest,
    lines: &mut Lines<F>,
) -> Result<Option<u64>, E> {
    let Some(manifest) = store.manifest(hash)? else {
        return Ok(None);
    };
    let (hash, bytes) = (manifest.hash, manifest.bytes);
    lines.write(&Written::Artifact { hash, bytes })?;
    for chunk in &manifest.chunks {
        let content = store.chunk(chunk)?.ok_or_else(|| {
            let why = format!("chunk {chunk} of artifact {hash} is missing: `neuron verify` looks through the store");
            Error::new(ErrorKind::Corrupt, why)
        })?;
        if Digest::content(&content) != *chunk {
            let why = format!("chunk {chunk} of artifact {hash} is damaged: `neuron verify` looks through the store");
            return Err(Error::new(ErrorKind::Corrupt, why).into());
        }
        lines.write(&Written::Chunk {
            hash: *chunk,
            base64: BASE64.encode(&content),
        })?;
    }
    Ok(Some(bytes))
}
