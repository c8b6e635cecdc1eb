use std::{borrow::Cow, sync::OnceLock};

use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{Artifact, Author, Body, Header, Headers, Kind, body::present};
use crate::{Digest, ENVELOPE_CONTEXT, EnvelopeRef, Error, ErrorKind, Json, Millis, Result, SchemaRef, Topic, limits};

/// A recorded envelope: sealed by its commit, never changed.
///
/// Serialises as the record with its `id`, as verbs and exports show it.
///
/// Only a commit makes one, and none is taken back in: what is appended is a [`Draft`](crate::Draft).
///
/// ```compile_fail,E0308
/// # use neuron::{Envelope, Ledger};
/// async fn rewrite(ledger: &Ledger, mut envelope: Envelope) -> neuron::Result<()> {
///     envelope.seq = 1; // a copy; the log keeps its own
///     ledger.publish(envelope).await?; // expected `Draft`, found `Envelope`
///     Ok(())
/// }
/// ```
///
/// ```compile_fail,E0308
/// # use neuron::{Draft, Fold, fold::Count};
/// fn count(draft: &Draft) {
///     let mut counted = Count.init();
///     let _ = Count.apply(&mut counted, draft); // what has no place yet cannot be folded
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Envelope {
    /// The topic it stands in.
    pub topic: Topic,
    /// Its place in the topic, from 1, without gaps.
    pub seq: u64,
    /// What it responds to in the same topic.
    pub parent_seq: Option<u64>,
    /// Who wrote it.
    pub author: Author,
    /// When it was committed; never earlier than the envelope before it in the store.
    pub at: Millis,
    /// Birth headers. Later injections are envelopes of their own: see [`Ledger::headers`](crate::Ledger::headers).
    pub headers: Headers,
    /// What it says.
    pub body: Body,
    /// Its place in the store, from 1, without gaps; 0 for an ephemeral envelope. No part of the record.
    pub pos: u64,
    /// Known from the start where it was stored; an ephemeral envelope is hashed when somebody asks.
    id: OnceLock<Digest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Record<'a> {
    at: Millis,
    #[serde(borrow)]
    author: Cow<'a, str>,
    #[serde(borrow)]
    body: RecordBody<'a>,
    #[serde(borrow)]
    headers: Vec<RecordHeader<'a>>,
    #[serde(default, deserialize_with = "present")]
    parent_seq: Option<u64>,
    seq: u64,
    #[serde(borrow)]
    topic: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordBody<'a> {
    artifacts: Vec<Artifact>,
    #[serde(borrow, default, deserialize_with = "present", rename = "payloadJSON")]
    payload: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present", rename = "payloadSchema")]
    payload_schema: Option<SchemaRef>,
    #[serde(default, deserialize_with = "present", rename = "schema")]
    contract: Option<SchemaRef>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordHeader<'a> {
    at: Millis,
    author: Author,
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(default, deserialize_with = "present")]
    schema: Option<SchemaRef>,
    #[serde(borrow)]
    value: &'a RawValue,
}

impl Envelope {
    /// Reads a stored record.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the text is not a record.
    pub(crate) fn from_record(pos: u64, id: Digest, record: &str) -> Result<Self, Error> {
        Self::from_known(pos, id, record, None)
    }

    /// Reads the record of an ephemeral envelope that came from elsewhere, and takes nothing for granted.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the text is no canonical record of one.
    pub(crate) fn passed(record: &str) -> Result<Self, Error> {
        let canonical = Json::parse(record)?;
        if canonical.as_str() != record {
            return Err(Error::new(ErrorKind::Malformed, "the record is not in canonical form"));
        }
        let unplaced = Digest::content(record.as_bytes());
        let read = Self::from_record(0, unplaced, record);
        let mut envelope = read.map_err(|error| Error::new(ErrorKind::Malformed, error))?;
        let refuse = |why: &str| Err(Error::new(ErrorKind::Malformed, format!("the record {why}")));
        if envelope.parent_seq.is_some() || envelope.seq == 0 {
            return refuse("stands where no ephemeral envelope stands");
        }
        if record.len() > limits::RECORD_BYTES_MAX || envelope.headers.iter().count() > limits::HEADERS_MAX {
            return refuse("is larger than a record may be");
        }
        envelope.id = OnceLock::new();
        Ok(envelope)
    }

    /// Reads a stored record whose topic and type are very likely these, so that nothing is allocated for them.
    pub(crate) fn from_known(
        pos: u64,
        id: Digest,
        record: &str,
        likely: Option<(&Topic, &Kind)>,
    ) -> Result<Self, Error> {
        let unreadable = |error: &dyn std::fmt::Display| {
            Error::new(
                ErrorKind::Corrupt,
                format!(
                    "the record at pos {pos} (id {id}) is damaged: {error}; `neuron verify` looks at the whole store"
                ),
            )
        };
        let form: Record<'_> = serde_json::from_str(record).map_err(|error| unreadable(&error))?;
        let topic = likely
            .filter(|(topic, _)| topic.as_str() == form.topic)
            .map(|(topic, _)| Ok(topic.clone()));
        let kind = likely
            .filter(|(_, kind)| kind.as_str() == form.body.kind)
            .map(|(_, kind)| Ok(kind.clone()));
        let headers = form.headers.into_iter().map(|header| Header {
            key: header.key.into_owned(),
            value: Json::trusted(header.value.get()),
            author: header.author,
            at: header.at,
            schema: header.schema,
        });
        Ok(Self {
            topic: topic
                .unwrap_or_else(|| Topic::new(&form.topic))
                .map_err(|error| unreadable(&error))?,
            seq: form.seq,
            parent_seq: form.parent_seq,
            id: id.into(),
            author: Author::new(form.author).map_err(|error| unreadable(&error))?,
            at: form.at,
            headers: Headers(headers.collect()),
            body: Body {
                kind: kind
                    .unwrap_or_else(|| Kind::new(&form.body.kind))
                    .map_err(|error| unreadable(&error))?,
                payload: form.body.payload.map(|payload| Json::trusted(payload.get())),
                payload_schema: form.body.payload_schema,
                contract: form.body.contract,
                artifacts: form.body.artifacts,
            },
            pos,
        })
    }

    /// What was never stored: it has no `pos`, and no id until somebody asks.
    pub(crate) fn ephemeral(topic: Topic, seq: u64, author: Author, at: Millis, headers: Headers, body: Body) -> Self {
        Self {
            topic,
            seq,
            parent_seq: None,
            author,
            at,
            headers,
            body,
            pos: 0,
            id: OnceLock::new(),
        }
    }

    /// Hash of the canonical record. That of an ephemeral envelope is computed at the first call.
    pub fn id(&self) -> Digest {
        *self.id.get_or_init(|| {
            // Only a copy that was changed by hand until it nests too deep has no record.
            let record = self.record().ok();
            let text = record.as_ref().map_or("", Json::as_str);
            Digest::derive(ENVELOPE_CONTEXT, text.as_bytes())
        })
    }

    /// The canonical record: what is stored, and what the id is the hash of.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if a number in it has no canonical form, which no sealed envelope has.
    pub fn record(&self) -> Result<Json, Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Form<'a> {
            at: Millis,
            author: &'a Author,
            body: &'a Body,
            headers: &'a Headers,
            #[serde(skip_serializing_if = "Option::is_none")]
            parent_seq: Option<u64>,
            seq: u64,
            topic: &'a Topic,
        }
        Json::of(&Form {
            at: self.at,
            author: &self.author,
            body: &self.body,
            headers: &self.headers,
            parent_seq: self.parent_seq,
            seq: self.seq,
            topic: &self.topic,
        })
    }

    /// Whether the id is the hash of the record.
    ///
    /// # Errors
    /// As [`Envelope::record`].
    pub fn is_intact(&self) -> Result<bool, Error> {
        Ok(Digest::derive(ENVELOPE_CONTEXT, self.record()?.as_str().as_bytes()) == self.id())
    }

    /// What names it, also from another topic.
    pub fn reference(&self) -> EnvelopeRef {
        EnvelopeRef {
            topic: self.topic.clone(),
            seq: self.seq,
            id: self.id(),
        }
    }

    /// What brought it about in another topic.
    pub fn cause(&self) -> Option<EnvelopeRef> {
        self.headers.decode("caused-by")
    }

    /// The indexed birth header `key`.
    pub fn key(&self) -> Option<String> {
        self.headers.decode("key")
    }

    /// The payload, decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] naming topic and seq if it has another shape.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.body
            .decode()
            .map_err(|error| error.context(format!("{} seq {}", self.topic, self.seq)))
    }
}

impl PartialEq for Envelope {
    fn eq(&self, other: &Self) -> bool {
        let place = |of: &Self| (of.pos, of.seq, of.parent_seq, of.at);
        place(self) == place(other)
            && self.topic == other.topic
            && self.author == other.author
            && self.headers == other.headers
            && self.body == other.body
            && self.id() == other.id()
    }
}

impl Eq for Envelope {}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Shown<'a> {
            topic: &'a Topic,
            seq: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            parent_seq: Option<u64>,
            id: Digest,
            author: &'a Author,
            at: Millis,
            headers: &'a Headers,
            body: &'a Body,
        }
        let Self {
            topic,
            seq,
            parent_seq,
            author,
            at,
            headers,
            body,
            pos: _,
            id: _,
        } = self;
        Shown {
            topic,
            seq: *seq,
            parent_seq: *parent_seq,
            id: self.id(),
            author,
            at: *at,
            headers,
            body,
        }
        .serialize(serializer)
    }
}
