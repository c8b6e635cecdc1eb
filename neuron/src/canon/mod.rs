//! Canonical JSON: one text per value, so that a hash of the text is a hash of the value.
//!
//! The form is [RFC 8785](https://www.rfc-editor.org/rfc/rfc8785) with one extension: integers of i64 and u64 keep
//! their exact digits. Text is written straight from the typed value; what JSON cannot say (NaN, infinity, wider
//! integers, a key twice) is refused with its path instead of being changed.

mod any;
mod compound;
mod de;
mod embedded;
mod fault;
mod key;
mod number;
mod parse;
mod ser;
mod text;
mod writer;

use std::{fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Serialize, Serializer, de::DeserializeOwned, ser::SerializeStruct as _};

use crate::{Error, Result};

pub(crate) use fault::Path;
use writer::Writer;

/// Canonical JSON text. Equal values have equal text.
///
/// ```
/// # use neuron::Json;
/// let json = Json::of(&("b", 1.0, Some(u64::MAX))).unwrap();
/// assert_eq!(json.as_str(), r#"["b",1,18446744073709551615]"#);
/// assert_eq!(Json::parse(r#"{ "b": 2e0, "a": "\u0041" }"#).unwrap().as_str(), r#"{"a":"A","b":2}"#);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// The canonical form of a typed value.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) with the path, for NaN, infinity, an integer outside i64
    /// and u64, a key that is no scalar or stands twice; [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) beyond
    /// [`JSON_DEPTH_MAX`](crate::limits::JSON_DEPTH_MAX).
    ///
    /// ```
    /// # use neuron::Json;
    /// let error = Json::of(&[("cost", f64::NAN)]).unwrap_err();
    /// assert_eq!(error.message(), "`$[0][1]`: NaN is no JSON number");
    /// ```
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        Ok(Writer::with(
            |writer| value.serialize(writer),
            |text| Self::trusted(text),
        )?)
    }

    /// The canonical form of JSON text from outside.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) with path, line and column, for text that is no JSON, a
    /// duplicate key, half a surrogate pair, or a number that would lose digits;
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) beyond
    /// [`JSON_DEPTH_MAX`](crate::limits::JSON_DEPTH_MAX).
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(Writer::with(
            |writer| parse::transcode(text, writer),
            |text| Self::trusted(text),
        )?)
    }

    /// Whether text is the canonical form of what it says.
    ///
    /// # Errors
    /// As [`Json::parse`].
    pub(crate) fn is_canonical(text: &str) -> Result<bool, Error> {
        Ok(Writer::with(
            |writer| parse::transcode(text, writer),
            |canonical| canonical == text,
        )?)
    }

    /// `null`.
    pub fn null() -> Self {
        Self::trusted("null")
    }

    /// Text that is known to be canonical: it was written by this module.
    pub(crate) fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Bytes of the text; never 0.
    #[allow(clippy::len_without_is_empty, reason = "JSON text is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether this may stand so many levels inside of other text.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if the whole would nest deeper than
    /// [`JSON_DEPTH_MAX`](crate::limits::JSON_DEPTH_MAX).
    pub(crate) fn fits_at(&self, levels: usize) -> Result<(), Error> {
        Ok(Writer::holds_at(levels, &self.0)?)
    }

    /// The typed value.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema) with the path, if the text does not say a `T`.
    ///
    /// ```
    /// # use neuron::Json;
    /// let json = Json::parse(r#"{"pages":[1,"two"]}"#).unwrap();
    /// let error = json.decode::<std::collections::BTreeMap<String, Vec<u8>>>().unwrap_err();
    /// assert!(error.message().starts_with("`$.pages[1]` does not decode"));
    /// ```
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        de::decode(&self.0)
    }

    /// The same value as a tree. A double that is a whole number comes back as an integer, as it is written.
    pub fn to_value(&self) -> serde_json::Value {
        // Only a damaged record holds text that is no JSON; its bytes are then all there is to say.
        serde_json::from_str(&self.0).unwrap_or_else(|_| serde_json::Value::String(self.0.to_string()))
    }
}

/// A tree from JSON text from outside.
///
/// # Errors
/// As [`Json::parse`].
pub fn parse_value(text: &str) -> Result<serde_json::Value, Error> {
    Json::parse(text).map(|json| json.to_value())
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(parse::RAW, 1)?;
        raw.skip_field(parse::CANONICAL)?;
        raw.serialize_field(parse::RAW, self.as_str())?;
        raw.end()
    }
}

impl FromStr for Json {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}
