//! The lines of a file from outside, each within its bound.

use std::io::{BufRead, Read as _};

use crate::{Digest, DigestStream, Error, ErrorKind, Result, limits};

/// The lines of a file, one at a time.
pub(super) struct Lines<R> {
    read: R,
    text: Vec<u8>,
    pub(super) number: u64,
    pub(super) bytes: u64,
    /// Of all lines before the one at hand, and then of that one too.
    pub(super) hash: DigestStream,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn of(read: R) -> Self {
        Self {
            read,
            text: Vec::new(),
            number: 0,
            bytes: 0,
            hash: Digest::stream(),
        }
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Result<Option<&str>, Error> {
        self.text.clear();
        self.number += 1;
        let most = limits::EXPORT_LINE_BYTES_MAX as u64;
        let read = (&mut self.read).take(most + 1).read_until(b'\n', &mut self.text);
        let read = read.map_err(|error| self.at(Error::from(error).context("the file cannot be read")))?;
        if read == 0 {
            return Ok(None);
        }
        if self.text.len() as u64 > most {
            let why = format!("it has more than {most} bytes, which no line of an export has");
            return Err(self.at(Error::new(ErrorKind::TooLarge, why)));
        }
        self.bytes += read as u64;
        self.hash.update(&self.text);
        let number = self.number;
        let text = std::str::from_utf8(&self.text);
        text.map(|text| Some(text.trim_end_matches('\n')))
            .map_err(|_| numbered(number, malformed("it is no UTF-8 text")))
    }

    /// An error of the line at hand.
    pub(super) fn at(&self, error: Error) -> Error {
        numbered(self.number, error)
    }

    pub(super) fn bad(&self, why: &str) -> Error {
        self.at(malformed(why))
    }
}

pub(super) fn numbered(number: u64, error: Error) -> Error {
    error.context(format!("line {number} is refused"))
}

pub(super) fn malformed(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Malformed, why)
}
