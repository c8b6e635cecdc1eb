//! What happens to one batch inside the write transaction. The same for every store, and free of I/O of its own.

use std::sync::Arc;

use super::{
    Batch, Expectation, Receipt, Row,
    tables::{Work, no_tables},
};
use crate::{
    Cause, Digest, Envelope, EnvelopeRef, Error, ErrorKind, Millis, Parent, Result, Schema, Topic,
    envelope::{Kind, Prepared, RecordedBatch},
};

/// A store inside its write transaction. Reads see what the transaction has written.
pub(crate) trait Transaction {
    /// The last `pos` and its `at`; `(0, Millis(0))` in an empty store.
    fn last(&mut self) -> Result<(u64, Millis), Error>;
    /// The last `seq` of a topic; 0 if it holds nothing.
    fn head(&mut self, topic: &Topic) -> Result<u64, Error>;
    /// The `seq` of the last envelope of a topic with this `key`.
    fn keyed(&mut self, topic: &Topic, key: &str) -> Result<Option<u64>, Error>;
    /// The newest epoch of an owned name; 0 if it was never owned.
    fn epoch(&mut self, name: &str) -> Result<u64, Error>;
    /// `pos`, id and type of an envelope.
    fn find(&mut self, topic: &Topic, seq: u64) -> Result<Option<(u64, Digest, Kind)>, Error>;
    /// The envelopes of the batch that carries this idempotency key, in order.
    fn batch(&mut self, key: &str) -> Result<Option<Vec<Envelope>>, Error>;
    /// Registers a schema; one that is there already stays.
    fn register(&mut self, schema: &Schema) -> Result<(), Error>;
    /// Runs work of the program on its own tables. If it fails, the transaction must be rolled back.
    fn work(&mut self, work: Work) -> Result<Prepared, Error> {
        drop(work);
        Err(no_tables())
    }
    /// Writes a row.
    fn insert(&mut self, row: &Row) -> Result<(), Error>;
}

/// The type of a later header injection, whose target may not be one itself.
pub(crate) const INJECTED: &str = "header.injected";

/// What sealing a batch gave.
pub(crate) struct Sealed {
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) rows: Vec<Arc<Row>>,
}

/// Checks a batch and writes it, or refuses it and writes nothing.
///
/// One with work of the program may be refused after that has written: the transaction must then be rolled back.
pub(crate) fn batch(txn: &mut dyn Transaction, batch: &mut Batch, now: Millis) -> Result<Sealed, Error> {
    if let Some(key) = &batch.idempotency
        && let Some(stored) = txn.batch(key)?
    {
        return repeated(key, &stored, batch).map(|receipts| Sealed {
            receipts,
            rows: Vec::new(),
        });
    }
    check(txn, batch)?;
    if let Some(work) = batch.work.take() {
        batch.drafts.push(txn.work(work)?);
    }
    let rows = rows(txn, batch, now)?;
    for schema in &batch.schemas {
        txn.register(schema)?;
    }
    for row in &rows {
        txn.insert(row)?;
    }
    Ok(Sealed {
        receipts: rows.iter().map(|row| receipt(row, false)).collect(),
        rows,
    })
}

fn receipt(row: &Row, deduplicated: bool) -> Receipt {
    Receipt {
        topic: row.topic.clone(),
        seq: row.seq,
        id: row.id,
        pos: row.pos,
        at: row.at,
        deduplicated,
    }
}

fn repeated(key: &str, stored: &[Envelope], batch: &Batch) -> Result<Vec<Receipt>, Error> {
    if RecordedBatch::of_envelopes(stored)? == RecordedBatch::of_drafts(&batch.drafts, stored) {
        let receipts = stored.iter().map(|envelope| Receipt {
            topic: envelope.topic.clone(),
            seq: envelope.seq,
            id: envelope.id(),
            pos: envelope.pos,
            at: envelope.at,
            deduplicated: true,
        });
        return Ok(receipts.collect());
    }
    let first = stored
        .first()
        .map(|first| format!("{} seq {} (id {})", first.topic, first.seq, first.id()));
    let first = first.unwrap_or_default();
    Err(Error::new(
        ErrorKind::IdempotencyConflict,
        format!("idempotency key `{key}` stands for other content, first written as {first}: use another key"),
    ))
}

fn check(txn: &mut dyn Transaction, batch: &Batch) -> Result<(), Error> {
    if let Some((name, epoch)) = &batch.owner {
        let newest = txn.epoch(name)?;
        if newest != *epoch {
            return Err(Error::new(
                ErrorKind::Fenced,
                format!("`{name}` is owned under epoch {newest} now; this owner's epoch {epoch} may no longer write"),
            ));
        }
    }
    for expectation in &batch.expectations {
        let (what, wanted, found) = match expectation {
            Expectation::Head(topic, wanted) => (format!("head of {topic}"), Some(*wanted), Some(txn.head(topic)?)),
            Expectation::Key(topic, key, wanted) => {
                (format!("key `{key}` of {topic}"), *wanted, txn.keyed(topic, key)?)
            }
            Expectation::Epoch(name, wanted) => (format!("epoch of `{name}`"), Some(*wanted), Some(txn.epoch(name)?)),
        };
        if wanted != found {
            let show = |seq: Option<u64>| seq.map_or("absent".to_owned(), |seq| seq.to_string());
            return Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "expected {what} to be {}, found {}: read again and decide anew",
                    show(wanted),
                    show(found)
                ),
            ));
        }
    }
    Ok(())
}

fn rows(txn: &mut dyn Transaction, batch: &Batch, now: Millis) -> Result<Vec<Arc<Row>>, Error> {
    let (last, at) = txn.last()?;
    // The clock may have gone back since the headers were made, and none of them is later than its envelope.
    let born = batch.drafts.iter().map(|draft| draft.born).max();
    let at = at.max(now).max(born.unwrap_or(now));
    let mut rows: Vec<Arc<Row>> = Vec::with_capacity(batch.drafts.len());
    for (index, draft) in batch.drafts.iter().enumerate() {
        let earlier = rows
            .iter()
            .rev()
            .find(|row| row.topic == draft.topic)
            .map(|row| row.seq);
        let seq = earlier.map_or_else(|| txn.head(&draft.topic), Ok)? + 1;
        let parent = parent(txn, draft, seq, &rows)?;
        let cause = cause(txn, draft, &rows)?;
        let (record, id) = draft.seal(at, seq, parent, cause.as_ref().map(|(_, reference)| reference))?;
        rows.push(Arc::new(Row {
            pos: last + 1 + index as u64,
            topic: draft.topic.clone(),
            seq,
            kind: draft.kind.clone(),
            at,
            cause: cause.map(|(pos, _)| pos),
            key: draft.key.clone(),
            idempotency: batch.idempotency.clone().filter(|_| index == 0),
            id,
            record: record.into(),
        }));
    }
    Ok(rows)
}

fn malformed(draft: &Prepared, why: &str) -> Error {
    Error::new(
        ErrorKind::Malformed,
        format!("draft `{}` for topic {}: {why}", draft.kind, draft.topic),
    )
}

/// Where a draft's parent stands: earlier, in the same topic, and no injection if the draft is one.
fn parent(txn: &mut dyn Transaction, draft: &Prepared, seq: u64, rows: &[Arc<Row>]) -> Result<Option<u64>, Error> {
    let Some(parent) = &draft.parent else { return Ok(None) };
    let (at, kind) = match parent {
        Parent::Index(index) => {
            let row = rows.get(*index).filter(|row| row.topic == draft.topic);
            let row = row.ok_or_else(|| {
                malformed(
                    draft,
                    &format!("its parent, draft {index} of the batch, is no earlier draft for the same topic"),
                )
            })?;
            (row.seq, Some(row.kind.clone()))
        }
        Parent::Seq(at) if *at == 0 || *at >= seq => {
            return Err(malformed(
                draft,
                &format!("its parent seq {at} does not stand before it (its own is {seq})"),
            ));
        }
        Parent::Seq(at) => (*at, None),
        Parent::Deferred(deferred) => {
            let place = deferred.outcome().transpose()?;
            let place = place.filter(|place| place.topic == draft.topic);
            let place =
                place.ok_or_else(|| malformed(draft, "its deferred parent is not in the same topic and store"))?;
            (place.seq, None)
        }
    };
    if draft.kind == INJECTED {
        let here = rows
            .iter()
            .find(|row| row.topic == draft.topic && row.seq == at)
            .map(|row| row.kind.clone());
        let target = match kind.or(here) {
            Some(kind) => Some(kind),
            None => txn.find(&draft.topic, at)?.map(|(_, _, kind)| kind),
        };
        if target.is_none_or(|kind| kind == INJECTED) {
            let why = format!("its target seq {at} is itself an injection: inject into what that one targets");
            return Err(malformed(draft, &why));
        }
    }
    Ok(Some(at))
}

fn cause(txn: &mut dyn Transaction, draft: &Prepared, rows: &[Arc<Row>]) -> Result<Option<(u64, EnvelopeRef)>, Error> {
    let Some(cause) = &draft.cause else { return Ok(None) };
    let reference = match cause {
        Cause::Index(index) => {
            let row = rows.get(*index);
            let row = row.ok_or_else(|| {
                malformed(
                    draft,
                    &format!("its cause, draft {index} of the batch, is no earlier draft"),
                )
            })?;
            return Ok(Some((
                row.pos,
                EnvelopeRef {
                    topic: row.topic.clone(),
                    seq: row.seq,
                    id: row.id,
                },
            )));
        }
        Cause::Deferred(deferred) => {
            let place = deferred.outcome().transpose()?;
            let place = place.ok_or_else(|| malformed(draft, "its deferred cause is not in this store"))?;
            return Ok(Some((
                place.pos,
                EnvelopeRef {
                    topic: place.topic,
                    seq: place.seq,
                    id: place.id,
                },
            )));
        }
        Cause::Envelope(reference) => reference,
    };
    match txn.find(&reference.topic, reference.seq)? {
        Some((pos, id, _)) if id == reference.id => Ok(Some((pos, reference.clone()))),
        Some((_, id, _)) => {
            let (topic, seq, wanted) = (&reference.topic, reference.seq, reference.id);
            Err(malformed(
                draft,
                &format!("its cause {topic} seq {seq} has id {id}, not {wanted}"),
            ))
        }
        None => {
            let (topic, seq) = (&reference.topic, reference.seq);
            Err(malformed(
                draft,
                &format!("its cause {topic} seq {seq} is not in this store"),
            ))
        }
    }
}
