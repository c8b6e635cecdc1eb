use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::Author;
use crate::{Error, ErrorKind, Json, Millis, Result, SchemaRef};

/// One injected header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// What it is about.
    pub key: String,
    /// Any JSON value.
    pub value: Json,
    /// Who injected it.
    pub author: Author,
    /// When it was injected; not later than the envelope's own `at` for a birth header.
    pub at: Millis,
    /// Schema of the value (plane 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaRef>,
}

/// The headers of an envelope, in order. Nothing removes or edits one.
///
/// ```compile_fail
/// # fn show(mut headers: neuron::Headers) {
/// headers.remove("role"); // there is no such method: a correction is a new injection
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Headers(pub(super) Vec<Header>);

impl Headers {
    /// The last value given for `key`.
    pub fn current(&self, key: &str) -> Option<&Json> {
        self.history(key).last().map(|header| &header.value)
    }

    /// Every header with `key`, oldest first.
    pub fn history(&self, key: &str) -> impl Iterator<Item = &Header> {
        self.0.iter().filter(move |header| header.key == key)
    }

    /// The current value of `key`, decoded; `None` if it is absent or of another shape.
    pub fn decode<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.current(key).and_then(|value| value.decode().ok())
    }

    /// All of them, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Header> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This list with later injections after it.
    pub(crate) fn extended(mut self, later: impl IntoIterator<Item = Header>) -> Self {
        self.0.extend(later);
        self
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = &'a Header;
    type IntoIter = std::slice::Iter<'a, Header>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The header keys that only the part of the engine that owns them may write, at birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "guards and budgets write theirs when their stages come")]
pub(crate) enum Reserved {
    Authz,
    Principal,
    TokensIn,
    TokensOut,
    ToolCalls,
    DurationMs,
    Key,
    Epoch,
    IdempotencyKey,
    CausedBy,
}

impl Reserved {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Authz => "authz",
            Self::Principal => "principal",
            Self::TokensIn => "tokens-in",
            Self::TokensOut => "tokens-out",
            Self::ToolCalls => "tool-calls",
            Self::DurationMs => "duration-ms",
            Self::Key => "key",
            Self::Epoch => "epoch",
            Self::IdempotencyKey => "idempotency-key",
            Self::CausedBy => "caused-by",
        }
    }
}

/// Refuses a key that a draft's header list or an injection may not carry.
pub(crate) fn refuse_reserved(key: &str) -> Result<(), Error> {
    let exact = [
        "authz",
        "principal",
        "tool-calls",
        "duration-ms",
        "key",
        "epoch",
        "idempotency-key",
        "caused-by",
    ];
    if !exact.contains(&key) && !["tokens-", "cost-"].iter().any(|prefix| key.starts_with(prefix)) {
        return Ok(());
    }
    let instead = match key {
        "key" => "; give it with `Draft::key`",
        "caused-by" => "; give it with `Draft::cause`",
        "idempotency-key" => "; give it with `Append::idempotency_key`",
        _ => "; choose another key",
    };
    Err(Error::new(
        ErrorKind::Reserved,
        format!("header `{key}` is written by the engine alone{instead}"),
    ))
}
