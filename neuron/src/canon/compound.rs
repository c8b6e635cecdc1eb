//! Arrays, objects and enum variants being written.

use serde::{Serialize, ser};

use super::{
    fault::Fault,
    key::Text,
    parse::{CANONICAL, transcode},
    writer::{Open, Writer},
};

/// The object of one member that stands around the value of an enum variant.
struct Wrap {
    variant: &'static str,
    outer: Open,
}

impl Wrap {
    fn open(writer: &mut Writer, variant: Option<&'static str>) -> Result<Option<Self>, Fault> {
        let Some(variant) = variant else {
            return Ok(None);
        };
        let mut outer = writer.open()?;
        writer.begin(&mut outer, variant, 0);
        Ok(Some(Self { variant, outer }))
    }

    fn close(wrap: Option<&Self>, writer: &mut Writer) -> Result<(), Fault> {
        let Some(wrap) = wrap else { return Ok(()) };
        writer.end();
        writer.close(&wrap.outer)
    }

    fn locate(wrap: Option<&Self>, fault: Fault) -> Fault {
        match wrap {
            Some(wrap) => fault.key(wrap.variant),
            None => fault,
        }
    }
}

/// An array being written.
pub(super) struct Array<'a> {
    writer: &'a mut Writer,
    wrap: Option<Wrap>,
    next: usize,
}

impl<'a> Array<'a> {
    pub(super) fn open(writer: &'a mut Writer, variant: Option<&'static str>) -> Result<Self, Fault> {
        let wrap = Wrap::open(writer, variant)?;
        writer.enter().map_err(|fault| Wrap::locate(wrap.as_ref(), fault))?;
        writer.out.push('[');
        Ok(Self { writer, wrap, next: 0 })
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        if self.next > 0 {
            self.writer.out.push(',');
        }
        value
            .serialize(&mut *self.writer)
            .map_err(|fault| Wrap::locate(self.wrap.as_ref(), fault.index(self.next)))?;
        self.next += 1;
        Ok(())
    }

    fn close(self) -> Result<(), Fault> {
        self.writer.out.push(']');
        self.writer.leave();
        Wrap::close(self.wrap.as_ref(), self.writer)
    }
}

/// An object being written.
pub(super) struct Object<'a> {
    writer: &'a mut Writer,
    wrap: Option<Wrap>,
    open: Open,
}

impl<'a> Object<'a> {
    pub(super) fn open(writer: &'a mut Writer, variant: Option<&'static str>) -> Result<Self, Fault> {
        let wrap = Wrap::open(writer, variant)?;
        let open = writer.open().map_err(|fault| Wrap::locate(wrap.as_ref(), fault))?;
        Ok(Self { writer, wrap, open })
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        if let Err(fault) = value.serialize(&mut *self.writer) {
            return Err(Wrap::locate(self.wrap.as_ref(), fault.key(self.writer.key(&self.open))));
        }
        self.writer.end();
        Ok(())
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Fault> {
        self.writer.begin(&mut self.open, key, 0);
        self.value(value)
    }

    fn close(self) -> Result<(), Fault> {
        let closed = self.writer.close(&self.open);
        closed.map_err(|fault| Wrap::locate(self.wrap.as_ref(), fault))?;
        Wrap::close(self.wrap.as_ref(), self.writer)
    }
}

/// The fields of a struct, or the text of a value that is JSON already.
pub(super) enum Fields<'a> {
    Object(Object<'a>),
    Raw { writer: &'a mut Writer, canonical: bool },
}

impl ser::SerializeSeq for Array<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.item(value)
    }
    fn end(self) -> Result<(), Fault> {
        self.close()
    }
}

impl ser::SerializeTuple for Array<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.item(value)
    }
    fn end(self) -> Result<(), Fault> {
        self.close()
    }
}

impl ser::SerializeTupleStruct for Array<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.item(value)
    }
    fn end(self) -> Result<(), Fault> {
        self.close()
    }
}

impl ser::SerializeTupleVariant for Array<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.item(value)
    }
    fn end(self) -> Result<(), Fault> {
        self.close()
    }
}

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        let (writer, open) = (&mut *self.writer, &mut self.open);
        key.serialize(Text(|text: &str| {
            writer.begin(open, text, 0);
            Ok(())
        }))
        .map_err(|fault| Wrap::locate(self.wrap.as_ref(), fault))
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.value(value)
    }
    fn end(self) -> Result<(), Fault> {
        self.close()
    }
}

impl ser::SerializeStructVariant for Object<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Fault> {
        self.member(key, value)
    }
    fn end(self) -> Result<(), Fault> {
        self.close()
    }
}

impl ser::SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Fault> {
        match self {
            Self::Object(object) => object.member(key, value),
            Self::Raw {
                writer,
                canonical: true,
            } => value.serialize(Text(|text: &str| writer.embed(text))),
            Self::Raw { writer, .. } => value.serialize(Text(|text: &str| transcode(text, writer))),
        }
    }
    fn skip_field(&mut self, key: &'static str) -> Result<(), Fault> {
        if let Self::Raw { canonical, .. } = self {
            *canonical = key == CANONICAL;
        }
        Ok(())
    }
    fn end(self) -> Result<(), Fault> {
        match self {
            Self::Object(object) => object.close(),
            Self::Raw { .. } => Ok(()),
        }
    }
}
