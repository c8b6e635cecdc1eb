//! The types that the engine writes: one payload each, grouped by the topic family they stand on.
//!
//! An envelope's type name decides how its payload is read. [`Message`] ties the two together, so that a payload is
//! never written under a name that is not its own.

pub mod build;
pub mod clearance;
pub mod consumer;
pub mod control;
pub mod dialogue;
pub mod orchestration;
pub mod step;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};

use crate::{Author, Draft, Envelope, Error, Json, Result, Topic};

/// A payload with the one type name it is written under.
///
/// ```
/// use neuron::{Author, Topic, vocabulary::{Message as _, control::ControlPaused}};
/// let pause = ControlPaused { because: Some("lunch".into()), thread: None };
/// let draft = pause.draft(Topic::new("orchestration.r1.control")?, Author::human("ada")?)?;
/// assert_eq!(*draft.kind(), "control.paused");
/// # Ok::<(), neuron::Error>(())
/// ```
pub trait Message: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The type of the envelope.
    const TYPE: &'static str;

    /// A draft that says this.
    ///
    /// # Errors
    /// As [`Draft::payload`].
    fn draft(&self, topic: Topic, author: Author) -> Result<Draft, Error> {
        Draft::message(topic, author, self)
    }

    /// What an envelope says, if it is of this type.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema) if it is of this type and its payload has another shape.
    fn read(envelope: &Envelope) -> Result<Option<Self>, Error> {
        if envelope.body.kind == Self::TYPE {
            envelope.decode().map(Some)
        } else {
            Ok(None)
        }
    }
}

impl Draft {
    /// What the engine says. Its type is known to fit its schema, and it may go to the engine's own topics.
    ///
    /// # Errors
    /// As [`Draft::payload`].
    #[doc(hidden)]
    pub fn message<M: Message>(topic: Topic, author: Author, message: &M) -> Result<Self, Error> {
        let mut draft = Self::new(topic, author, M::TYPE)?.payload(message)?;
        draft.trusted = true;
        Ok(draft)
    }
}

/// Gives each payload its type name, and the module the list of them.
macro_rules! messages { ($($name:ident $kind:literal;)*) => {
    $(impl crate::vocabulary::Message for $name { const TYPE: &'static str = $kind; })*
    /// Every type of this module.
    pub const TYPES: &[&str] = &[$($kind),*];
}}
pub(crate) use messages;

/// Reads a value that may itself be `null`: absent is `None`, `null` is a value.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}
