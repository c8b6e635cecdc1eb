//! What one row says by itself and of those before it: everything about it that needs no chain.

use std::{fmt, sync::Arc};

use crate::{
    Digest, ENVELOPE_CONTEXT, Envelope, Error, Json, Millis, Result, SchemaRef, Topic,
    store::{Archive, INJECTED, Range, Row, Select, Store},
};

/// A row that was examined: what the chain needs of it, and what is wrong with it.
pub(super) struct Examined {
    pub(super) pos: u64,
    pub(super) topic: Topic,
    /// Stands for the topic, so that half a million of them take little memory.
    pub(super) key: TopicKey,
    pub(super) seq: u64,
    pub(super) id: Digest,
    pub(super) at: Millis,
    /// The column, and the header.
    pub(super) idempotency: (Option<Arc<str>>, Option<Arc<str>>),
    pub(super) schemas: Vec<SchemaRef>,
    pub(super) artifacts: Vec<Digest>,
    /// The record or a column is bad: it may not even stand where it says.
    pub(super) itself: Option<Fault>,
    /// What it names is bad.
    pub(super) named: Option<Fault>,
}

/// The first half of the hash of a topic's name.
pub(super) type TopicKey = [u8; 16];

pub(super) fn key_of(topic: &Topic) -> TopicKey {
    let mut key = [0; 16];
    key.copy_from_slice(&Digest::content(topic.as_str().as_bytes()).as_bytes()[..16]);
    key
}

/// Why a row is bad, or why nothing could be read.
#[derive(Clone)]
pub(super) enum Fault {
    Bad(String),
    Unread(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Unread(error)
    }
}

/// Examines a page.
pub(super) fn page(store: &dyn Store, archive: Option<&Archive>, rows: &[Row]) -> Vec<Examined> {
    let known = Known { store, archive, rows };
    rows.iter().map(|row| known.examined(row)).collect()
}

/// What is at hand when a page is examined.
struct Known<'a> {
    store: &'a dyn Store,
    archive: Option<&'a Archive>,
    rows: &'a [Row],
}

impl Known<'_> {
    fn examined(&self, row: &Row) -> Examined {
        let mut examined = Examined {
            pos: row.pos,
            topic: row.topic.clone(),
            key: key_of(&row.topic),
            seq: row.seq,
            id: row.id,
            at: row.at,
            idempotency: (row.idempotency.clone(), None),
            schemas: Vec::new(),
            artifacts: Vec::new(),
            itself: None,
            named: None,
        };
        let envelope = record(row).and_then(|envelope| columns(row, &envelope).map(|()| envelope));
        match envelope {
            Err(fault) => examined.itself = Some(fault),
            Ok(envelope) => {
                let body = [envelope.body.payload_schema, envelope.body.contract];
                let headers = envelope.headers.iter().map(|header| header.schema);
                examined.schemas.extend(headers.chain(body).flatten());
                let named = envelope.body.artifacts.iter().filter_map(|artifact| artifact.hash);
                examined.artifacts.extend(named);
                examined.idempotency.1 = envelope.headers.decode::<String>("idempotency-key").map(Into::into);
                examined.named = self
                    .references(row, &envelope)
                    .and_then(|()| self.evidence(&envelope))
                    .err();
            }
        }
        examined
    }

    fn references(&self, row: &Row, envelope: &Envelope) -> Result<(), Fault> {
        if let Some(parent) = envelope.parent_seq {
            if parent == 0 || parent >= row.seq {
                return Err(Fault::Bad(format!("its parent seq {parent} does not stand before it")));
            }
            if row.kind == INJECTED
                && self
                    .store
                    .row(&row.topic, parent)?
                    .is_some_and(|target| target.kind == INJECTED)
            {
                return Err(Fault::Bad(format!("its target seq {parent} is itself an injection")));
            }
        }
        let Some(cause) = envelope.cause() else {
            return says("the column `cause`", &Shown(None::<u64>), &Shown(row.cause));
        };
        let stands = |found: &Row| {
            (&found.topic, found.seq, found.id) == (&cause.topic, cause.seq, cause.id) && found.pos < row.pos
        };
        // Most causes stand shortly before what they caused.
        let near = row
            .cause
            .and_then(|pos| self.rows.binary_search_by_key(&pos, |row| row.pos).ok());
        if near.is_some_and(|near| stands(&self.rows[near])) {
            return Ok(());
        }
        match self.store.row(&cause.topic, cause.seq)? {
            Some(found) if stands(&found) => says("the column `cause`", &Shown(Some(found.pos)), &Shown(row.cause)),
            None if self.left_out(&cause.topic, cause.seq)? => {
                says("the column `cause`", &Shown(None::<u64>), &Shown(row.cause))
            }
            _ => {
                let (topic, seq, id) = (&cause.topic, cause.seq, cause.id);
                Err(Fault::Bad(format!(
                    "its cause {topic} seq {seq} (id {id}) does not stand before it"
                )))
            }
        }
    }

    /// Whether an archive explains why an envelope is not in it: its topic was not exported, or it stood before the part.
    fn left_out(&self, topic: &Topic, seq: u64) -> Result<bool, Fault> {
        let Some(Archive { part, .. }) = self.archive else {
            return Ok(false);
        };
        if !part.holds(topic) {
            return Ok(true);
        }
        let first = Range { limit: 1, ..Range::ALL };
        let first = self.store.page(&Select::Topic(topic.clone()), first)?.rows;
        Ok(part.from > 1 && first.first().is_none_or(|first| seq < first.seq))
    }

    fn evidence(&self, envelope: &Envelope) -> Result<(), Fault> {
        let kind = envelope.body.kind.as_str();
        if !OURS.iter().any(|family| kind.starts_with(family)) {
            return Ok(());
        }
        for artifact in &envelope.body.artifacts {
            if let Some(hash) = &artifact.hash
                && self.store.manifest(hash)?.is_none()
            {
                let name = &artifact.name;
                return Err(Fault::Bad(format!("its artifact `{name}` ({hash}) is missing")));
            }
        }
        Ok(())
    }
}

/// The families of types whose artifacts are always blobs of this store. What a user's envelope names may lie elsewhere.
const OURS: [&str; 5] = ["orchestration.", "package.", "step.", "thread.", "artifact."];

fn record(row: &Row) -> Result<Envelope, Fault> {
    let found = Digest::derive(ENVELOPE_CONTEXT, row.record.as_bytes());
    if found != row.id {
        return Err(Fault::Bad(format!(
            "its record was changed, or its id: the record hashes to {found}"
        )));
    }
    let canonical =
        Json::is_canonical(&row.record).map_err(|error| Fault::Bad(format!("its record is no JSON: {error}")))?;
    if !canonical {
        return Err(Fault::Bad("its record is not in canonical form".to_owned()));
    }
    row.envelope()
        .map_err(|error| Fault::Bad(format!("its record is no envelope: {error}")))
}

fn columns(row: &Row, envelope: &Envelope) -> Result<(), Fault> {
    says("the column `topic`", &envelope.topic, &row.topic)?;
    says("the column `seq`", &envelope.seq, &row.seq)?;
    says("the column `type`", &envelope.body.kind, &row.kind)?;
    says("the column `at`", &envelope.at, &row.at)?;
    says(
        "the column `key`",
        &Shown(envelope.key().as_deref()),
        &Shown(row.key.as_deref()),
    )
}

#[derive(PartialEq)]
pub(super) struct Shown<T>(pub(super) Option<T>);

impl<T: fmt::Display> fmt::Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => write!(f, "`{value}`"),
            None => f.write_str("nothing"),
        }
    }
}

pub(super) fn says<T: PartialEq + fmt::Display>(what: &str, wanted: &T, found: &T) -> Result<(), Fault> {
    if wanted == found {
        return Ok(());
    }
    Err(Fault::Bad(format!("{what} should say {wanted}, and says {found}")))
}
