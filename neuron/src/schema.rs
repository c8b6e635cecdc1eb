//! Stub.
use crate::{Digest, Error, Json, Result, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
/// Stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SchemaRef(pub Digest);
/// Stub.
#[derive(Clone, Debug)]
pub struct Schema {
    definition: Json,
}
impl Schema {
    /// Stub.
    pub fn plane0() -> Self {
        Self {
            definition: Json::of(&"plane0").unwrap_or_else(|_| Json::null()),
        }
    }
    /// Stub.
    pub fn reference(&self) -> SchemaRef {
        SchemaRef(Digest::derive("x", self.definition.as_str().as_bytes()))
    }
}
/// Stub.
#[derive(Clone, Debug)]
pub enum SchemaUse {
    /// a
    Ref(SchemaRef),
    /// b
    Inline(Schema),
}
impl SchemaUse {
    /// Stub.
    pub fn reference(&self) -> SchemaRef {
        match self {
            Self::Ref(r) => *r,
            Self::Inline(s) => s.reference(),
        }
    }
}
/// Stub.
pub fn of<T: JsonSchema + 'static>() -> Result<Arc<SchemaUse>, Error> {
    Ok(Arc::new(SchemaUse::Inline(Schema::plane0())))
}
/// Stub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvelopeRef {
    /// a
    pub id: Digest,
    /// b
    pub seq: u64,
    /// c
    pub topic: Topic,
}
