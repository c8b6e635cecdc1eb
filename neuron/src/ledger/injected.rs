use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::registry::hold;
use crate::{
    Draft, Error, ErrorKind, Json, Result, SchemaRef, SchemaUse,
    envelope::{bounded, refuse_reserved},
    store::{INJECTED, Store},
    vocabulary::Message,
};

/// Payload of `header.injected`: a header that came after the birth of the envelope it responds to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderInjected {
    /// What it is about.
    pub key: String,
    /// Any JSON value.
    pub value: Json,
    /// Schema of the value (plane 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaRef>,
    /// Why it was injected.
    pub reason: String,
}

impl Message for HeaderInjected {
    const TYPE: &'static str = INJECTED;
}

impl HeaderInjected {
    /// Names the schema of the value.
    #[must_use]
    pub fn with_schema(mut self, schema: &SchemaUse) -> Self {
        self.schema = Some(schema.reference());
        self
    }
}

/// Holds a draft of this type to what the fold of headers reads, whoever wrote it: a target, a key that is not the
/// engine's, a value that keeps to its schema.
pub(super) fn check(store: &dyn Store, draft: &Draft) -> Result<(), Error> {
    let here = |error: Error| error.context(format!("draft `{INJECTED}` for topic {}", draft.topic));
    let payload = draft.payload.clone().unwrap_or_else(Json::null);
    let injected: HeaderInjected = payload.decode().map_err(here)?;
    refuse_reserved(&injected.key).map_err(here)?;
    bounded("header key", &injected.key).map_err(here)?;
    if draft.parent.is_none() {
        let why = "it has no target: give the envelope it is about as its parent";
        return Err(here(Error::new(ErrorKind::Malformed, why)));
    }
    injected.schema.map_or(Ok(()), |schema| {
        let broken = |error: Error| error.context(format!("header `{}` breaks its schema", injected.key));
        hold(store, &SchemaUse::Ref(schema), &injected.value).map_err(broken)
    })
}
