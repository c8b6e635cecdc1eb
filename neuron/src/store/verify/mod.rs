//! Whether a store says what was written into it.
//!
//! [`verify`] recomputes everything that follows from the records: ids, heads, places, columns, references, schemas,
//! artifacts. It finds what was changed, removed or put between. Rows cut from the very end leave a whole, shorter log:
//! only a [`Head`] that was kept elsewhere sees that, by [`check`] or [`verify_since`].
//!
//! | | reads up to the head | proves of it | of what comes after |
//! |---|---|---|---|
//! | [`verify`] | everything | that it is whole in itself | the same |
//! | [`check`] | ids | that these are the ids the head was taken of | that each id follows |
//! | [`verify_since`], [`Past::Chained`] | ids | the same | that it is whole in itself, and follows |
//! | [`verify_since`], [`Past::Trusted`] | its last row | nothing: that is taken from whoever kept the head | the same |
//!
//! An id is the hash of its record, so a store whose ids are proved and which was verified when the head was taken has
//! changed, if at all, only in records that no longer match their ids: reading them is what [`verify`] is for.
//!
//! One thing of a store has no hash: what a schema says about itself (titles, descriptions, examples), which its name
//! leaves out on purpose. An archive is sealed with that too.

mod audit;
mod bad;
mod chain;
mod examine;
mod head;
mod pages;

use std::{collections::BTreeSet, thread};

use serde::Serialize;

use self::{
    audit::{Audit, Found},
    bad::told,
    chain::{begins, chain, cut, grows},
};
pub use self::{
    bad::Bad,
    chain::{check, head, head_at, head_of},
    head::Head,
};
use super::{Archive, Manifest, Range, Row, Select, Store, register};
use crate::{Digest, ENVELOPE_CONTEXT, Error, ErrorKind, Result, Schema, SchemaRef, Topic};

/// What a store holds, as far as it was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// The head to keep elsewhere. Of a store its `pos` is the number of envelopes; of an archive the head is that of
    /// its own envelopes.
    pub head: Head,
    /// Envelopes that were recomputed.
    pub envelopes: u64,
    /// Topics on which they stand.
    pub topics: u64,
    /// Schemas in the registry.
    pub schemas: u64,
    /// Artifacts that were recomputed: all of them, or those that the envelopes name.
    pub artifacts: u64,
    /// Bytes of these artifacts.
    pub artifact_bytes: u64,
}

/// What is done about the log up to a known head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Its ids are read and chained: they must be those the head was taken of.
    Chained,
    /// It is not read: whoever gives the head vouches for it.
    Trusted,
}

/// Reads a whole store and recomputes it, up to the last envelope that stands at the beginning; others may write
/// meanwhile. Memory holds a few pages, and some 110 bytes per topic.
///
/// # Errors
/// [`ErrorKind::Corrupt`] with what is wrong; for an envelope, the first bad one, told as [`Bad`].
/// [`ErrorKind::NotAStore`] for a store of another root, whose rules are not known. A kind of the disk.
pub fn verify(store: &dyn Store) -> Result<Verified, Error> {
    let (found, sound) = thread::scope(|scope| {
        let pages = thread::Builder::new().name("neuron-pages".into());
        let sound = pages.spawn_scoped(scope, || store.sound())?;
        let found = content(store);
        let panicked = || Error::new(ErrorKind::Failed, "the thread that looked at the pages has panicked");
        Ok::<_, Error>((found, sound.join().unwrap_or_else(|_| Err(panicked()))))
    })?;
    let found = found?;
    sound?;
    store.guarded()?;
    Ok(found)
}

/// As [`verify`], without a look at pages, indexes and guards.
pub(crate) fn content(store: &dyn Store) -> Result<Verified, Error> {
    // The end comes first: whatever it needs stands by then.
    let (last, _) = store.last()?;
    let schemas = registry(store)?;
    let archive = store.archive()?;
    let audit = Audit::new(store, archive.as_ref(), schemas.iter().copied().collect());
    let found = rows(store, archive.as_ref(), audit, last)?;
    if let Some(archive) = &archive {
        sealed(archive, &found.head, store)?;
    }
    let every = store.manifests()?.into_iter().map(|(hash, _)| hash);
    let (artifacts, artifact_bytes) = blobs(store, every, true)?;
    Ok(Verified {
        envelopes: found.head.pos,
        head: found.head,
        topics: found.topics,
        schemas: schemas.len() as u64,
        artifacts,
        artifact_bytes,
    })
}

/// Recomputes what has come after a head that was kept, and the artifacts that it names.
///
/// The pages of the file and the artifacts of what stood before are not looked at: that is for [`verify`]. That nothing
/// was cut, and that the guards of the past are in their place, is.
///
/// # Errors
/// As [`verify`] and [`check`]. [`ErrorKind::Misuse`] for an archive, to which nothing comes.
pub fn verify_since(store: &dyn Store, since: &Head, past: Past) -> Result<Verified, Error> {
    let (last, _) = store.last()?;
    let schemas = registry(store)?;
    grows(store)?;
    match past {
        Past::Chained => {
            let head = chain(store, Head::default(), since.pos.min(last))?;
            begins(since, head, last)?;
        }
        Past::Trusted if last < since.pos => return Err(cut(since, last)),
        Past::Trusted => {}
    }
    let mut audit = Audit::new(store, None, schemas.iter().copied().collect());
    if since.pos > 0 {
        let row = store.page(&Select::All, Range::at(since.pos))?.rows.pop();
        let row = row.ok_or_else(|| {
            let why = format!(
                "the envelope at pos {}, of which the head {since} was taken, is missing",
                since.pos
            );
            Error::new(ErrorKind::Corrupt, why)
        })?;
        audit = audit.after(*since, &row)?;
    }
    let found = rows(store, None, audit, last)?;
    let (artifacts, artifact_bytes) = blobs(store, found.named.into_iter(), false)?;
    store.guarded()?;
    Ok(Verified {
        envelopes: found.head.pos - since.pos,
        head: found.head,
        topics: found.topics,
        schemas: schemas.len() as u64,
        artifacts,
        artifact_bytes,
    })
}

/// The registry of a store with this program's root.
fn registry(store: &dyn Store) -> Result<BTreeSet<SchemaRef>, Error> {
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
    Ok(schemas.iter().map(|schema| schema.reference()).collect())
}

fn rows(store: &dyn Store, archive: Option<&Archive>, mut audit: Audit<'_>, last: u64) -> Result<Found, Error> {
    let range = (audit.next(), last);
    pages::each(
        store,
        range,
        |rows| examine::page(store, archive, rows),
        |row| {
            if audit.admits(row.pos) {
                audit.take(row)
            } else {
                Err(missing(store, &audit, row.pos))
            }
        },
    )?;
    let pos = audit.next();
    if pos <= last && !audit.admits(last + 1) {
        let why = format!(
            "it and those up to pos {last} cannot be reached; the log can be read up to pos {}",
            pos - 1
        );
        return Err(told(&Bad {
            pos,
            topic: None,
            seq: None,
            id: None,
            why,
        }));
    }
    Ok(audit.found())
}

/// Whether an archive holds what it was sealed with.
fn sealed(archive: &Archive, found: &Head, store: &dyn Store) -> Result<(), Error> {
    let whole = archive.part.topics.is_none() && archive.part.from == 1;
    let mut registry = Digest::stream();
    store
        .schemas()?
        .iter()
        .for_each(|schema| register(&mut registry, schema));
    let why = if registry.finish() != archive.registry {
        "this archive was sealed with other schemas: what one of them says about itself was changed".to_owned()
    } else if *found != archive.seal {
        format!(
            "this archive was sealed as {}, and its envelopes make {found}: some are missing, or others",
            archive.seal
        )
    } else if whole && *found != archive.head {
        format!(
            "this archive says that it holds all of a store whose head was {}, and its envelopes make {found}",
            archive.head
        )
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Corrupt, why))
}

/// Names an envelope that is not there: the log goes on after it, and so does its topic unless it was the last of it.
fn missing(store: &dyn Store, audit: &Audit<'_>, next: u64) -> Error {
    let (pos, upto) = (audit.next(), next - 1);
    let goes_on = format!("the log goes on with pos {next}");
    let (why, lost) = match gap(store, audit, next) {
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

/// The first envelope that a topic lacks further on. Damage there ends the search, and is told once this is mended.
fn gap(store: &dyn Store, audit: &Audit<'_>, next: u64) -> Option<(Topic, u64)> {
    let (mut ahead, mut range) = (
        audit.seqs(),
        Range {
            from: next,
            ..Range::ALL
        },
    );
    loop {
        let page = store.page(&Select::All, range).ok()?;
        for Row { topic, seq, .. } in page.rows {
            let last = ahead.insert(examine::key_of(&topic), seq);
            // After a head that was only trusted, a topic may be met here for the first time.
            let first = if audit.is_whole() { Some(0) } else { None };
            if let Some(last) = last.or(first)
                && seq != last + 1
            {
                return Some((topic, last + 1));
            }
        }
        range.from = page.next?;
    }
}

/// Recomputes artifacts, chunk by chunk.
fn blobs(store: &dyn Store, hashes: impl Iterator<Item = Digest>, ours: bool) -> Result<(u64, u64), Error> {
    let (mut count, mut bytes) = (0, 0);
    for hash in hashes {
        let Some(manifest) = store.manifest(&hash)? else {
            if ours {
                return Err(damaged(&hash, "its manifest is missing"));
            }
            // What an envelope names may lie elsewhere; what must not was looked for.
            continue;
        };
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
