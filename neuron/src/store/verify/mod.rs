//! Whether a store says what was written into it.
//!
//! [`verify`] recomputes everything that follows from the records: ids, heads, places, columns, references, schemas,
//! artifacts. It finds what was changed, removed or put between. Rows cut from the very end leave a whole, shorter log:
//! only [`check`] with a [`Head`] that was kept elsewhere sees that.

mod audit;
mod bad;
mod head;

use std::collections::BTreeMap;

use serde::Serialize;

use self::{audit::Audit, bad::told};
pub use self::{bad::Bad, head::Head};
use super::{Manifest, Range, Row, Select, Store};
use crate::{Digest, ENVELOPE_CONTEXT, Error, ErrorKind, Result, Schema, Topic};

/// What a whole store holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// The head to keep elsewhere; its `pos` is the number of envelopes.
    pub head: Head,
    /// The head of each topic; its `pos` is the topic's last `seq`.
    pub topics: BTreeMap<Topic, Head>,
    /// Schemas in the registry.
    pub schemas: u64,
    /// Artifacts, whole and intact.
    pub artifacts: u64,
    /// Bytes of these artifacts.
    pub artifact_bytes: u64,
}

/// Reads a whole store and recomputes it, in constant memory but for one entry per topic.
///
/// # Errors
/// [`ErrorKind::Corrupt`] with what is wrong; for an envelope, the first bad one, told as [`Bad`].
/// [`ErrorKind::NotAStore`] for a store of another root, whose rules are not known. A kind of the disk.
pub fn verify(store: &dyn Store) -> Result<Verified, Error> {
    let schemas = store.schemas()?;
    let (root, own) = (
        schemas.first().map(|root| root.reference()),
        Schema::plane0().reference(),
    );
    if root != Some(own) {
        let found = root.map_or_else(|| "none".to_owned(), |root| root.0.to_string());
        let why = format!("the root of this store is {found}, not {} ({ENVELOPE_CONTEXT})", own.0);
        return Err(Error::new(ErrorKind::NotAStore, why));
    }
    let mut audit = Audit::new(schemas.iter().map(|schema| schema.reference()).collect());
    each_row(store, 1, |row| {
        if row.pos == audit.next() {
            audit.take(store, row)
        } else {
            Err(missing(store, &audit, row))
        }
    })?;
    let (artifacts, artifact_bytes) = blobs(store)?;
    store.sound()?;
    let (head, topics) = audit.heads();
    Ok(Verified {
        head,
        topics,
        schemas: schemas.len() as u64,
        artifacts,
        artifact_bytes,
    })
}

/// The head of a store, from its ids alone: to be kept elsewhere.
///
/// # Errors
/// As [`Store::page`].
pub fn head(store: &dyn Store) -> Result<Head, Error> {
    let mut head = Head::default();
    each_row(store, 1, |row| {
        head = head.then(row.id);
        Ok(())
    })?;
    Ok(head)
}

/// Proves that a store still begins with what `since` was the head of, and gives its present head.
///
/// This compares ids; that each id is the hash of its record is for [`verify`] to say.
///
/// # Errors
/// [`ErrorKind::Corrupt`] if rows were cut off, changed or put between; as [`Store::page`].
pub fn check(store: &dyn Store, since: &Head) -> Result<Head, Error> {
    let (mut head, mut met) = (Head::default(), since.pos == 0 && since.hash == Digest::ZERO);
    each_row(store, 1, |row| {
        head = head.then(row.id);
        if head.pos == since.pos {
            met = head.hash == since.hash;
        }
        Ok(())
    })?;
    let why = if head.pos < since.pos {
        format!(
            "the store ends at pos {}, the head {since} was taken at pos {}: envelopes were cut from its end",
            head.pos, since.pos
        )
    } else if met {
        return Ok(head);
    } else {
        format!(
            "the store does not begin with what {since} was the head of: an envelope up to there is another one now"
        )
    };
    Err(Error::new(ErrorKind::Corrupt, why))
}

/// Shows every row from a place on, in order.
fn each_row(store: &dyn Store, from: u64, mut see: impl FnMut(&Row) -> Result<(), Error>) -> Result<(), Error> {
    let mut range = Range { from, ..Range::ALL };
    loop {
        let page = match store.page(&Select::All, range) {
            Err(error) if error.kind() == ErrorKind::Corrupt => return one_by_one(store, range.from, see),
            page => page?,
        };
        page.rows.iter().try_for_each(&mut see)?;
        match page.next {
            Some(next) => range.from = next,
            None => return Ok(()),
        }
    }
}

/// A page that cannot be read is read row by row, so that those before the damage are seen first.
fn one_by_one(store: &dyn Store, from: u64, mut see: impl FnMut(&Row) -> Result<(), Error>) -> Result<(), Error> {
    let (last, _) = store.last()?;
    for pos in from..=last {
        let range = Range {
            from: pos,
            to: pos,
            ..Range::ALL
        };
        let page = store
            .page(&Select::All, range)
            .map_err(|error| unreadable(pos, &error))?;
        page.rows.iter().try_for_each(&mut see)?;
    }
    Ok(())
}

fn unreadable(pos: u64, error: &Error) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error.clone();
    }
    told(&Bad {
        pos,
        topic: None,
        seq: None,
        id: None,
        why: error.to_string(),
    })
}

/// Names an envelope that is not there: the log goes on after it, and so does its topic unless it was the last of it.
fn missing(store: &dyn Store, audit: &Audit, next: &Row) -> Error {
    let (mut ahead, mut gap) = (audit.seqs(), None);
    // Damage further on ends the search, and is told once this is mended.
    let _ = each_row(store, next.pos, |row| {
        let last = ahead.insert(row.topic.clone(), row.seq).unwrap_or(0);
        if row.seq != last + 1 {
            gap = Some((row.topic.clone(), last + 1));
            return Err(Error::new(ErrorKind::Failed, "the search is over"));
        }
        Ok(())
    });
    let (pos, upto) = (audit.next(), next.pos - 1);
    let goes_on = format!("the log goes on with pos {}", next.pos);
    let (why, lost) = match gap {
        gap if pos == upto => (format!("it is missing: {goes_on}"), gap),
        Some((topic, seq)) => {
            let why = format!("it and those up to pos {upto} are missing, {topic} seq {seq} among them: {goes_on}");
            (why, None)
        }
        None => (format!("it and those up to pos {upto} are missing: {goes_on}"), None),
    };
    let (topic, seq) = lost.unzip();
    told(&Bad {
        pos,
        topic,
        seq,
        id: None,
        why,
    })
}

/// Recomputes every artifact, chunk by chunk.
fn blobs(store: &dyn Store) -> Result<(u64, u64), Error> {
    let (mut count, mut bytes) = (0, 0);
    for (hash, _) in store.manifests()? {
        let manifest = store.manifest(&hash)?;
        let manifest = manifest.ok_or_else(|| damaged(&hash, "its manifest is missing"))?;
        blob(store, &manifest)?;
        count += 1;
        bytes += manifest.bytes;
    }
    Ok((count, bytes))
}

fn blob(store: &dyn Store, manifest: &Manifest) -> Result<(), Error> {
    let (mut whole, mut bytes) = (Digest::stream(), 0);
    for (index, hash) in manifest.chunks.iter().enumerate() {
        let named = || format!("chunk {} of {}, {hash},", index + 1, manifest.chunks.len());
        let chunk = store.chunk(hash)?;
        let chunk = chunk.ok_or_else(|| damaged(&manifest.hash, &format!("{} is missing", named())))?;
        let found = Digest::content(&chunk);
        if found != *hash {
            return Err(damaged(
                &manifest.hash,
                &format!("{} was changed: it hashes to {found}", named()),
            ));
        }
        whole.update(&chunk);
        bytes += chunk.len() as u64;
    }
    let found = whole.finish();
    if (found, bytes) == (manifest.hash, manifest.bytes) {
        return Ok(());
    }
    let why = format!(
        "its chunks make {bytes} bytes that hash to {found}, its manifest says {} bytes",
        manifest.bytes
    );
    Err(damaged(&manifest.hash, &why))
}

fn damaged(artifact: &Digest, why: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("artifact {artifact} is damaged: {why}"))
}
