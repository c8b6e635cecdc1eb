use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned, de::Error as _};

use super::author::name_of;
use crate::{Digest, Error, ErrorKind, Json, Result, SchemaRef};

/// The type of an envelope, for instance `step.completed`: 1 to 128 bytes, no control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct Kind(#[schemars(with = "String")] Arc<str>);

impl Kind {
    /// Checks the name.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if it is empty, longer than 128 bytes, or holds a control character.
    pub fn new(name: impl AsRef<str>) -> Result<Self, Error> {
        name_of("type", name.as_ref()).map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Kind {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Kind {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.0)
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(name).map_err(D::Error::custom)
    }
}

/// Evidence that rides with a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifact {
    /// The producer's name for it, or an outside URI.
    #[serde(rename = "ref")]
    pub name: String,
    /// Hash of the content; required for a blob of this store.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
    /// What it is to the record, for instance `report`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// An optional field that is there: what is absent is left out and never `null`, and a `null` that is there is a value.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// What an envelope says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Body {
    /// The type of the message.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The payload.
    #[serde(rename = "payloadJSON", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// Schema of the payload (plane 3).
    #[serde(rename = "payloadSchema", skip_serializing_if = "Option::is_none")]
    pub payload_schema: Option<SchemaRef>,
    /// Contract of the body (plane 2).
    #[serde(rename = "schema", skip_serializing_if = "Option::is_none")]
    pub contract: Option<SchemaRef>,
    /// Evidence, empty if there is none.
    pub artifacts: Vec<Artifact>,
}

impl Body {
    /// The payload, decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if there is none or it has another shape.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let payload = self.payload.as_ref();
        let payload =
            payload.ok_or_else(|| Error::new(ErrorKind::Schema, format!("`{}` has no payload", self.kind)))?;
        payload
            .decode()
            .map_err(|error| error.context(format!("payload of `{}`", self.kind)))
    }
}
