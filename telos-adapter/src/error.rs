//! One opaque error for this crate: callers branch on its kind, people read its text.

use std::fmt;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is to be done about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A scope, an address or an event name breaks its form: correct the name.
    Malformed,
    /// The name belongs to the engine: choose another.
    Reserved,
}

/// An error with a kind and a message that says what was refused and what is allowed.
///
/// ```
/// use telos_adapter::{ErrorKind, Scope};
/// let refused = "zone:cave#1".parse::<Scope>().unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::Malformed);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Malformed,
            message: message.into(),
        }
    }

    pub(crate) fn reserved(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Reserved,
            message: message.into(),
        }
    }

    /// What is to be done about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
