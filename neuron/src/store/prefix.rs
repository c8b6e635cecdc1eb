//! Ids by their first hex digits.

use crate::{Digest, Error, ErrorKind, Result};

/// The first and the last id that begin with some hex digits.
#[derive(Debug)]
pub(crate) struct Prefix {
    pub(crate) first: [u8; 32],
    pub(crate) last: [u8; 32],
}

impl Prefix {
    pub(crate) fn parse(digits: &str) -> Result<Self, Error> {
        let lower = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        if digits.is_empty() || digits.len() > 64 || !lower {
            let shown = digits.escape_debug();
            let why = format!("`{shown}` is no beginning of an id: give 1 to 64 lower-case hex digits");
            return Err(Error::new(ErrorKind::Malformed, why));
        }
        let whole = |pad: &str| -> Result<[u8; 32], Error> {
            let text = format!("{digits}{}", pad.repeat(64 - digits.len()));
            Ok(*text.parse::<Digest>()?.as_bytes())
        };
        Ok(Self {
            first: whole("0")?,
            last: whole("f")?,
        })
    }

    pub(crate) fn holds(&self, id: &[u8]) -> bool {
        (&self.first[..]..=&self.last[..]).contains(&id)
    }
}
