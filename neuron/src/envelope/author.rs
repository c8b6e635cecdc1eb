use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::{Error, ErrorKind, Result, RunId, TokenId, limits};

/// Who wrote an envelope or a header: a token, a run, a stage, `human:NAME`, `cli`. 1 to 128 bytes, no control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct Author(#[schemars(with = "String")] Arc<str>);

impl Author {
    /// Checks a free name, such as a stage's.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if it is empty, longer than 128 bytes, or holds a control character.
    pub fn new(name: impl AsRef<str>) -> Result<Self, Error> {
        name_of("author", name.as_ref()).map(Self)
    }

    /// A person.
    ///
    /// # Errors
    /// As [`Author::new`].
    pub fn human(name: &str) -> Result<Self, Error> {
        Self::new(format!("human:{name}"))
    }

    /// The command line.
    pub fn cli() -> Self {
        Self("cli".into())
    }

    /// The engine itself, where no run or token is meant.
    pub fn engine() -> Self {
        Self("neuron".into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A checked name of an author or a type.
pub(super) fn name_of(what: &str, name: &str) -> Result<Arc<str>, Error> {
    if name.is_empty() || name.len() > limits::NAME_BYTES_MAX || name.chars().any(char::is_control) {
        let (shown, max) = (name.escape_debug(), limits::NAME_BYTES_MAX);
        let why = format!("{what} `{shown}` is not allowed: use 1 to {max} bytes without control characters");
        return Err(Error::new(ErrorKind::Malformed, why));
    }
    Ok(name.into())
}

impl From<&TokenId> for Author {
    fn from(token: &TokenId) -> Self {
        Self(token.as_str().into())
    }
}

impl From<&RunId> for Author {
    fn from(run: &RunId) -> Self {
        Self(run.as_str().into())
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Author({})", self.0)
    }
}

impl<'de> Deserialize<'de> for Author {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(name).map_err(D::Error::custom)
    }
}
