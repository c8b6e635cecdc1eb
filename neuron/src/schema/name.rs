//! The name of a schema is its hash.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Error, Result};

/// How one definition names another, before the hash.
const SCHEME: &str = "neuron:schema:";

/// The hash of a schema: its name, for ever. Written as 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct SchemaRef(pub Digest);

impl SchemaRef {
    /// The form that stands in a `$ref`: `neuron:schema:<hash>`.
    pub fn uri(&self) -> String {
        format!("{SCHEME}{self}")
    }

    /// Reads [`SchemaRef::uri`], and what stands behind its `#`.
    pub(super) fn from_uri(uri: &str) -> Option<(Self, &str)> {
        let (hash, fragment) = uri.strip_prefix(SCHEME)?.split_at_checked(64)?;
        let fragment = match fragment {
            "" => "",
            fragment => fragment.strip_prefix('#')?,
        };
        Some((hash.parse().ok()?, fragment))
    }
}

impl fmt::Display for SchemaRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SchemaRef {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse().map(Self)
    }
}
