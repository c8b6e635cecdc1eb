//! Canonical text as part of other JSON: read with every digit where the format offers the raw text.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};

use super::{Json, any::Any, parse::RAW};

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
