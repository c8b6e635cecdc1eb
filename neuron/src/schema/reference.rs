//! Typed references. Their schema carries a mark, so that a collection of them is found wherever it hides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Topic};

/// The keyword that marks a reference in a schema; its value says to what.
pub(super) const MARK: &str = "x-neuron-ref";

// The keys of a map have no schema of their own, only a pattern. These differ from how others write the same pattern,
// so that a map whose keys are references is found as well.
const HASH: &str = "^(?:[0-9a-f]{64})$";
const NAME: &str = "^(?:[A-Za-z0-9_-]{1,96})$";

/// Whether a pattern of map keys is that of a reference.
pub(super) fn is_key(pattern: &str) -> bool {
    pattern == HASH || pattern == NAME
}

/// Names an envelope: found by topic and seq, checked against the id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-neuron-ref" = "envelope"))]
pub struct EnvelopeRef {
    /// Hash of the envelope's canonical form.
    pub id: Digest,
    /// Its place in the topic, from 1.
    #[schemars(range(min = 1))]
    pub seq: u64,
    /// The topic it stands in.
    pub topic: Topic,
}

/// Names an artifact by the hash of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent, extend("x-neuron-ref" = "artifact", "pattern" = HASH))]
pub struct ArtifactRef(pub Digest);

/// Names a run by its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent, extend("x-neuron-ref" = "run", "pattern" = NAME))]
pub struct RunRef(pub String);

/// Names a backlog item by its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent, extend("x-neuron-ref" = "item", "pattern" = NAME))]
pub struct ItemRef(pub String);
