use std::{fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::{Error, ErrorKind, Result, limits};

/// The name of a topic: 1 to 256 bytes, no control characters, no wildcards, no empty segment.
///
/// Segments are split on `.`, or on `/` when the name begins with `/`. Cheap to clone.
///
/// ```
/// # use neuron::Topic;
/// let topic = Topic::new("project.apollo.backlog").unwrap();
/// assert_eq!(topic.segments().collect::<Vec<_>>(), ["project", "apollo", "backlog"]);
/// assert!(Topic::new("a..b").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct Topic(#[schemars(with = "String")] Arc<str>);

impl Topic {
    /// Parses a name.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] that names the rule it breaks.
    pub fn new(name: impl AsRef<str>) -> Result<Self, Error> {
        let name = name.as_ref();
        check(name, "topic", false)?;
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        segments(&self.0)
    }

    /// Whether the name belongs to the engine (`$…`).
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with('$')
    }
}

pub(super) fn segments(name: &str) -> std::str::Split<'_, char> {
    name.strip_prefix('/')
        .map_or_else(|| name.split('.'), |rest| rest.split('/'))
}

/// Checks the rules that names and patterns share.
pub(super) fn check(name: &str, what: &str, wildcards: bool) -> Result<(), Error> {
    let refuse = |rule: &str| {
        let shown: String = name.chars().take(80).collect();
        Err(Error::new(
            ErrorKind::Malformed,
            format!("{what} `{}` {rule}", shown.escape_debug()),
        ))
    };
    if name.is_empty() {
        return refuse("is empty");
    }
    if name.len() > limits::TOPIC_BYTES_MAX {
        return refuse(&format!("is longer than {} bytes", limits::TOPIC_BYTES_MAX));
    }
    if name.chars().any(char::is_control) {
        return refuse("holds a control character");
    }
    if segments(name).any(str::is_empty) {
        return refuse("holds an empty segment");
    }
    if !wildcards && segments(name).any(|segment| segment.contains(['*', '>'])) {
        return refuse("holds a wildcard (`*` or `>`), which only a pattern may");
    }
    Ok(())
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({})", self.0)
    }
}

impl FromStr for Topic {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::new(name)
    }
}

impl<'de> Deserialize<'de> for Topic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(name).map_err(D::Error::custom)
    }
}
