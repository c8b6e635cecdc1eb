//! The fold behind `verify`: one row after the other, against all that stood before it.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use super::{
    bad::{Bad, told},
    head::Head,
};
use crate::{
    Digest, ENVELOPE_CONTEXT, Envelope, Error, Json, Millis, Result, SchemaRef, Topic,
    store::{INJECTED, Row, Store},
};

/// What is known of the log up to a row.
pub(super) struct Audit {
    head: Head,
    at: Millis,
    topics: BTreeMap<Topic, Head>,
    /// The idempotency key that the last row stood under.
    batch: Option<String>,
    schemas: HashSet<SchemaRef>,
}

/// Why a row is bad, or why nothing could be read.
enum Fault {
    Bad(String),
    Unread(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Unread(error)
    }
}

impl Audit {
    pub(super) fn new(schemas: HashSet<SchemaRef>) -> Self {
        Self {
            head: Head::default(),
            at: Millis(i64::MIN),
            topics: BTreeMap::new(),
            batch: None,
            schemas,
        }
    }

    /// The `pos` of the row that comes next.
    pub(super) fn next(&self) -> u64 {
        self.head.pos + 1
    }

    /// The last `seq` of each topic.
    pub(super) fn seqs(&self) -> BTreeMap<Topic, u64> {
        self.topics
            .iter()
            .map(|(topic, head)| (topic.clone(), head.pos))
            .collect()
    }

    pub(super) fn heads(self) -> (Head, BTreeMap<Topic, Head>) {
        (self.head, self.topics)
    }

    /// Takes the next row, or says what is wrong with it.
    pub(super) fn take(&mut self, store: &dyn Store, row: &Row) -> Result<(), Error> {
        let envelope = record(row).and_then(|envelope| {
            columns(row, &envelope)?;
            self.place(row)?;
            self.batch(row, &envelope)?;
            references(store, row, &envelope)?;
            evidence(store, &envelope)?;
            self.schemas(&envelope)?;
            Ok(envelope)
        });
        match envelope {
            Ok(envelope) => {
                self.head = self.head.then(row.id);
                self.at = row.at;
                let topic = self.topics.entry(row.topic.clone()).or_default();
                *topic = topic.then(row.id);
                self.batch = envelope.headers.decode("idempotency-key");
                Ok(())
            }
            Err(Fault::Unread(error)) => Err(error),
            Err(Fault::Bad(why)) => Err(told(&Bad {
                pos: row.pos,
                topic: Some(row.topic.clone()),
                seq: Some(row.seq),
                id: Some(row.id),
                why,
            })),
        }
    }

    fn place(&self, row: &Row) -> Result<(), Fault> {
        let last = self.topics.get(&row.topic).map_or(0, |head| head.pos);
        says("the next seq of its topic", &(last + 1), &row.seq)?;
        if row.at < self.at {
            let (before, at) = (self.at, row.at);
            return Err(Fault::Bad(format!(
                "its at {at} is earlier than {before}, that of the envelope before it"
            )));
        }
        Ok(())
    }

    /// The key of a batch stands on each envelope of it, and in the column of the first.
    fn batch(&self, row: &Row, envelope: &Envelope) -> Result<(), Fault> {
        let key: Option<String> = envelope.headers.decode("idempotency-key");
        let goes_on = key.is_some() && key == self.batch;
        let wanted = key.as_deref().filter(|_| !goes_on);
        says(
            "the column `idempotency`",
            &Shown(wanted),
            &Shown(row.idempotency.as_deref()),
        )
    }

    fn schemas(&self, envelope: &Envelope) -> Result<(), Fault> {
        let body = [envelope.body.payload_schema, envelope.body.contract];
        let headers = envelope.headers.iter().map(|header| header.schema);
        for schema in headers.chain(body).flatten() {
            if !self.schemas.contains(&schema) {
                return Err(Fault::Bad(format!(
                    "it names schema {}, which is not in the registry",
                    schema.0
                )));
            }
        }
        Ok(())
    }
}

fn record(row: &Row) -> Result<Envelope, Fault> {
    let found = Digest::derive(ENVELOPE_CONTEXT, row.record.as_bytes());
    if found != row.id {
        return Err(Fault::Bad(format!(
            "its record was changed, or its id: the record hashes to {found}"
        )));
    }
    let canonical = Json::parse(&row.record).map_err(|error| Fault::Bad(format!("its record is no JSON: {error}")))?;
    if canonical.as_str() != &*row.record {
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

fn references(store: &dyn Store, row: &Row, envelope: &Envelope) -> Result<(), Fault> {
    if let Some(parent) = envelope.parent_seq {
        if parent == 0 || parent >= row.seq {
            return Err(Fault::Bad(format!("its parent seq {parent} does not stand before it")));
        }
        if row.kind == INJECTED
            && store
                .row(&row.topic, parent)?
                .is_some_and(|target| target.kind == INJECTED)
        {
            return Err(Fault::Bad(format!("its target seq {parent} is itself an injection")));
        }
    }
    let Some(cause) = envelope.cause() else {
        return says("the column `cause`", &Shown(None::<u64>), &Shown(row.cause));
    };
    let found = store
        .row(&cause.topic, cause.seq)?
        .filter(|found| found.id == cause.id && found.pos < row.pos);
    let Some(found) = found else {
        let (topic, seq, id) = (&cause.topic, cause.seq, cause.id);
        return Err(Fault::Bad(format!(
            "its cause {topic} seq {seq} (id {id}) does not stand before it"
        )));
    };
    says("the column `cause`", &Shown(Some(found.pos)), &Shown(row.cause))
}

/// The families of types whose artifacts are always blobs of this store. What a user's envelope names may lie elsewhere.
const OURS: [&str; 5] = ["orchestration.", "package.", "step.", "thread.", "artifact."];

fn evidence(store: &dyn Store, envelope: &Envelope) -> Result<(), Fault> {
    let kind = envelope.body.kind.as_str();
    if !OURS.iter().any(|family| kind.starts_with(family)) {
        return Ok(());
    }
    for artifact in &envelope.body.artifacts {
        if let Some(hash) = &artifact.hash
            && store.manifest(hash)?.is_none()
        {
            let name = &artifact.name;
            return Err(Fault::Bad(format!("its artifact `{name}` ({hash}) is missing")));
        }
    }
    Ok(())
}

#[derive(PartialEq)]
struct Shown<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => write!(f, "`{value}`"),
            None => f.write_str("nothing"),
        }
    }
}

fn says<T: PartialEq + fmt::Display>(what: &str, wanted: &T, found: &T) -> Result<(), Fault> {
    if wanted == found {
        return Ok(());
    }
    Err(Fault::Bad(format!("{what} should say {wanted}, and says {found}")))
}
