//! A value of a format that has buffered it, on its way to canonical text.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};

/// Any JSON value. Members are kept as a list, so that a duplicate key is still seen when it is written.
pub(super) enum Any {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Double(f64),
    Text(String),
    Array(Vec<Any>),
    Object(Vec<(String, Any)>),
}

impl Serialize for Any {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Double(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(members) => serializer.collect_map(members.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor)
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Any, E> {
        Ok(Any::Null)
    }
    fn visit_none<E: de::Error>(self) -> Result<Any, E> {
        Ok(Any::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Any, D::Error> {
        Any::deserialize(deserializer)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Any, D::Error> {
        Any::deserialize(deserializer)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Any, E> {
        Ok(Any::Bool(value))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Any, E> {
        Ok(Any::Unsigned(value))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Any, E> {
        Ok(Any::Signed(value))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Any, E> {
        Ok(Any::Double(value))
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Any, E> {
        Ok(Any::Text(value.to_owned()))
    }
    fn visit_string<E: de::Error>(self, value: String) -> Result<Any, E> {
        Ok(Any::Text(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Any, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Any::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Any, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Any::Object(members))
    }
}
