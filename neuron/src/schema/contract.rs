//! Plane 2: which artifacts a body must and may carry.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Error, ErrorKind, Json, Result};

use super::definition::Schema;

/// The keyword under which a body contract stands in its definition.
const KEYWORD: &str = "x-neuron-body";

/// What a body promises about its artifacts.
///
/// Its definition is a JSON Schema of the body, so that a participant who does not know this type can hold a body to it
/// all the same.
///
/// ```
/// # use neuron::schema::BodyContract;
/// let contract = BodyContract::new(["report"]).allow(["log"]);
/// assert!(contract.check([Some("log"), Some("report")]).is_ok());
/// assert!(contract.check([Some("log")]).is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyContract {
    /// Kinds of which at least one artifact each must be there.
    requires: BTreeSet<String>,
    /// Kinds that may be there besides; any, also an artifact without a kind, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allows: Option<BTreeSet<String>>,
}

impl BodyContract {
    /// A body that must carry these kinds and may carry any other.
    pub fn new(requires: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            requires: requires.into_iter().map(Into::into).collect(),
            allows: None,
        }
    }

    /// Allows no kinds but those required and these.
    #[must_use]
    pub fn allow(mut self, kinds: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let allows = self.allows.get_or_insert_default();
        allows.extend(kinds.into_iter().map(Into::into));
        self
    }

    /// The contract as a schema, to be registered and named in the body.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] beyond 1 MiB.
    pub fn schema(&self) -> Result<Schema, Error> {
        let must = |kind| json!({ "contains": { "properties": { "kind": { "const": kind } }, "required": ["kind"] } });
        let mut artifacts = json!({ "type": "array" });
        if !self.requires.is_empty() {
            artifacts["allOf"] = self.requires.iter().map(must).collect();
        }
        if let Some(allows) = &self.allows {
            let kinds: Value = self.requires.union(allows).map(String::as_str).collect();
            artifacts["items"] = json!({ "properties": { "kind": { "enum": kinds } }, "required": ["kind"] });
        }
        let definition = json!({
            "type": "object",
            "properties": { "artifacts": artifacts },
            "required": ["artifacts"],
            KEYWORD: self,
        });
        Schema::new(Json::of(&definition)?)
    }

    /// Reads a contract back from its schema.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if the schema is none of a body contract.
    pub fn from_schema(schema: &Schema) -> Result<Self, Error> {
        let definition = schema.definition().to_value();
        let contract = definition.get(KEYWORD).ok_or_else(|| {
            let reference = schema.reference();
            Error::new(ErrorKind::Schema, format!("schema {reference} is no body contract"))
        })?;
        Json::of(contract)?.decode()
    }

    /// Holds the kinds of a body's artifacts to the contract.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] that names the kind that is missing or not allowed.
    pub fn check<'a>(&self, kinds: impl IntoIterator<Item = Option<&'a str>>) -> Result<(), Error> {
        let mut missing: BTreeSet<&str> = self.requires.iter().map(String::as_str).collect();
        for (index, kind) in kinds.into_iter().enumerate() {
            kind.map(|kind| missing.remove(kind));
            let Some(allows) = &self.allows else { continue };
            if !kind.is_some_and(|kind| allows.contains(kind) || self.requires.contains(kind)) {
                let found = kind.map_or("no kind".to_owned(), |kind| format!("kind `{kind}`"));
                let allowed: Vec<_> = self.requires.union(allows).map(String::as_str).collect();
                return Err(Error::new(
                    ErrorKind::Schema,
                    format!(
                        "`$.artifacts[{index}]` has {found}, which the body contract does not allow; allowed: {}",
                        allowed.join(", ")
                    ),
                ));
            }
        }
        missing.first().map_or(Ok(()), |kind| {
            Err(Error::new(
                ErrorKind::Schema,
                format!("`$.artifacts` has none of kind `{kind}`, which the body contract requires"),
            ))
        })
    }
}
