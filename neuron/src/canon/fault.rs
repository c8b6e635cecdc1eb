//! Why a value has no canonical form, and where in it.

use std::fmt::{self, Write as _};

use crate::{Error, ErrorKind};

/// A failure on its way up. Each level adds its own step, so a success pays nothing for the path.
#[derive(Debug)]
pub(super) struct Fault(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    /// Byte offset in the text that was parsed, if there was one.
    at: Option<usize>,
    /// Innermost first.
    path: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Key(String),
    Index(usize),
}

impl Fault {
    #[cold]
    pub(super) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.to_string(),
            at: None,
            path: Vec::new(),
        }))
    }

    #[cold]
    pub(super) fn malformed(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Malformed, message)
    }

    pub(super) fn at(mut self, offset: usize) -> Self {
        self.0.at = Some(offset);
        self
    }

    pub(super) fn key(mut self, key: &str) -> Self {
        self.0.path.push(Step::Key(key.to_owned()));
        self
    }

    pub(super) fn index(mut self, index: usize) -> Self {
        self.0.path.push(Step::Index(index));
        self
    }

    /// Turns the byte offset into a line and a column of `text`, both counted from 1 in characters.
    pub(super) fn locate(mut self, text: &str) -> Self {
        if let Some(at) = self.0.at.take() {
            let before = text.get(..at).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
            let _ = write!(self.0.message, " (line {line}, column {column})");
        }
        self
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::new(fault.0.kind, fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut path = Path::root();
        for step in self.0.path.iter().rev() {
            match step {
                Step::Key(key) => path.push_key(key),
                Step::Index(index) => path.push_index(*index),
            }
        }
        write!(f, "`{path}`: {}", self.0.message)
    }
}

impl std::error::Error for Fault {}

impl serde::ser::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::malformed(message)
    }
}

/// A place in a JSON value, written `$.steps[2].name`; the value itself is `$`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn root() -> Self {
        Self("$".to_owned())
    }

    pub(crate) fn push_key(&mut self, key: &str) {
        let plain = |c: char| c == '_' || c == '-' || c == '$' || c.is_alphanumeric();
        let _ = if !key.is_empty() && key.chars().all(plain) {
            write!(self.0, ".{key}")
        } else {
            write!(self.0, "[{key:?}]")
        };
    }

    /// Any item of an array.
    pub(crate) fn push_every_index(&mut self) {
        self.0.push_str("[*]");
    }

    /// Any member of a map.
    pub(crate) fn push_every_key(&mut self) {
        self.0.push_str(".*");
    }

    pub(crate) fn push_index(&mut self, index: usize) {
        let _ = write!(self.0, "[{index}]");
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
