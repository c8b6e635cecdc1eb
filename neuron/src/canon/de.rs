//! Reading canonical text as a typed value, and saying where it does not fit.

use serde::de::DeserializeOwned;

use crate::{Error, ErrorKind};

use super::fault::Path;

pub(super) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| {
        let what = std::any::type_name::<T>();
        let message = match error.column() {
            0 => format!("this JSON does not decode as `{what}`: {error}"),
            column => format!("`{}` does not decode as `{what}`: {error}", path_at(text, column)),
        };
        Error::new(ErrorKind::Schema, message)
    })
}

/// The innermost value that is open, or was the last to end, before byte `end` of canonical text.
fn path_at(text: &str, end: usize) -> Path {
    let bytes = &text.as_bytes()[..end.min(text.len())];
    let (mut open, mut at, mut key) = (Vec::new(), 0, None);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' => open.push(Place::Key(None)),
            b'[' => open.push(Place::Index(0)),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                while !matches!(bytes.get(at), None | Some(b'"')) {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                key = text.get(start..at).and_then(|text| serde_json::from_str(text).ok());
            }
            b':' => {
                if let Some(Place::Key(name)) = open.last_mut() {
                    *name = key.take();
                }
            }
            b',' => match open.last_mut() {
                Some(Place::Index(index)) => *index += 1,
                Some(Place::Key(name)) => *name = None,
                None => {}
            },
            _ => {}
        }
    }
    let mut path = Path::root();
    for place in open {
        match place {
            Place::Key(Some(name)) => path.push_key(&name),
            Place::Key(None) => {}
            Place::Index(index) => path.push_index(index),
        }
    }
    path
}

enum Place {
    Key(Option<String>),
    Index(usize),
}
