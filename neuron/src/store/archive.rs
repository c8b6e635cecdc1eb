//! Which part of which store an export holds, and the archive that is made of it.

use serde::{Deserialize, Serialize};

use super::verify::Head;
use crate::{Digest, DigestStream, Pattern, Schema, SchemaRef, Topic};

/// A part of a log: some topics, from one place to another, everything that stands there.
///
/// Because nothing in it is left out, each topic of a part goes on without gaps, also where the store's places do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Part {
    /// Only topics that match; all of them, those of the engine included, without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<Pattern>,
    /// The first `pos`.
    pub from: u64,
    /// The last `pos`.
    pub to: u64,
}

impl Part {
    /// Everything.
    pub const ALL: Self = Self {
        topics: None,
        from: 1,
        to: u64::MAX,
    };

    /// Whether a topic belongs to it.
    pub(crate) fn holds(&self, topic: &Topic) -> bool {
        self.topics.as_ref().is_none_or(|topics| topics.matches(topic))
    }
}

/// What a sealed archive holds; see [`import`](crate::store::export::import).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Archive {
    /// The root of the store it was taken of.
    pub root: SchemaRef,
    /// The head of that store at the last `pos` of the part.
    pub head: Head,
    /// Which part of that store stands here.
    pub part: Part,
    /// How many envelopes stand here, and the chain over their ids.
    pub seal: Head,
    /// Plain BLAKE3 of all definitions of schemas in their order, a line each: the name of a schema leaves out what is
    /// said about it, and an archive is sealed with all of it.
    pub registry: Digest,
}

/// Adds a definition to the hash over a registry.
pub(crate) fn register(registry: &mut DigestStream, schema: &Schema) {
    registry.update(schema.definition().as_str().as_bytes());
    registry.update(b"\n");
}
