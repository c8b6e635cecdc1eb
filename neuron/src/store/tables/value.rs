//! What fits a column, and parameters of a statement from anything that serialises.

use serde::{
    Serialize, Serializer,
    ser::{self, Error as _},
};

use crate::{Error, ErrorKind, Result, secret::hidden_in};

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// The parameters of one statement.
#[derive(Debug, PartialEq)]
pub(crate) enum Parameters {
    /// For `?1, ?2, …`.
    Listed(Vec<Value>),
    /// For `:name`, `@name` or `$name`.
    Named(Vec<(String, Value)>),
}

impl Parameters {
    pub(crate) fn of(given: &impl Serialize) -> Result<Self, Error> {
        let misuse = |why: &dyn std::fmt::Display| Error::new(ErrorKind::Misuse, format!("the parameters: {why}"));
        let (given, hidden) = hidden_in(|| given.serialize(Reader));
        if hidden {
            return Err(misuse(
                &"a `Secret` is not written by itself: give `.expose()` if the table is meant to hold it",
            ));
        }
        let listed = |parts: Vec<Given>| parts.into_iter().map(Given::value).collect::<Result<_, _>>();
        match given.map_err(|error| misuse(&error))? {
            Given::Column(Value::Null) => Ok(Self::Listed(Vec::new())),
            Given::List(parts) => listed(parts).map(Self::Listed).map_err(|error| misuse(&error)),
            Given::Named(fields) => {
                let fields = fields.into_iter().map(|(name, given)| match given.value() {
                    Ok(value) => Ok((name, value)),
                    Err(error) => Err(misuse(&format!("`{name}`: {error}"))),
                });
                fields.collect::<Result<_, _>>().map(Self::Named)
            }
            one => listed(vec![one]).map(Self::Listed).map_err(|error| misuse(&error)),
        }
    }
}

/// What was given, before it is known whether it is a column or several.
enum Given {
    Column(Value),
    /// One byte: a list of them is a blob.
    Byte(u8),
    List(Vec<Given>),
    Named(Vec<(String, Given)>),
}

type Refused = serde_json::Error;

impl Given {
    fn value(self) -> Result<Value, Refused> {
        let byte = |part: &Self| match part {
            Self::Byte(byte) => Ok(*byte),
            _ => Err(Refused::custom(
                "a list fits no column, unless it is one of bytes: write it as JSON text",
            )),
        };
        match self {
            Self::Column(value) => Ok(value),
            Self::Byte(byte) => Ok(Value::Integer(byte.into())),
            Self::List(parts) => parts.iter().map(byte).collect::<Result<_, _>>().map(Value::Blob),
            Self::Named(_) => Err(Refused::custom("a struct or map fits no column: write it as JSON text")),
        }
    }
}

struct Reader;

/// A list or a struct being read.
#[derive(Default)]
struct Parts {
    list: Vec<Given>,
    named: Vec<(String, Given)>,
    key: String,
}

impl Parts {
    fn add(&mut self, part: &(impl Serialize + ?Sized)) -> Result<(), Refused> {
        self.list.push(part.serialize(Reader)?);
        Ok(())
    }

    fn add_named(&mut self, name: &str, part: &(impl Serialize + ?Sized)) -> Result<(), Refused> {
        self.named.push((name.to_owned(), part.serialize(Reader)?));
        Ok(())
    }
}

fn integer(value: impl TryInto<i64>) -> Result<Given, Refused> {
    let value = value.try_into();
    let value =
        value.map_err(|_| Refused::custom("an integer beyond 64 bits with sign fits no column: write it as text"))?;
    Ok(Given::Column(Value::Integer(value)))
}

fn variant() -> Refused {
    Refused::custom("an enum with fields fits no column: write it as JSON text")
}

macro_rules! integers {
    ($($method:ident $type:ty)*) => {$(
        fn $method(self, value: $type) -> Result<Given, Refused> {
            integer(value)
        }
    )*};
}

impl Serializer for Reader {
    type Ok = Given;
    type Error = Refused;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = ser::Impossible<Given, Refused>;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = ser::Impossible<Given, Refused>;

    integers! {
        serialize_i8 i8 serialize_i16 i16 serialize_i32 i32 serialize_i64 i64 serialize_i128 i128
        serialize_u16 u16 serialize_u32 u32 serialize_u64 u64 serialize_u128 u128
    }

    fn serialize_bool(self, value: bool) -> Result<Given, Refused> {
        integer(value)
    }

    fn serialize_u8(self, value: u8) -> Result<Given, Refused> {
        Ok(Given::Byte(value))
    }

    fn serialize_f32(self, value: f32) -> Result<Given, Refused> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<Given, Refused> {
        if value.is_nan() {
            return Err(Refused::custom("NaN would become NULL: give an option"));
        }
        Ok(Given::Column(Value::Real(value)))
    }

    fn serialize_char(self, value: char) -> Result<Given, Refused> {
        Ok(Given::Column(Value::Text(value.into())))
    }

    fn serialize_str(self, value: &str) -> Result<Given, Refused> {
        Ok(Given::Column(Value::Text(value.to_owned())))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Given, Refused> {
        Ok(Given::Column(Value::Blob(value.to_owned())))
    }

    fn serialize_none(self) -> Result<Given, Refused> {
        Ok(Given::Column(Value::Null))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Given, Refused> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Given, Refused> {
        Ok(Given::Column(Value::Null))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Given, Refused> {
        Ok(Given::Column(Value::Null))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<Given, Refused> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Given, Refused> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Given, Refused> {
        Err(variant())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts, Refused> {
        Ok(Parts::default())
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts, Refused> {
        Ok(Parts::default())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts, Refused> {
        Ok(Parts::default())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Refused> {
        Err(variant())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts, Refused> {
        Ok(Parts::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts, Refused> {
        Ok(Parts::default())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Refused> {
        Err(variant())
    }
}

macro_rules! lists {
    ($($trait:ident $method:ident)*) => {$(
        impl ser::$trait for Parts {
            type Ok = Given;
            type Error = Refused;

            fn $method<T: Serialize + ?Sized>(&mut self, part: &T) -> Result<(), Refused> {
                self.add(part)
            }

            fn end(self) -> Result<Given, Refused> {
                Ok(Given::List(self.list))
            }
        }
    )*};
}

lists! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
}

impl ser::SerializeStruct for Parts {
    type Ok = Given;
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, part: &T) -> Result<(), Refused> {
        self.add_named(name, part)
    }

    fn end(self) -> Result<Given, Refused> {
        Ok(Given::Named(self.named))
    }
}

impl ser::SerializeMap for Parts {
    type Ok = Given;
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refused> {
        match key.serialize(Reader)? {
            Given::Column(Value::Text(key)) => self.key = key,
            _ => return Err(Refused::custom("the keys of a map are names of parameters: give text")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, part: &T) -> Result<(), Refused> {
        let key = std::mem::take(&mut self.key);
        self.add_named(&key, part)
    }

    fn end(self) -> Result<Given, Refused> {
        Ok(Given::Named(self.named))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Secret;

    #[derive(Serialize)]
    enum Class {
        First,
    }

    #[derive(Serialize)]
    struct Seat<'a> {
        row: u8,
        name: &'a str,
        photo: Vec<u8>,
    }

    fn listed(given: &impl Serialize) -> Vec<Value> {
        match Parameters::of(given).unwrap() {
            Parameters::Listed(values) => values,
            Parameters::Named(_) => unreachable!("named"),
        }
    }

    #[test]
    fn each_sort_of_value_has_its_column() {
        let text = |text: &str| Value::Text(text.into());
        let given = (true, 7u8, -3i64, 1.5, 'c', "s", Class::First, None::<u8>, Some(2));
        let wanted = [
            Value::Integer(1),
            Value::Integer(7),
            Value::Integer(-3),
            Value::Real(1.5),
            text("c"),
            text("s"),
            text("First"),
            Value::Null,
            Value::Integer(2),
        ];
        assert_eq!(listed(&given), wanted);
        assert_eq!(listed(&()), []);
        assert_eq!(listed(&"one"), [text("one")]);
        assert_eq!(listed(&[1, 2]), [Value::Integer(1), Value::Integer(2)]);
        assert_eq!(listed(&(vec![1u8, 2],)), [Value::Blob(vec![1, 2])]);
    }

    #[test]
    fn a_struct_and_a_map_give_their_names() {
        let seat = Seat {
            row: 12,
            name: "ada",
            photo: vec![9],
        };
        let wanted = vec![
            ("row".to_owned(), Value::Integer(12)),
            ("name".to_owned(), Value::Text("ada".into())),
            ("photo".to_owned(), Value::Blob(vec![9])),
        ];
        assert_eq!(Parameters::of(&seat).unwrap(), Parameters::Named(wanted));
        let map = BTreeMap::from([("row", 12)]);
        let wanted = vec![("row".to_owned(), Value::Integer(12))];
        assert_eq!(Parameters::of(&map).unwrap(), Parameters::Named(wanted));
    }

    #[test]
    fn what_fits_no_column_is_refused_with_what_to_write() {
        let refused = |given: &dyn Fn() -> Result<Parameters, Error>| {
            let error = given().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            error.to_string()
        };
        assert!(refused(&|| Parameters::of(&(vec![1u16],))).contains("JSON text"));
        assert!(refused(&|| Parameters::of(&(BTreeMap::from([("a", 1)]),))).contains("JSON text"));
        assert!(refused(&|| Parameters::of(&(u64::MAX,))).contains("as text"));
        assert!(refused(&|| Parameters::of(&(f64::NAN,))).contains("option"));
        let key = Secret::new("sk-1".to_owned());
        let error = refused(&|| Parameters::of(&(&key,)));
        assert!(error.contains(".expose()") && !error.contains("sk-1"), "{error}");
    }
}
