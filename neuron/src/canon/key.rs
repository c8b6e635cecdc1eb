//! Values that must be text: the keys of a map, and the raw JSON that some types carry.

use serde::{Serialize, Serializer, ser::Impossible};

use super::{fault::Fault, number};

/// Takes a scalar as text and hands it on; everything else is refused.
pub(super) struct Text<F>(pub(super) F);

impl<F: FnOnce(&str) -> Result<(), Fault>> Text<F> {
    fn integer(self, integer: impl itoa::Integer) -> Result<(), Fault> {
        (self.0)(itoa::Buffer::new().format(integer))
    }

    fn written(self, write: impl FnOnce(&mut String) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut text = String::new();
        write(&mut text)?;
        (self.0)(&text)
    }
}

#[cold]
fn refused<T>(what: &str) -> Result<T, Fault> {
    Err(Fault::malformed(format_args!(
        "{what} cannot be a key of a JSON object; use a string, a number or a bool"
    )))
}

type Never = Impossible<(), Fault>;

impl<F: FnOnce(&str) -> Result<(), Fault>> Serializer for Text<F> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    fn serialize_str(self, text: &str) -> Result<(), Fault> {
        (self.0)(text)
    }
    fn serialize_bool(self, value: bool) -> Result<(), Fault> {
        (self.0)(if value { "true" } else { "false" })
    }
    fn serialize_char(self, value: char) -> Result<(), Fault> {
        (self.0)(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_i8(self, value: i8) -> Result<(), Fault> {
        self.integer(value)
    }
    fn serialize_i16(self, value: i16) -> Result<(), Fault> {
        self.integer(value)
    }
    fn serialize_i32(self, value: i32) -> Result<(), Fault> {
        self.integer(value)
    }
    fn serialize_i64(self, value: i64) -> Result<(), Fault> {
        self.integer(value)
    }
    fn serialize_u8(self, value: u8) -> Result<(), Fault> {
        self.integer(value)
    }
    fn serialize_u16(self, value: u16) -> Result<(), Fault> {
        self.integer(value)
    }
    fn serialize_u32(self, value: u32) -> Result<(), Fault> {
        self.integer(value)
    }
    fn serialize_u64(self, value: u64) -> Result<(), Fault> {
        self.integer(value)
    }
    fn serialize_i128(self, value: i128) -> Result<(), Fault> {
        self.written(|text| number::push_wide(text, value))
    }
    fn serialize_u128(self, value: u128) -> Result<(), Fault> {
        self.written(|text| number::push_wide(text, value))
    }
    fn serialize_f32(self, value: f32) -> Result<(), Fault> {
        self.serialize_f64(f64::from(value))
    }
    fn serialize_f64(self, value: f64) -> Result<(), Fault> {
        self.written(|text| number::push_double(text, value))
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Fault> {
        (self.0)(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }
    fn serialize_none(self) -> Result<(), Fault> {
        refused("null")
    }
    fn serialize_unit(self) -> Result<(), Fault> {
        refused("null")
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Fault> {
        refused("null")
    }
    fn serialize_bytes(self, _: &[u8]) -> Result<(), Fault> {
        refused("an array of bytes")
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Fault> {
        refused("an enum variant with a value")
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Never, Fault> {
        refused("an array")
    }
    fn serialize_tuple(self, _: usize) -> Result<Never, Fault> {
        refused("an array")
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Never, Fault> {
        refused("an array")
    }
    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Never, Fault> {
        refused("an enum variant with a value")
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Never, Fault> {
        refused("an object")
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Never, Fault> {
        refused("an object")
    }
    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Never, Fault> {
        refused("an enum variant with a value")
    }
    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Result<(), Fault> {
        (self.0)(&value.to_string())
    }
}
