//! Reading canonical text: as a typed value, and as part of other JSON.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, Visitor},
};

use crate::{Error, ErrorKind};

use super::{Json, any::Any, fault::Path, ser::RAW};

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

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Under this name `serde_json` gives the text as it stands, with every digit and every duplicate key.
        deserializer.deserialize_newtype_struct(RAW, Whole)
    }
}

/// Takes the raw text where the format offers it, and whatever value there is elsewhere.
struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        match map.next_entry::<IgnoredAny, Raw>()? {
            Some((_, Raw(json))) => Ok(json),
            None => Err(A::Error::custom("expected raw JSON text")),
        }
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let value = Any::deserialize(deserializer)?;
        Json::of(&value).map_err(D::Error::custom)
    }
}

struct Raw(Json);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Json::parse(&text).map(Self).map_err(D::Error::custom)
    }
}
