//! The serde serialiser: canonical text straight from a typed value.

use std::fmt::{Display, Write as _};

use serde::{Serialize, Serializer};

use super::{
    compound::{Array, Fields, Object},
    fault::Fault,
    number::{push_double, push_integer, push_wide},
    parse::RAW,
    text::{Escaping, push_string},
    writer::Writer,
};

impl<'a> Serializer for &'a mut Writer {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Array<'a>;
    type SerializeTuple = Array<'a>;
    type SerializeTupleStruct = Array<'a>;
    type SerializeTupleVariant = Array<'a>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Object<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), Fault> {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }
    fn serialize_i8(self, value: i8) -> Result<(), Fault> {
        self.serialize_i64(value.into())
    }
    fn serialize_i16(self, value: i16) -> Result<(), Fault> {
        self.serialize_i64(value.into())
    }
    fn serialize_i32(self, value: i32) -> Result<(), Fault> {
        self.serialize_i64(value.into())
    }
    fn serialize_i64(self, value: i64) -> Result<(), Fault> {
        push_integer(&mut self.out, value);
        Ok(())
    }
    fn serialize_i128(self, value: i128) -> Result<(), Fault> {
        push_wide(&mut self.out, value)
    }
    fn serialize_u8(self, value: u8) -> Result<(), Fault> {
        self.serialize_u64(value.into())
    }
    fn serialize_u16(self, value: u16) -> Result<(), Fault> {
        self.serialize_u64(value.into())
    }
    fn serialize_u32(self, value: u32) -> Result<(), Fault> {
        self.serialize_u64(value.into())
    }
    fn serialize_u64(self, value: u64) -> Result<(), Fault> {
        push_integer(&mut self.out, value);
        Ok(())
    }
    fn serialize_u128(self, value: u128) -> Result<(), Fault> {
        push_wide(&mut self.out, value)
    }
    fn serialize_f32(self, value: f32) -> Result<(), Fault> {
        self.serialize_f64(value.into())
    }
    fn serialize_f64(self, value: f64) -> Result<(), Fault> {
        push_double(&mut self.out, value)
    }
    fn serialize_char(self, value: char) -> Result<(), Fault> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, value: &str) -> Result<(), Fault> {
        push_string(&mut self.out, value);
        Ok(())
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Fault> {
        self.collect_seq(value)
    }
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Fault> {
        self.out.push('"');
        write!(Escaping(&mut self.out), "{value}").map_err(|_| Fault::malformed("its `Display` failed"))?;
        self.out.push('"');
        Ok(())
    }
    fn serialize_none(self) -> Result<(), Fault> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Fault> {
        self.out.push_str("null");
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Fault> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Fault> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        let mut outer = self.open()?;
        self.begin(&mut outer, variant, 0);
        value.serialize(&mut *self).map_err(|fault| fault.key(variant))?;
        self.end();
        self.close(&outer)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Array<'a>, Fault> {
        Array::open(self, None)
    }
    fn serialize_tuple(self, _: usize) -> Result<Array<'a>, Fault> {
        Array::open(self, None)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Array<'a>, Fault> {
        Array::open(self, None)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Array<'a>, Fault> {
        Array::open(self, Some(variant))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Object<'a>, Fault> {
        Object::open(self, None)
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'a>, Fault> {
        if name == RAW {
            return Ok(Fields::Raw {
                writer: self,
                canonical: false,
            });
        }
        Object::open(self, None).map(Fields::Object)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Object<'a>, Fault> {
        Object::open(self, Some(variant))
    }
}
