use std::{fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{Topic, name};
use crate::{Error, ErrorKind, Result};

/// Selects topics: `*` is one segment, a last `**` zero or more, a last `>` one or more.
///
/// A pattern that begins with `/` selects slash names, any other dotted ones, [`Pattern::all`] both. Names of the
/// engine (`$…`) are selected only by a pattern whose first segment names them.
///
/// ```
/// # use neuron::{Pattern, Topic};
/// let clearances = Pattern::new("orchestration.*.clearance").unwrap();
/// assert!(clearances.matches(&Topic::new("orchestration.run-1.clearance").unwrap()));
/// assert!(!Pattern::new("**").unwrap().matches(&Topic::new("$leases").unwrap()));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct Pattern(#[schemars(with = "String")] Arc<str>);

/// What [`Pattern::all`] is written as. It is no legal dotted pattern: `**` may only stand as a segment of its own.
const ALL: &str = "/**|**";

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] that names the rule it breaks.
    pub fn new(pattern: impl AsRef<str>) -> Result<Self, Error> {
        let pattern = pattern.as_ref();
        if pattern == ALL {
            return Ok(Self::all());
        }
        name::check(pattern, "pattern", true)?;
        let count = name::segments(pattern).count();
        for (at, segment) in name::segments(pattern).enumerate() {
            let wild = segment.contains(['*', '>']);
            let legal = segment == "*" || (matches!(segment, "**" | ">") && at + 1 == count);
            if wild && !legal {
                let why = format!(
                    "pattern `{pattern}`: `{segment}` is not allowed there: `*` stands for one whole segment, `**` and `>` only at the end"
                );
                return Err(Error::new(ErrorKind::Malformed, why));
            }
        }
        Ok(Self(pattern.into()))
    }

    /// Every topic but the engine's own.
    pub fn all() -> Self {
        Self(ALL.into())
    }

    /// The pattern that selects one topic.
    pub fn exactly(topic: &Topic) -> Self {
        Self(topic.as_str().into())
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The one topic this pattern selects, if it holds no wildcard.
    pub fn literal(&self) -> Option<Topic> {
        Topic::new(&*self.0).ok()
    }

    /// Whether it is [`Pattern::all`].
    pub(crate) fn is_all(&self) -> bool {
        &*self.0 == ALL
    }

    /// Whether it selects `topic`.
    pub fn matches(&self, topic: &Topic) -> bool {
        if self.is_all() {
            return !topic.is_reserved();
        }
        if self.0.starts_with('/') != topic.as_str().starts_with('/') {
            return false;
        }
        let mut wanted = name::segments(&self.0).peekable();
        if topic.is_reserved() && wanted.peek().is_none_or(|first| !first.starts_with('$')) {
            return false;
        }
        let mut given = topic.segments();
        loop {
            match (wanted.next(), given.next()) {
                (Some("**"), _) | (Some(">"), Some(_)) | (None, None) => return true,
                (Some("*"), Some(_)) => {}
                (Some(want), Some(have)) if want == have => {}
                _ => return false,
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.0)
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(pattern: &str) -> Result<Self, Error> {
        Self::new(pattern)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pattern = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(pattern).map_err(D::Error::custom)
    }
}
