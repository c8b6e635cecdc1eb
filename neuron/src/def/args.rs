use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, value::RawValue};

use super::{Form, Param, Payload, sets};
use crate::{Error, ErrorKind, Json, Result, secret};

/// The parameters of a function as a tuple; on the log an object keyed by parameter name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a call",
    note = "at most 8 arguments, each of which can go on the log; several values that belong together are one struct"
)]
pub trait Args: Sized + Send + 'static {
    /// As a caller gives them: one argument bare, several as a tuple, none as `()`.
    type Bare;

    /// The tuple of what a caller gave.
    fn from_bare(bare: Self::Bare) -> Self;

    /// Writes the arguments that `keep` wants, by name.
    #[doc(hidden)]
    fn write<M: SerializeMap>(&self, params: &[Param], keep: Keep, map: &mut M) -> Result<(), M::Error>;

    /// Reads them back.
    #[doc(hidden)]
    fn read(params: &[Param], fields: &Fields<'_>) -> Result<Self, Error>;

    /// The schema of each, in order.
    #[doc(hidden)]
    fn schemas() -> Vec<Value>;
}

/// Which arguments are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All.
    All,
    /// Those that are part of a call's identity.
    Identity,
}

/// Arguments in the three forms that the engine needs.
#[derive(Clone)]
pub struct Encoded {
    /// On the log: secrets hidden, sets in order.
    pub recorded: Json,
    /// In memory: secrets as they are.
    pub revealed: Json,
    /// In the hash: as recorded, without ignored parameters.
    pub identity: Json,
}

impl fmt::Debug for Encoded {
    /// As it stands on the log: what is printed may end up in a trace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Encoded").field(&self.recorded).finish()
    }
}

/// Encodes the arguments of one call.
pub(super) fn encode<A: Args>(args: &A, params: &'static [Param], form: &Form) -> Result<Encoded, Error> {
    let object = |keep| Object { args, params, keep };
    let (recorded, secret) = secret::hidden_in(|| Json::of(&object(Keep::All)));
    let recorded = recorded?;
    let revealed = if secret {
        let _revealed = secret::Revealed::new();
        Json::of(&object(Keep::All))?
    } else {
        recorded.clone()
    };
    let recorded = form.in_order(recorded)?;
    let identity = if params.iter().any(|param| param.ignored) {
        form.in_order(Json::of(&object(Keep::Identity))?)?
    } else {
        recorded.clone()
    };
    Ok(Encoded {
        recorded,
        revealed,
        identity,
    })
}

/// Arguments as one object.
struct Object<'a, A> {
    args: &'a A,
    params: &'a [Param],
    keep: Keep,
}

impl<A: Args> Serialize for Object<'_, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.args.write(self.params, self.keep, &mut map)?;
        map.end()
    }
}

/// The fields of recorded or foreign arguments, not yet decoded.
#[derive(Debug)]
pub struct Fields<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Fields<'a> {
    pub(super) fn of(params: &[Param], json: &'a Json) -> Result<Self, Error> {
        let fields: BTreeMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(json.as_str())
            .map_err(|_| Error::new(ErrorKind::Schema, "arguments are an object keyed by parameter name"))?;
        let unknown = fields
            .keys()
            .find(|name| params.iter().all(|param| param.name != name.as_ref()));
        match unknown {
            None => Ok(Self(fields)),
            Some(name) => {
                let names: Vec<_> = params.iter().map(|param| format!("`{}`", param.name)).collect();
                let known = if names.is_empty() {
                    "there are none".into()
                } else {
                    names.join(", ")
                };
                Err(Error::new(
                    ErrorKind::Schema,
                    format!("there is no parameter `{name}`: {known}"),
                ))
            }
        }
    }

    /// One argument; one that is absent reads as `null`, so that what is optional may be left out.
    fn take<T: Payload>(&self, param: &Param) -> Result<T, Error> {
        let name = param.name;
        match self.0.get(name) {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|error| {
                Error::new(
                    ErrorKind::Schema,
                    format!("the argument `{name}` does not decode: {error}"),
                )
            }),
            None => serde_json::from_str("null")
                .map_err(|_| Error::new(ErrorKind::Schema, format!("the argument `{name}` is missing"))),
        }
    }
}

/// Decodes recorded or in-memory arguments.
pub(super) fn decode<A: Args>(params: &[Param], json: &Json) -> Result<A, Error> {
    A::read(params, &Fields::of(params, json)?)
}

macro_rules! arities {
    ($(($($A:ident $i:tt),*) $bare:ty, $given:pat => $tuple:expr;)*) => {$(
        impl<$($A: Payload),*> Args for ($($A,)*) {
            type Bare = $bare;

            fn from_bare($given: $bare) -> Self {
                $tuple
            }

            #[allow(unused_variables, reason = "of no use without parameters")]
            fn write<Map: SerializeMap>(&self, params: &[Param], keep: Keep, map: &mut Map) -> Result<(), Map::Error> {
                $(if keep == Keep::All || !params[$i].ignored {
                    map.serialize_entry(params[$i].name, &self.$i)?;
                })*
                Ok(())
            }

            #[allow(unused_variables, clippy::unused_unit, reason = "of no use without parameters")]
            fn read(params: &[Param], fields: &Fields<'_>) -> Result<Self, Error> {
                Ok(($(fields.take::<$A>(&params[$i])?,)*))
            }

            fn schemas() -> Vec<Value> {
                vec![$(sets::schema_of::<$A>()),*]
            }
        }

    )*};
}

arities! {
    () (), () => ();
    (A 0) A, a => (a,);
    (A 0, B 1) (A, B), all => all;
    (A 0, B 1, E 2) (A, B, E), all => all;
    (A 0, B 1, E 2, G 3) (A, B, E, G), all => all;
    (A 0, B 1, E 2, G 3, H 4) (A, B, E, G, H), all => all;
    (A 0, B 1, E 2, G 3, H 4, I 5) (A, B, E, G, H, I), all => all;
    (A 0, B 1, E 2, G 3, H 4, I 5, J 6) (A, B, E, G, H, I, J), all => all;
    (A 0, B 1, E 2, G 3, H 4, I 5, J 6, K 7) (A, B, E, G, H, I, J, K), all => all;
}
