//! From draft to an envelope that is only delivered. Nothing is written out: its text, and so its id, is made when
//! somebody asks for it.

use super::{Artifact, Author, Body, Draft, Envelope, Header, Headers, header::Reserved};
use crate::{Error, ErrorKind, Json, Millis, Result, SchemaUse, Topic, limits};

/// An ephemeral envelope but for its `seq`.
#[derive(Debug)]
pub(crate) struct Passing {
    pub(crate) topic: Topic,
    author: Author,
    at: Millis,
    headers: Headers,
    body: Body,
    /// The most bytes that its record may have.
    pub(crate) bytes: usize,
}

/// Bytes that a text may have in a record, where each of its bytes is escaped.
fn escaped(text: &str) -> usize {
    6 * text.len() + 2
}

/// Whether a value is certainly not too deep so many levels down: no text nests deeper than it has brackets.
fn fits(value: &Json, level: usize) -> Result<(), Error> {
    let brackets = value
        .as_str()
        .bytes()
        .filter(|byte| matches!(byte, b'[' | b'{'))
        .count();
    if brackets + level <= limits::JSON_DEPTH_MAX {
        return Ok(());
    }
    value.fits_at(level)
}

fn check(draft: &Draft) -> Result<(), Error> {
    let count = draft.headers.len() + usize::from(draft.key.is_some());
    if count > limits::HEADERS_MAX {
        let why = format!("{count} headers are more than {}", limits::HEADERS_MAX);
        return Err(Error::new(ErrorKind::TooLarge, why));
    }
    // Where they stand in a record, which is itself JSON that must be read again.
    draft.headers.iter().try_for_each(|header| fits(&header.value, 3))?;
    draft.payload.iter().try_for_each(|payload| fits(payload, 2))
}

impl Passing {
    /// Holds a draft to the bounds of a record.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] above one of them.
    pub(crate) fn new(draft: Draft, now: Millis) -> Result<Self, Error> {
        check(&draft).map_err(|error| error.context(format!("draft `{}` for topic {}", draft.kind, draft.topic)))?;
        let Draft {
            topic,
            author,
            kind,
            payload,
            payload_schema,
            contract,
            artifacts,
            headers,
            key,
            ..
        } = draft;
        let own = key.map(|key| Json::of(&key)).transpose()?.map(|value| Header {
            key: Reserved::Key.key().into(),
            value,
            author: author.clone(),
            at: now,
            schema: None,
        });
        let headers = headers.into_iter().map(|header| Header {
            key: header.key,
            value: header.value,
            author: header.author.unwrap_or_else(|| author.clone()),
            at: now,
            schema: header.schema.as_deref().map(SchemaUse::reference),
        });
        let headers = Headers(headers.chain(own).collect());
        let body = Body {
            kind,
            payload,
            payload_schema: payload_schema.as_deref().map(SchemaUse::reference),
            contract: contract.as_deref().map(SchemaUse::reference),
            artifacts,
        };
        let bytes = most(&topic, &author, &headers, &body);
        let passing = Self {
            topic,
            author,
            at: now,
            headers,
            body,
            bytes,
        };
        if bytes > limits::RECORD_BYTES_MAX {
            passing.measured()
        } else {
            Ok(passing)
        }
    }

    /// Written out, to see how large it is.
    fn measured(self) -> Result<Self, Error> {
        let envelope = self.at(u64::MAX);
        let bytes = envelope.record()?.len();
        if bytes > limits::RECORD_BYTES_MAX {
            let (max, kind, topic) = (limits::RECORD_BYTES_MAX, &envelope.body.kind, &envelope.topic);
            let why = format!(
                "`{kind}` for topic {topic} has {bytes} bytes, more than {max}: use an artifact for the large value"
            );
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        let Envelope {
            topic,
            author,
            at,
            headers,
            body,
            ..
        } = envelope;
        Ok(Self {
            topic,
            author,
            at,
            headers,
            body,
            bytes,
        })
    }

    /// The most bytes that the record of an envelope may have.
    pub(crate) fn most_bytes(of: &Envelope) -> usize {
        most(&of.topic, &of.author, &of.headers, &of.body)
    }

    /// The envelope, at its place.
    pub(crate) fn at(self, seq: u64) -> Envelope {
        Envelope::ephemeral(self.topic, seq, self.author, self.at, self.headers, self.body)
    }
}

fn most(topic: &Topic, author: &Author, headers: &Headers, body: &Body) -> usize {
    const FRAME: usize = 256;
    const PART: usize = 192;
    let header = |header: &Header| PART + escaped(&header.key) + escaped(header.author.as_str()) + header.value.len();
    let artifact = |artifact: &Artifact| PART + escaped(&artifact.name) + artifact.kind.as_deref().map_or(0, escaped);
    FRAME
        + escaped(topic.as_str())
        + escaped(author.as_str())
        + escaped(body.kind.as_str())
        + 2 * PART
        + body.payload.as_ref().map_or(0, Json::len)
        + headers.iter().map(header).sum::<usize>()
        + body.artifacts.iter().map(artifact).sum::<usize>()
}
