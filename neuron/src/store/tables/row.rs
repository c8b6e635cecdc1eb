//! Rows as types.

use std::vec;

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, Error as _, IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};

use super::Value;
use crate::{Error, ErrorKind, Result};

type Refused = serde_json::Error;

/// Reads a row as a type.
pub(super) fn read<T: DeserializeOwned>(names: &[String], values: Vec<Value>) -> Result<T, Error> {
    T::deserialize(Row { names, values }).map_err(|error| {
        let (columns, wanted) = (names.join("`, `"), std::any::type_name::<T>());
        let why = format!("a row with the columns `{columns}` is no `{wanted}`: {error}");
        Error::new(ErrorKind::Schema, why)
    })
}

struct Row<'a> {
    names: &'a [String],
    values: Vec<Value>,
}

impl Row<'_> {
    /// The value, if there is one column.
    fn one(self) -> Result<Value, Refused> {
        match <[Value; 1]>::try_from(self.values) {
            Ok([value]) => Ok(value),
            Err(values) => {
                let why = format!(
                    "{} columns are not one value: read them as a tuple or struct",
                    values.len()
                );
                Err(Refused::custom(why))
            }
        }
    }
}

macro_rules! one_column {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            self.one()?.$method(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Row<'_> {
    type Error = Refused;

    one_column! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit
        deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        if self.values.len() == 1 {
            return self.one()?.deserialize_any(visitor);
        }
        self.deserialize_map(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        if let [Value::Blob(_)] = self.values[..] {
            return self.one()?.deserialize_seq(visitor);
        }
        let mut values = SeqDeserializer::new(self.values.into_iter());
        let read = visitor.visit_seq(&mut values)?;
        values.end()?;
        Ok(read)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let names = self.names.iter().map(String::as_str);
        visitor.visit_map(MapDeserializer::new(names.zip(self.values)))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.one()?.deserialize_enum(name, variants, visitor)
    }
}

impl IntoDeserializer<'_, Refused> for Value {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Value {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Integer(value) => visitor.visit_i64(value),
            Self::Real(value) => visitor.visit_f64(value),
            Self::Text(value) => visitor.visit_string(value),
            Self::Blob(value) => visitor.visit_byte_buf(value),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self {
            Self::Integer(value @ (0 | 1)) => visitor.visit_bool(value == 1),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self {
            Self::Null => visitor.visit_none(),
            some => visitor.visit_some(some),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let Self::Blob(bytes) = self else {
            return self.deserialize_any(visitor);
        };
        visitor.visit_seq(SeqDeserializer::<vec::IntoIter<u8>, Refused>::new(bytes.into_iter()))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match self {
            Self::Text(name) => visitor.visit_enum(name.into_deserializer()),
            other => other.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple tuple_struct
        map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    enum Class {
        First,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Seat {
        row: u8,
        class: Class,
        photo: Option<Vec<u8>>,
        paid: bool,
    }

    fn row() -> (Vec<String>, Vec<Value>) {
        let names = ["row", "class", "photo", "paid"].map(String::from);
        let values = [
            Value::Integer(12),
            Value::Text("First".into()),
            Value::Blob(vec![9]),
            Value::Integer(1),
        ];
        (names.into(), values.into())
    }

    #[test]
    fn a_row_is_a_struct_by_name_and_a_tuple_by_order() {
        let (names, values) = row();
        let seat: Seat = read(&names, values.clone()).unwrap();
        let wanted = Seat {
            row: 12,
            class: Class::First,
            photo: Some(vec![9]),
            paid: true,
        };
        assert_eq!(seat, wanted);
        let listed: (u8, Class, Vec<u8>, bool) = read(&names, values).unwrap();
        assert_eq!(listed, (12, Class::First, vec![9], true));
    }

    #[test]
    fn one_column_is_one_value() {
        let one = |value: Value| (vec!["n".to_owned()], vec![value]);
        let (names, values) = one(Value::Integer(7));
        assert_eq!(read::<u64>(&names, values).unwrap(), 7);
        let (names, values) = one(Value::Null);
        assert_eq!(read::<Option<u64>>(&names, values).unwrap(), None);
        let (names, values) = one(Value::Blob(vec![1, 2]));
        assert_eq!(read::<Vec<u8>>(&names, values).unwrap(), [1, 2]);
        let (names, values) = one(Value::Integer(7));
        assert_eq!(read::<(i64,)>(&names, values).unwrap(), (7,));
    }

    #[test]
    fn a_row_of_another_shape_is_refused_with_its_columns() {
        let (names, values) = row();
        let error = read::<u64>(&names, values.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Schema);
        assert!(
            error.message().contains("`row`, `class`") && error.message().contains("tuple"),
            "{error}"
        );
        assert!(
            read::<(u8, Class)>(&names, values).is_err(),
            "none of its columns is left out in silence"
        );
    }
}
