//! Ids that may stand in a topic name: one segment each.

use std::{fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::{Digest, Error, ErrorKind, Json, Result, limits};

fn checked(kind: &str, text: &str) -> Result<Arc<str>, Error> {
    let fits = (1..=limits::SEGMENT_BYTES_MAX).contains(&text.len());
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if fits && plain {
        return Ok(text.into());
    }
    let max = limits::SEGMENT_BYTES_MAX;
    Err(Error::new(
        ErrorKind::Malformed,
        format!(
            "{kind} `{}` is not allowed: use 1 to {max} of A-Z a-z 0-9 _ -",
            text.escape_debug()
        ),
    ))
}

macro_rules! segment_ids { ($($(#[$doc:meta])* $name:ident $kind:literal;)*) => {$(
    $(#[$doc])*
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
    #[serde(transparent)]
    #[schemars(transparent)]
    pub struct $name(#[schemars(with = "String")] Arc<str>);

    impl $name {
        /// Checks the text: 1 to 96 bytes of `A-Za-z0-9_-`.
        ///
        /// # Errors
        /// [`ErrorKind::Malformed`] with what is allowed.
        pub fn new(text: impl AsRef<str>) -> Result<Self, Error> {
            checked($kind, text.as_ref()).map(Self)
        }

        /// The text.
        pub fn as_str(&self) -> &str {
            &self.0
        }
    }

    impl fmt::Display for $name {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    impl fmt::Debug for $name {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}({})", stringify!($name), self.0)
        }
    }

    impl FromStr for $name {
        type Err = Error;

        fn from_str(text: &str) -> Result<Self, Error> {
            Self::new(text)
        }
    }

    impl<'de> Deserialize<'de> for $name {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
            Self::new(text).map_err(D::Error::custom)
        }
    }
)*}}

segment_ids! {
    /// Names one run of an orchestrator.
    RunId "run id";
    /// Identity and cancellation of one agent on one package attempt.
    TokenId "token";
    /// Names one conversation.
    ConversationId "conversation id";
    /// Names one project.
    ProjectId "project name";
    /// Names one durable consumer.
    ConsumerId "consumer name";
    /// Names one request, for instance to a model.
    RequestId "request id";
}

impl TokenId {
    /// The token of an agent on a package: agent name, `-`, 16 base32 digits of BLAKE3 over run, package key and attempt.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the agent's name leaves no room for the digits.
    pub fn mint(agent: &str, run: &RunId, package: &str, attempt: u32) -> Result<Self, Error> {
        let identity = Json::of(&(run, package, attempt))?;
        let hash = Digest::derive("neuron-token-v1", identity.as_str().as_bytes());
        Self::new(format!("{agent}-{}", base32(&hash.as_bytes()[..10])))
    }
}

/// RFC 4648 base32 in lower case, without padding; exact for a multiple of five bytes.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let groups = bytes
        .chunks(5)
        .map(|five| five.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte)));
    groups
        .flat_map(|bits| {
            (0..8)
                .rev()
                .map(move |digit| char::from(ALPHABET[(bits >> (digit * 5) & 31) as usize]))
        })
        .collect()
}
