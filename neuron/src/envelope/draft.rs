use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Artifact, Author, Kind,
    header::{self, Reserved},
};
use crate::{Deferred, EnvelopeRef, Error, ErrorKind, Json, Result, SchemaUse, Topic, limits, schema};

/// What an envelope responds to, in its own topic.
#[derive(Clone, Debug)]
pub enum Parent {
    /// An envelope that stands.
    Seq(u64),
    /// An earlier draft of the same batch, by index from 0.
    Index(usize),
    /// A deferred append of this process; filled in at the commit.
    Deferred(Deferred),
}

/// What brought an envelope about, across topics.
#[derive(Clone, Debug)]
pub enum Cause {
    /// An envelope that stands; looked up by topic and seq, checked against the id.
    Envelope(EnvelopeRef),
    /// An earlier draft of the same batch, by index from 0.
    Index(usize),
    /// A deferred append of this process; filled in at the commit.
    Deferred(Deferred),
}

/// An envelope that has no place yet.
///
/// ```
/// # use neuron::{Author, Draft, Topic};
/// let draft = Draft::new(Topic::new("notes.today")?, Author::human("ada")?, "note.taken")?
///     .payload(&"buy bread")?
///     .header("mood", &"hungry")?;
/// # Ok::<(), neuron::Error>(())
/// ```
///
/// Its place and its time come from the commit; nobody can ask for one:
///
/// ```compile_fail,E0599
/// # fn early(draft: neuron::Draft) {
/// let draft = draft.seq(1).at(neuron::Millis(0)); // there are no such methods
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) topic: Topic,
    pub(crate) author: Author,
    pub(crate) kind: Kind,
    pub(crate) payload: Option<Json>,
    pub(crate) payload_schema: Option<Arc<SchemaUse>>,
    pub(crate) contract: Option<Arc<SchemaUse>>,
    pub(crate) artifacts: Vec<Artifact>,
    /// Schemas that the payload names, registered with it.
    pub(crate) named: Vec<Arc<SchemaUse>>,
    pub(crate) headers: Vec<DraftHeader>,
    pub(crate) parent: Option<Parent>,
    pub(crate) cause: Option<Cause>,
    pub(crate) key: Option<String>,
    /// Written by the engine from a type it knows: its payload needs no check against its schema.
    pub(crate) trusted: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct DraftHeader {
    pub(crate) key: String,
    pub(crate) value: Json,
    pub(crate) schema: Option<Arc<SchemaUse>>,
    pub(crate) author: Option<Author>,
}

impl Draft {
    /// A draft without payload.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the type's name is not allowed.
    pub fn new(topic: Topic, author: Author, kind: impl AsRef<str>) -> Result<Self, Error> {
        Ok(Self {
            topic,
            author,
            kind: Kind::new(kind)?,
            payload: None,
            payload_schema: None,
            contract: None,
            artifacts: Vec::new(),
            named: Vec::new(),
            headers: Vec::new(),
            parent: None,
            cause: None,
            key: None,
            trusted: false,
        })
    }

    /// A typed payload; its schema is registered with the append that first uses it.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the value has no canonical form (NaN, too wide an integer), with its path;
    /// [`ErrorKind::Schema`] if the type's schema is not allowed.
    pub fn payload<T: Serialize + JsonSchema + 'static>(mut self, value: &T) -> Result<Self, Error> {
        self.payload_schema = Some(schema::of::<T>()?);
        self.payload = Some(Json::of(value)?);
        Ok(self)
    }

    /// A payload without a type of this program; with a schema if one is known.
    #[must_use]
    pub fn json(mut self, value: Json, schema: Option<SchemaUse>) -> Self {
        self.payload = Some(value);
        self.payload_schema = schema.map(Arc::new);
        self
    }

    /// Names the contract of the body (plane 2).
    #[must_use]
    pub fn contract(mut self, contract: SchemaUse) -> Self {
        self.contract = Some(Arc::new(contract));
        self
    }

    /// Injects a birth header.
    ///
    /// # Errors
    /// [`ErrorKind::Reserved`] if the key belongs to the engine, [`ErrorKind::Malformed`] if the value has no canonical
    /// form or the key is empty or too long.
    pub fn header<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Result<Self, Error> {
        header::refuse_reserved(key)?;
        bounded("header key", key)?;
        let value = Json::of(value).map_err(|error| error.context(format!("header `{key}`")))?;
        self.headers.push(DraftHeader {
            key: key.into(),
            value,
            schema: None,
            author: None,
        });
        Ok(self)
    }

    /// Injects a birth header whose value has a schema (plane 1).
    ///
    /// # Errors
    /// As [`Draft::header`], and [`ErrorKind::Schema`] if the type's schema is not allowed.
    pub fn typed_header<T: Serialize + JsonSchema + 'static>(self, key: &str, value: &T) -> Result<Self, Error> {
        let schema = schema::of::<T>()?;
        let mut draft = self.header(key, value)?;
        draft
            .headers
            .last_mut()
            .iter_mut()
            .for_each(|header| header.schema = Some(schema.clone()));
        Ok(draft)
    }

    /// A header that the engine owns.
    pub(crate) fn stamp(mut self, key: Reserved, value: Json, author: Option<Author>) -> Self {
        self.headers.push(DraftHeader {
            key: key.key().into(),
            value,
            schema: None,
            author,
        });
        self
    }

    /// The birth header `key`, which is indexed: the last envelope of a topic with one key is its current word.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] unless it has 1 to 256 bytes.
    pub fn key(mut self, key: impl Into<String>) -> Result<Self, Error> {
        let key = key.into();
        bounded("key", &key)?;
        self.key = Some(key);
        Ok(self)
    }

    /// What it responds to in its own topic.
    #[must_use]
    pub fn parent(mut self, parent: Parent) -> Self {
        self.parent = Some(parent);
        self
    }

    /// What brought it about in another topic.
    #[must_use]
    pub fn cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Evidence that rides with it.
    #[must_use]
    pub fn artifact(mut self, artifact: Artifact) -> Self {
        self.artifacts.push(artifact);
        self
    }

    /// Where it goes.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// What it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }
}

/// Refuses an empty or overlong key.
pub(crate) fn bounded(what: &str, key: &str) -> Result<(), Error> {
    if key.is_empty() || key.len() > limits::KEY_BYTES_MAX {
        let (len, max) = (key.len(), limits::KEY_BYTES_MAX);
        return Err(Error::new(
            ErrorKind::Malformed,
            format!("{what} has {len} bytes: use 1 to {max}"),
        ));
    }
    Ok(())
}
