use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ledger, registry::hold};
use crate::{
    Author, Draft, Envelope, Error, ErrorKind, Header, Headers, Json, Parent, Receipt, Result, SchemaRef, SchemaUse,
    envelope::{bounded, refuse_reserved},
    store::{INJECTED, Select, Store},
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

impl Ledger {
    /// Injects a header into a recorded envelope: an envelope of its own, whose parent is the target.
    ///
    /// # Errors
    /// [`Reserved`](crate::ErrorKind::Reserved) if the key belongs to the engine,
    /// [`Malformed`](crate::ErrorKind::Malformed) if the target is itself an injection; else as [`Ledger::append`].
    pub async fn inject(
        &self,
        target: &Envelope,
        key: &str,
        value: &(impl Serialize + ?Sized),
        reason: &str,
        author: &Author,
    ) -> Result<Receipt, Error> {
        let injected = HeaderInjected {
            key: key.into(),
            value: Json::of(value)?,
            schema: None,
            reason: reason.into(),
        };
        let draft = Draft::message(target.topic.clone(), author.clone(), &injected)?.parent(Parent::Seq(target.seq));
        self.publish(draft).await
    }

    /// The birth headers of an envelope and everything injected later, up to and with `pos`; `None` = to now. Blocks.
    ///
    /// # Errors
    /// A kind of the disk, or an injection that does not decode.
    pub fn headers(&self, envelope: &Envelope, upto: Option<u64>) -> Result<Headers, Error> {
        let reading = self.read(Select::Topic(envelope.topic.clone())).from(envelope.pos + 1);
        let mut later = Vec::new();
        for injection in reading.to(upto.unwrap_or(u64::MAX)).envelopes() {
            let injection = injection?;
            if injection.parent_seq == Some(envelope.seq) && injection.body.kind == INJECTED {
                let HeaderInjected { key, value, schema, .. } = injection.decode()?;
                later.push(Header {
                    key,
                    value,
                    author: injection.author,
                    at: injection.at,
                    schema,
                });
            }
        }
        Ok(envelope.headers.clone().extended(later))
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

impl HeaderInjected {
    /// Names the schema of the value.
    #[must_use]
    pub fn with_schema(mut self, schema: &SchemaUse) -> Self {
        self.schema = Some(schema.reference());
        self
    }
}
