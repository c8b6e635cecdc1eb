use std::{
    fmt,
    fs::File,
    io::{self, Cursor, Read},
};

use crate::{Error, Result};

/// What an artifact is made of: bytes, or a reader that is read once, piece by piece.
///
/// ```
/// use neuron::Content;
/// let bytes = Content::from("# Findings");
/// let streamed = Content::read(std::io::repeat(b'-'));
/// ```
pub struct Content {
    reader: Box<dyn Read + Send>,
    fault: Option<Error>,
}

impl Content {
    /// What a reader gives. It is read on a thread that may block, and not at all if the answer is on the log.
    pub fn read(reader: impl Read + Send + 'static) -> Self {
        Self {
            reader: Box::new(reader),
            fault: None,
        }
    }

    /// Tells a reader that failed from a store that did, once `stored` came of reading it.
    pub(crate) fn judge<T>(&mut self, stored: Result<T, Error>) -> Result<Result<T, Error>, Error> {
        match self.fault.take() {
            Some(fault) => Ok(Err(fault)),
            None => stored.map(Ok),
        }
    }
}

impl Read for Content {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reader.read(into).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.fault = Some(Error::record(error.to_string().into()).context("the artifact cannot be read"));
            }
        })
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").finish_non_exhaustive()
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::read(Cursor::new(bytes))
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl<const N: usize> From<&[u8; N]> for Content {
    fn from(bytes: &[u8; N]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<File> for Content {
    fn from(file: File) -> Self {
        Self::read(file)
    }
}
