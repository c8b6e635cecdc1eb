//! From draft to stored text. A caller canonicalises body and headers; the writer splices what only the commit knows.

use std::sync::Arc;

use serde::Serialize;

use super::{Artifact, Author, Cause, Draft, Kind, Parent, draft::DraftHeader, header::Reserved};
use crate::{
    Deferred, Digest, ENVELOPE_CONTEXT, EnvelopeRef, Error, ErrorKind, Json, Millis, Receipt, Result, SchemaRef, Topic,
    limits,
};

/// A draft in canonical parts, ready for the writer.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) topic: Topic,
    pub(crate) kind: Kind,
    pub(crate) key: Option<Arc<str>>,
    pub(crate) parent: Option<Parent>,
    pub(crate) cause: Option<Cause>,
    author: Json,
    body: Json,
    /// Canonical birth headers but for `caused-by`, which the writer adds last.
    headers: Vec<Json>,
    /// Keys and values of `headers`, for the comparison of a repeated batch.
    said: Vec<(String, Json)>,
    /// When the headers were made.
    pub(crate) born: Millis,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeaderForm<'a, V: Serialize> {
    at: Millis,
    author: &'a Author,
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<SchemaRef>,
    value: &'a V,
}

#[derive(Serialize)]
struct BodyForm<'a> {
    artifacts: &'a [Artifact],
    #[serde(rename = "payloadJSON", skip_serializing_if = "Option::is_none")]
    payload: Option<&'a Json>,
    #[serde(rename = "payloadSchema", skip_serializing_if = "Option::is_none")]
    payload_schema: Option<SchemaRef>,
    #[serde(rename = "schema", skip_serializing_if = "Option::is_none")]
    contract: Option<SchemaRef>,
    #[serde(rename = "type")]
    kind: &'a Kind,
}

impl Prepared {
    /// Canonicalises a draft, with the batch's idempotency key and the owner's epoch as birth headers.
    pub(crate) fn new(draft: Draft, idempotency: Option<&str>, epoch: Option<u64>, now: Millis) -> Result<Self, Error> {
        let here = format!("draft `{}` for topic {}", draft.kind, draft.topic);
        Self::form(draft, idempotency, epoch, now).map_err(|error| error.context(here))
    }

    fn form(draft: Draft, idempotency: Option<&str>, epoch: Option<u64>, now: Millis) -> Result<Self, Error> {
        let mut list = draft.headers;
        let own = |key: Reserved, value| DraftHeader {
            key: key.key().into(),
            value,
            schema: None,
            author: None,
        };
        if let Some(key) = &draft.key {
            list.push(own(Reserved::Key, Json::of(key)?));
        }
        if let Some(key) = idempotency {
            list.push(own(Reserved::IdempotencyKey, Json::of(key)?));
        }
        if let Some(epoch) = epoch {
            list.push(own(Reserved::Epoch, Json::of(&epoch)?));
        }
        if list.len() + usize::from(draft.cause.is_some()) > limits::HEADERS_MAX {
            let why = format!("{} headers are more than {}", list.len(), limits::HEADERS_MAX);
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        let headers = list.iter().map(|header| {
            Json::of(&HeaderForm {
                at: now,
                author: header.author.as_ref().unwrap_or(&draft.author),
                key: &header.key,
                schema: header.schema.as_ref().map(|schema| schema.reference()),
                value: &header.value,
            })
        });
        let headers = headers.collect::<Result<Vec<_>, _>>()?;
        // Where they stand in a record, which is itself JSON that must be read again.
        headers.iter().try_for_each(|header| header.fits_at(2))?;
        let body = Json::of(&BodyForm {
            artifacts: &draft.artifacts,
            payload: draft.payload.as_ref(),
            payload_schema: draft.payload_schema.as_ref().map(|schema| schema.reference()),
            contract: draft.contract.as_ref().map(|contract| contract.reference()),
            kind: &draft.kind,
        })?;
        body.fits_at(1)?;
        Ok(Self {
            author: Json::of(&draft.author)?,
            body,
            headers,
            said: list.into_iter().map(|header| (header.key, header.value)).collect(),
            born: now,
            topic: draft.topic,
            kind: draft.kind,
            key: draft.key.map(Into::into),
            parent: draft.parent,
            cause: draft.cause,
        })
    }

    /// The record and its id, at its place.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] above the bound of a record.
    pub(crate) fn seal(
        &self,
        at: Millis,
        seq: u64,
        parent: Option<u64>,
        cause: Option<&EnvelopeRef>,
    ) -> Result<(String, Digest), Error> {
        use std::fmt::Write as _;
        let topic = Json::of(&self.topic)?;
        let room = self.body.len() + self.headers.iter().map(|h| h.len() + 1).sum::<usize>() + topic.len() + 256;
        let mut record = String::with_capacity(room);
        // Writing to a string cannot fail.
        let _ = write!(
            record,
            "{{\"at\":{at},\"author\":{},\"body\":{},\"headers\":[",
            self.author, self.body
        );
        for (place, header) in self.headers.iter().enumerate() {
            record.push_str(if place == 0 { "" } else { "," });
            record.push_str(header.as_str());
        }
        if let Some(cause) = cause {
            let value = Json::of(cause)?;
            let comma = if self.headers.is_empty() { "" } else { "," };
            let (born, author) = (self.born, &self.author);
            let _ = write!(
                record,
                "{comma}{{\"at\":{born},\"author\":{author},\"key\":\"caused-by\",\"value\":{value}}}"
            );
        }
        record.push(']');
        if let Some(parent) = parent {
            let _ = write!(record, ",\"parentSeq\":{parent}");
        }
        let _ = write!(record, ",\"seq\":{seq},\"topic\":{topic}}}");
        if record.len() > limits::RECORD_BYTES_MAX {
            let (len, max) = (record.len(), limits::RECORD_BYTES_MAX);
            let why = format!(
                "`{}` for topic {} has {len} bytes, more than {max}: use an artifact for the large value",
                self.kind, self.topic
            );
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        let id = Digest::derive(ENVELOPE_CONTEXT, record.as_bytes());
        Ok((record, id))
    }
}

/// What is compared when a batch comes again under the same idempotency key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordedBatch(Vec<Said>);

#[derive(Debug, PartialEq, Eq)]
struct Said {
    topic: Topic,
    body: Json,
    headers: Vec<(String, Json)>,
    parent: Option<Place>,
    cause: Option<Place>,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Seq(u64),
    Envelope(EnvelopeRef),
    /// Named by a draft, and not to be found: no stored batch says that.
    Nowhere,
}

impl RecordedBatch {
    /// What a new batch says, its indexes read as places in the `stored` batch that it may repeat. Its epoch is left
    /// out: the same content may come from a later owner.
    pub(crate) fn of_drafts(drafts: &[Prepared], stored: &[super::Envelope]) -> Self {
        Self(drafts.iter().map(|draft| said(draft, stored)).collect())
    }

    /// What a stored batch said, in its order.
    pub(crate) fn of_envelopes(envelopes: &[super::Envelope]) -> Result<Self, Error> {
        let said = envelopes.iter().map(|envelope| {
            let others = [Reserved::CausedBy.key(), Reserved::Epoch.key()];
            let headers = envelope.headers.iter().filter(|header| !others.contains(&&*header.key));
            Ok(Said {
                topic: envelope.topic.clone(),
                body: Json::of(&envelope.body)?,
                headers: headers
                    .map(|header| (header.key.clone(), header.value.clone()))
                    .collect(),
                parent: envelope.parent_seq.map(Place::Seq),
                cause: envelope.cause().map(Place::Envelope),
            })
        });
        Ok(Self(said.collect::<Result<_, Error>>()?))
    }
}

/// Where an earlier batch of the process stands, or will with the commit that is under way.
fn placed(deferred: &Deferred) -> Option<Receipt> {
    deferred.outcome().and_then(Result::ok)
}

fn said(draft: &Prepared, stored: &[super::Envelope]) -> Said {
    let headers = draft.said.iter().filter(|(key, _)| key != Reserved::Epoch.key());
    let parent = draft.parent.as_ref().map(|parent| {
        let seq = match parent {
            Parent::Index(index) => stored.get(*index).map(|envelope| envelope.seq),
            Parent::Seq(seq) => Some(*seq),
            Parent::Deferred(deferred) => placed(deferred).map(|receipt| receipt.seq),
        };
        seq.map_or(Place::Nowhere, Place::Seq)
    });
    let cause = draft.cause.as_ref().map(|cause| {
        let reference = match cause {
            Cause::Index(index) => stored.get(*index).map(super::Envelope::reference),
            Cause::Envelope(reference) => Some(reference.clone()),
            Cause::Deferred(deferred) => placed(deferred).map(|receipt| EnvelopeRef {
                topic: receipt.topic,
                seq: receipt.seq,
                id: receipt.id,
            }),
        };
        reference.map_or(Place::Nowhere, Place::Envelope)
    });
    Said {
        topic: draft.topic.clone(),
        body: draft.body.clone(),
        headers: headers.cloned().collect(),
        parent,
        cause,
    }
}
