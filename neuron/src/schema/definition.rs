//! A schema: a definition under its hash.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

use crate::{Digest, Error, ErrorKind, Json, Result, SCHEMA_CONTEXT, limits};

use super::{breach, keyword, name::SchemaRef};

/// What resolves a reference: a store's registry, a [`Bundle`](super::Bundle), or both.
pub type Resolve<'a> = dyn Fn(&SchemaRef) -> Result<Option<Arc<Schema>>, Error> + 'a;

/// A definition and its reference.
///
/// ```
/// # use neuron::{Json, Schema};
/// let plain = Schema::new(Json::parse(r#"{"type":"integer"}"#)?)?;
/// let told = Schema::new(Json::parse(r#"{"type":"integer","description":"How many."}"#)?)?;
/// assert_eq!(plain.reference(), told.reference());
/// # Ok::<(), neuron::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    reference: SchemaRef,
    pub(super) definition: Json,
}

impl Schema {
    /// Takes a definition from outside: JSON Schema draft 2020-12, at most 1 MiB.
    ///
    /// Its `$ref`s are `#…` within it or `neuron:schema:<hash>`. Other ways to give a schema a name (`$id`, `$anchor`,
    /// `$dynamicRef` and their like) are refused: a schema's name is its hash.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] with the path of what is not allowed, [`ErrorKind::TooLarge`] beyond 1 MiB.
    pub fn new(definition: Json) -> Result<Self, Error> {
        if definition.len() > limits::RECORD_BYTES_MAX {
            let (bytes, max) = (definition.len(), limits::RECORD_BYTES_MAX);
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("a schema of {bytes} bytes: at most {max} are allowed"),
            ));
        }
        let value = definition.to_value();
        breach::check_definition(&value)?;
        keyword::check_names(&value)?;
        Ok(Self::known(definition, value))
    }

    /// A definition that is allowed: this module made it, or has checked it before.
    pub(crate) fn known(definition: Json, mut value: Value) -> Self {
        keyword::strip(&mut value);
        // A part of a canonical value has a canonical form; the fallback cannot be reached.
        let bare = Json::of(&value).unwrap_or_else(|_| definition.clone());
        Self {
            reference: SchemaRef(Digest::derive(SCHEMA_CONTEXT, bare.as_str().as_bytes())),
            definition,
        }
    }

    /// The hash of the definition without annotations.
    pub fn reference(&self) -> SchemaRef {
        self.reference
    }

    /// The definition as it was given, annotations included.
    pub fn definition(&self) -> &Json {
        &self.definition
    }

    /// The schemas that this one names, each once.
    pub fn dependencies(&self) -> Vec<SchemaRef> {
        let mut found = Vec::new();
        keyword::each_ref(&self.definition.to_value(), &mut |uri| {
            if let Some((reference, _)) = SchemaRef::from_uri(uri)
                && !found.contains(&reference)
            {
                found.push(reference);
            }
        });
        found
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.definition.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Json::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// The error of a reference that nothing resolves.
#[cold]
pub(super) fn unknown(reference: &SchemaRef) -> Error {
    Error::new(
        ErrorKind::Schema,
        format!("schema {reference} is not registered: register it first, or give its definition inline"),
    )
}
