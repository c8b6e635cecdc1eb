use std::sync::Arc;

use crate::{Digest, ENVELOPE_CONTEXT, Envelope, Error, ErrorKind, Millis, Pattern, Result, Topic, envelope::Kind};

/// An envelope as a store keeps it: the record, and beside it the columns that are indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Place in the store, from 1, without gaps.
    pub pos: u64,
    /// Topic.
    pub topic: Topic,
    /// Place in the topic, from 1, without gaps.
    pub seq: u64,
    /// Type.
    pub kind: Kind,
    /// Time of the commit.
    pub at: Millis,
    /// `pos` of the cause in another topic.
    pub cause: Option<u64>,
    /// Birth header `key`.
    pub key: Option<Arc<str>>,
    /// Idempotency key, on the first envelope of its batch.
    pub idempotency: Option<Arc<str>>,
    /// Hash of the record.
    pub id: Digest,
    /// The canonical record, without id.
    pub record: Arc<str>,
}

impl Row {
    /// Reads the record.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if it is none.
    pub fn envelope(&self) -> Result<Envelope, Error> {
        Envelope::from_known(self.pos, self.id, &self.record, Some((&self.topic, &self.kind)))
    }

    /// Reads the record, which must be the one that the id is the hash of, and that belongs to this topic and seq.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt), naming topic and seq, if it is another one.
    pub fn checked(&self) -> Result<Envelope, Error> {
        let damaged = |why: &str| {
            let Self { topic, seq, pos, .. } = self;
            let why =
                format!("{topic} seq {seq} (pos {pos}) is damaged: {why}; `neuron verify` looks at the whole store");
            Error::new(ErrorKind::Corrupt, why)
        };
        if Digest::derive(ENVELOPE_CONTEXT, self.record.as_bytes()) != self.id {
            return Err(damaged("its record is not the one that its id is the hash of"));
        }
        let envelope = self.envelope()?;
        if envelope.topic != self.topic || envelope.seq != self.seq {
            return Err(damaged("its record belongs to another place"));
        }
        Ok(envelope)
    }
}

/// Which envelopes to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// Every envelope.
    All,
    /// Those of one topic.
    Topic(Topic),
    /// Those whose topic matches.
    Pattern(Pattern),
    /// Those of one type.
    Kind(Kind),
    /// Those whose cause stands at this `pos`.
    CausedBy(u64),
    /// Those of one topic with one birth header `key`.
    Key(Topic, Arc<str>),
}

impl Select {
    /// Whether a row is one of them.
    pub(crate) fn takes(&self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Topic(topic) => row.topic == *topic,
            Self::Pattern(pattern) => pattern.matches(&row.topic),
            Self::Kind(kind) => row.kind == *kind,
            Self::CausedBy(pos) => row.cause == Some(*pos),
            Self::Key(topic, key) => row.topic == *topic && row.key.as_ref() == Some(key),
        }
    }
}

/// A range of the log by `pos`, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First `pos` that may be read.
    pub from: u64,
    /// Last `pos` that may be read.
    pub to: u64,
    /// Newest first.
    pub reverse: bool,
    /// At most this many rows; a store never gives more than [`limits::PAGE_MAX`](crate::limits::PAGE_MAX).
    pub limit: usize,
}

impl Range {
    /// Everything, oldest first.
    pub const ALL: Self = Self {
        from: 1,
        to: u64::MAX,
        reverse: false,
        limit: crate::limits::PAGE_MAX,
    };

    /// The one place.
    #[must_use]
    pub const fn at(pos: u64) -> Self {
        Self {
            from: pos,
            to: pos,
            reverse: false,
            limit: 1,
        }
    }
}

/// A page of rows, and whether the range may hold more: `next` is where the following page begins (ends, in reverse).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The rows, in the direction asked for.
    pub rows: Vec<Row>,
    /// Where to go on; `None` at the end of the range.
    pub next: Option<u64>,
}
