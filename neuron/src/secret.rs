//! A value that is used and never recorded.

use std::{borrow::Cow, cell::Cell, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, de::Error as _};
use serde_json::Value;

/// What stands on the log where a secret was.
pub(crate) const PLACEHOLDER: &str = "[secret]";

/// An argument that a step needs and the log must not hold: a key, a password, a token.
///
/// Its text never reaches the log, a message or a trace, and it is no part of a call's identity: the same call with
/// another key is the same call. A step that is run again after a crash gets it from the body that calls it.
///
/// ```
/// use neuron::Secret;
/// let key = Secret::new("sk-1234".to_owned());
/// assert_eq!(format!("{key:?} {key}"), "[secret] [secret]");
/// assert_eq!(serde_json::to_string(&key).unwrap(), r#""[secret]""#);
/// assert_eq!(key.expose(), "sk-1234");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(Option<T>);

impl<T: Default> Default for Secret<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// The value, for the one place that needs it.
    #[allow(
        clippy::expect_used,
        reason = "see `unread`: what lacks its value is given to nobody"
    )]
    #[allow(clippy::missing_panics_doc, reason = "it never does")]
    pub fn expose(&self) -> &T {
        self.0.as_ref().expect(GIVEN)
    }

    /// The value, unwrapped.
    #[allow(
        clippy::expect_used,
        reason = "see `unread`: what lacks its value is given to nobody"
    )]
    #[allow(clippy::missing_panics_doc, reason = "it never does")]
    pub fn into_inner(self) -> T {
        self.0.expect(GIVEN)
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PLACEHOLDER)
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PLACEHOLDER)
    }
}

thread_local! {
    static REVEAL: Cell<bool> = const { Cell::new(false) };
    static SEEN: Cell<bool> = const { Cell::new(false) };
    static UNREAD: Cell<bool> = const { Cell::new(false) };
}

/// How a reader is told that a secret given to code has its value.
const GIVEN: &str = "a secret that is given to anybody has its value";

/// Reads recorded arguments back for no other purpose than to write them again by today's types: a secret in them stays
/// the word that stands for it.
pub(crate) fn unread<R>(read: impl FnOnce() -> R) -> R {
    let outer = UNREAD.replace(true);
    let read = read();
    UNREAD.set(outer);
    read
}

/// While it lives, secrets that this thread serialises are written as they are: for a value that stays in memory.
pub(crate) struct Revealed {
    outer: bool,
    /// It belongs to the thread that made it.
    thread: PhantomData<*const ()>,
}

impl Revealed {
    pub(crate) fn new() -> Self {
        Self {
            outer: REVEAL.replace(true),
            thread: PhantomData,
        }
    }
}

impl Drop for Revealed {
    fn drop(&mut self) {
        REVEAL.set(self.outer);
    }
}

/// Runs `write` and tells whether a secret was hidden meanwhile.
pub(crate) fn hidden_in<R>(write: impl FnOnce() -> R) -> (R, bool) {
    let outer = SEEN.replace(false);
    let written = write();
    (written, SEEN.replace(outer))
}

impl<T: Serialize> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let (true, Some(value)) = (REVEAL.get(), &self.0) {
            return value.serialize(serializer);
        }
        SEEN.set(true);
        serializer.serialize_str(PLACEHOLDER)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value == PLACEHOLDER && UNREAD.get() {
            return Ok(Self(None));
        }
        if value == PLACEHOLDER {
            return Err(D::Error::custom(
                "a secret is not on the log, so it cannot be read back; take it from the environment or from `cx.state`",
            ));
        }
        // What went wrong may quote the value, so only its place is told.
        serde_json::from_value(value)
            .map(Self::new)
            .map_err(|_| D::Error::custom("the secret is not of the expected type"))
    }
}

impl<T: JsonSchema> JsonSchema for Secret<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Secret_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [value, { "const": PLACEHOLDER }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_written_only_while_it_is_revealed() {
        let key = Secret::new("k".to_owned());
        let text = || serde_json::to_string(&key).unwrap();
        assert_eq!(hidden_in(text), (r#""[secret]""#.to_owned(), true));
        {
            let _outer = Revealed::new();
            drop(Revealed::new());
            assert_eq!(hidden_in(text), (r#""k""#.to_owned(), false));
        }
        assert_eq!(text(), r#""[secret]""#);
    }

    #[test]
    fn arguments_that_are_only_compared_keep_their_place_for_a_secret() {
        let again = unread(|| serde_json::from_str::<Secret<u8>>(r#""[secret]""#)).unwrap();
        let _revealed = Revealed::new();
        assert_eq!(serde_json::to_string(&again).unwrap(), r#""[secret]""#);
        assert!(serde_json::from_str::<Secret<u8>>(r#""[secret]""#).is_err());
    }

    #[test]
    fn a_recorded_secret_is_refused_with_what_to_do() {
        let error = serde_json::from_str::<Secret<String>>(r#""[secret]""#).unwrap_err();
        assert!(error.to_string().contains("cx.state"), "{error}");
        let error = serde_json::from_str::<Secret<u8>>(r#""sk-1234""#).unwrap_err();
        assert!(!error.to_string().contains("sk-1234"), "{error}");
    }
}
