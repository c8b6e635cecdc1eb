use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{Digest, Error, ErrorKind, Result};

/// How far a chain of envelopes goes, and the hash over all of it. Written as `pos:hash`.
///
/// ```
/// use neuron::{Digest, store::verify::Head};
/// let head = Head { pos: 3, hash: Digest::content(b"three") };
/// assert_eq!(head.to_string().parse::<Head>().unwrap(), head);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The last place; 0 for an empty chain.
    pub pos: u64,
    /// `head(n) = blake3(head(n-1) ‖ id(n))`, `head(0)` = 32 zero bytes.
    pub hash: Digest,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            pos: 0,
            hash: Digest::ZERO,
        }
    }
}

impl Head {
    /// The head after one more envelope.
    #[must_use]
    pub fn then(self, id: Digest) -> Self {
        Self {
            pos: self.pos + 1,
            hash: self.hash.chain(id),
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pos, self.hash)
    }
}

impl FromStr for Head {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let written = text.trim();
        let parts = written.split_once(':');
        let head = parts.and_then(|(pos, hash)| {
            Some(Self {
                pos: pos.parse().ok()?,
                hash: hash.parse().ok()?,
            })
        });
        // One head has one text.
        head.filter(|head| head.to_string() == written).ok_or_else(|| {
            let why = format!(
                "`{}` is no head: give what `head` printed, POS:HASH",
                text.escape_debug()
            );
            Error::new(ErrorKind::Malformed, why)
        })
    }
}

impl Serialize for Head {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
