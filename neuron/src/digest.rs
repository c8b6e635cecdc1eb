//! Content hashes. This is the only file that turns bytes into one.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{Error, ErrorKind, Result};

/// Context of an envelope's id; also the name of plane 0, the pinned root of a store.
pub const ENVELOPE_CONTEXT: &str = "event-bus-envelope-v1";
/// Context of a schema's hash.
pub const SCHEMA_CONTEXT: &str = "neuron-schema-v1";
/// Context of a call's identity.
pub const CALL_CONTEXT: &str = "neuron-call-v1";

/// A BLAKE3 hash of 32 bytes; written as 64 lower-case hex digits.
///
/// ```
/// # use neuron::Digest;
/// let hash = Digest::content(b"abc");
/// assert_eq!(hash.to_string().parse::<Digest>().unwrap(), hash);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The head of a topic that holds nothing yet.
    pub const ZERO: Self = Self([0; 32]);

    /// Plain BLAKE3 of some content: the hash of an artifact and of a chunk.
    pub fn content(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// As [`Digest::content`], for content that comes in parts.
    pub fn stream() -> DigestStream {
        DigestStream(blake3::Hasher::new())
    }

    /// BLAKE3 in `derive_key` mode: a hash that means one thing only.
    pub fn derive(context: &str, bytes: &[u8]) -> Self {
        Self(blake3::derive_key(context, bytes))
    }

    /// The next head of a chain: `blake3(head ‖ id)` over raw bytes.
    #[must_use]
    pub fn chain(self, id: Self) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(&id.0);
        Self(*hasher.finalize().as_bytes())
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// From raw bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] unless there are exactly 32.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, Error> {
        bytes.try_into().map(Self).map_err(|_| {
            Error::new(
                ErrorKind::Malformed,
                format!("a hash has 32 bytes, this has {}", bytes.len()),
            )
        })
    }
}

/// A hash of content that comes in parts; see [`Digest::stream`].
#[derive(Clone, Debug)]
pub struct DigestStream(blake3::Hasher);

impl DigestStream {
    /// Takes the next part.
    pub fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// The hash of all parts, one after the other.
    pub fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let lower = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let hash = blake3::Hash::from_hex(text).ok().filter(|_| lower);
        hash.map(|hash| Self(*hash.as_bytes())).ok_or_else(|| {
            Error::new(
                ErrorKind::Malformed,
                format!("`{text}` is not a hash: expected 64 lower-case hex digits"),
            )
        })
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Digest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}
