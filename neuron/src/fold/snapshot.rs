//! How the state of a fold is written down and read back, for those whose states are worth keeping.

use std::{
    fmt::{self, Write as _},
    io,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{Digest, Error, ErrorKind, Result, limits};

/// How the states of a fold are put aside as snapshots: see [`Fold::snapshot`](crate::Fold::snapshot).
///
/// A snapshot is found again by the name of its fold, the version, the values that [`Codec::of`] was given and the type
/// of the state. The version is to be raised whenever the fold gives another state for the same envelopes: a snapshot of
/// an older one is then left alone, and the log is folded from its beginning.
///
/// ```
/// use neuron::{Envelope, Error, Fold, Topic, fold::Codec, store::Select};
/// struct Length(Topic);
/// impl Fold for Length {
///     type State = u64;
///     fn init(&self) -> u64 {
///         0
///     }
///     fn apply(&self, length: &mut u64, _: &Envelope) -> Result<(), Error> {
///         *length += 1;
///         Ok(())
///     }
///     fn select(&self) -> Select {
///         Select::Topic(self.0.clone())
///     }
///     fn snapshot(&self) -> Option<Codec<u64>> {
///         Some(Codec::new("length", 1).of(&self.0))
///     }
/// }
/// ```
pub struct Codec<S> {
    /// What the snapshots are found by, each part after its length, so that no two lists of parts are one text.
    parts: String,
    name: &'static str,
    encode: fn(&S) -> Result<Vec<u8>, Error>,
    decode: fn(&[u8]) -> Result<S, Error>,
}

impl<S: Serialize + DeserializeOwned + PartialEq> Codec<S> {
    /// Snapshots of the fold with this name and version, as JSON.
    ///
    /// A state that does not come back equal is not kept, which costs one comparison for each snapshot that is written.
    pub fn new(name: &'static str, version: u32) -> Self {
        let codec = Self {
            parts: String::new(),
            name,
            encode,
            decode,
        };
        codec.of(name).of(version).of(std::any::type_name::<S>())
    }
}

impl<S> Codec<S> {
    /// Tells this fold apart from others of its name: a value of it that its states depend on.
    #[must_use]
    pub fn of(mut self, parameter: impl fmt::Display) -> Self {
        let parameter = parameter.to_string();
        // Writing to a string cannot fail.
        let _ = write!(self.parts, "{}:{parameter},", parameter.len());
        self
    }

    /// What a store finds the snapshots by.
    pub fn key(&self) -> String {
        let hash = Digest::derive("neuron-snapshot-v1", self.parts.as_bytes());
        // The name is for whoever looks into the file.
        format!("{}:{hash}", self.name)
    }

    /// Writes a state down.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] for one of more than [`limits::SNAPSHOT_BYTES_MAX`]; [`ErrorKind::Misuse`] for one that
    /// cannot be written as JSON, or that is another one when it is read back.
    pub fn encode(&self, state: &S) -> Result<Vec<u8>, Error> {
        (self.encode)(state).map_err(|error| error.context(format!("a state of the fold `{}`", self.name)))
    }

    /// Reads a state back.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if the bytes are no such state.
    pub fn decode(&self, bytes: &[u8]) -> Result<S, Error> {
        (self.decode)(bytes).map_err(|error| error.context(format!("a state of the fold `{}`", self.name)))
    }
}

/// Takes what is written until there is too much of it.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > limits::SNAPSHOT_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn encode<S: Serialize + DeserializeOwned + PartialEq>(state: &S) -> Result<Vec<u8>, Error> {
    let mut bytes = Bounded(Vec::new());
    serde_json::to_writer(&mut bytes, state).map_err(|error| {
        if error.is_io() {
            let max = limits::SNAPSHOT_BYTES_MAX;
            return Error::new(ErrorKind::TooLarge, format!("it takes more than {max} bytes"));
        }
        Error::new(ErrorKind::Misuse, error)
    })?;
    if decode::<S>(&bytes.0).is_ok_and(|back| back == *state) {
        return Ok(bytes.0);
    }
    let why = "it is another one when it is read back: serialise every part of it";
    Err(Error::new(ErrorKind::Misuse, why))
}

fn decode<S: DeserializeOwned>(bytes: &[u8]) -> Result<S, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::new(ErrorKind::Schema, error))
}

impl<S> fmt::Debug for Codec<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Codec").field(&self.key()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::Codec;
    use crate::{ErrorKind, limits};

    #[test]
    fn folds_that_differ_in_name_version_parameters_or_state_have_snapshots_of_their_own() {
        let keys = [
            Codec::<u64>::new("a", 1).key(),
            Codec::<u64>::new("b", 1).key(),
            Codec::<u64>::new("a", 2).key(),
            Codec::<u32>::new("a", 1).key(),
            Codec::<u64>::new("a", 1).of("x").key(),
            Codec::<u64>::new("a", 1).of("x").of("").key(),
            Codec::<u64>::new("a", 1).of("x,0:").key(),
            Codec::<u64>::new("a", 1).of("y").key(),
        ];
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len(), "{keys:?}");
        assert_eq!(
            Codec::<u64>::new("a", 1).of(7).key(),
            Codec::<u64>::new("a", 1).of("7").key()
        );
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Forgetful {
        told: u64,
        #[serde(skip)]
        hidden: u64,
    }

    #[test]
    fn a_state_that_would_not_come_back_equal_is_not_written() {
        let codec = Codec::<Forgetful>::new("forgetful", 1);
        let whole = Forgetful { told: 1, hidden: 0 };
        assert_eq!(codec.decode(&codec.encode(&whole).unwrap()).unwrap(), whole);
        let error = codec.encode(&Forgetful { told: 1, hidden: 2 }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.to_string().contains("`forgetful`"), "{error}");
        let codec = Codec::<f64>::new("float", 1);
        assert_eq!(codec.encode(&f64::NAN).unwrap_err().kind(), ErrorKind::Misuse);
    }

    #[test]
    fn a_state_that_is_too_large_is_not_written() {
        let codec = Codec::<String>::new("large", 1);
        let room = limits::SNAPSHOT_BYTES_MAX - 2;
        assert!(codec.encode(&"x".repeat(room)).is_ok());
        let error = codec.encode(&"x".repeat(room + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(
            error.to_string().contains(&limits::SNAPSHOT_BYTES_MAX.to_string()),
            "{error}"
        );
    }
}
