use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Error, Json, Payload, Result, def::in_order, secret};

/// Where an argument comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Input {
    /// It is known already.
    Value(Given),
    /// It is what another row (in a plan) or another package (on a board) gives; by its place, from 0.
    Wire(usize),
    /// It is a list of what several of them give.
    Wires(Vec<usize>),
    /// It is a list whose elements come from different places.
    List(Vec<Input>),
    /// It is a parameter of the plan itself; by its place, from 0.
    Param(usize),
}

/// A value given when the plan was written. Secrets in it are used and not declared.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    recorded: Json,
    revealed: Json,
}

impl Given {
    /// Takes a value.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) with the path, if it has no canonical form.
    pub fn of<T: Payload>(value: &T) -> Result<Self, Error> {
        let (recorded, secret) = secret::hidden_in(|| Json::of(value));
        let recorded = in_order::<T>(recorded?)?;
        let revealed = if secret {
            let _revealed = secret::Revealed::new();
            Json::of(value)?
        } else {
            recorded.clone()
        };
        Ok(Self { recorded, revealed })
    }

    /// As it is declared: secrets hidden.
    pub fn recorded(&self) -> &Json {
        &self.recorded
    }

    /// As it is used: secrets as they are.
    pub fn revealed(&self) -> &Json {
        &self.revealed
    }
}

impl fmt::Debug for Given {
    /// As it is declared: what is printed may end up in a trace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Given").field(&self.recorded).finish()
    }
}

impl From<Json> for Given {
    fn from(json: Json) -> Self {
        Self {
            recorded: json.clone(),
            revealed: json,
        }
    }
}

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.recorded.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for Given {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Json::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Json::json_schema(generator)
    }
}

impl Input {
    /// The places that must have given before this input is there.
    pub fn wires(&self) -> Vec<usize> {
        match self {
            Self::Value(_) | Self::Param(_) => Vec::new(),
            Self::Wire(at) => vec![*at],
            Self::Wires(all) => all.clone(),
            Self::List(all) => all.iter().flat_map(Self::wires).collect(),
        }
    }

    /// The input as an in-memory value, once its places have given.
    ///
    /// # Errors
    /// What `wire` and `param` say.
    pub fn resolve(
        &self,
        wire: &impl Fn(usize) -> Result<Json, Error>,
        param: &impl Fn(usize) -> Result<Json, Error>,
    ) -> Result<Json, Error> {
        match self {
            Self::Value(given) => Ok(given.revealed.clone()),
            Self::Wire(at) => wire(*at),
            Self::Param(at) => param(*at),
            Self::Wires(all) => Json::of(&all.iter().map(|at| wire(*at)).collect::<Result<Vec<_>, _>>()?),
            Self::List(all) => Json::of(
                &all.iter()
                    .map(|input| input.resolve(wire, param))
                    .collect::<Result<Vec<_>, _>>()?,
            ),
        }
    }

    /// One input for a list of them.
    pub(super) fn list(inputs: Vec<Self>) -> Self {
        let wires = inputs.iter().map(|input| match input {
            Self::Wire(at) => Some(*at),
            _ => None,
        });
        match wires.collect() {
            Some(wires) => Self::Wires(wires),
            None => Self::List(inputs),
        }
    }
}

/// What may be given where a `T` is wanted: a value, or the handle of one to come. `W` is where it is given: a
/// [`Plan`](crate::Plan), or the board of an orchestrator.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `{T}`, nor a handle of one",
    label = "expected `{T}` here, as a value or as a handle"
)]
pub trait IntoInput<W, T> {
    /// Where the argument comes from.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) with the path, if a value has no canonical form;
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for a handle of another plan.
    #[doc(hidden)]
    fn into_input(self, world: &W) -> Result<Input, Error>;
}

impl<W, T: Payload> IntoInput<W, T> for T {
    fn into_input(self, _: &W) -> Result<Input, Error> {
        Given::of(&self).map(Input::Value)
    }
}

impl<W> IntoInput<W, String> for &str {
    fn into_input(self, _: &W) -> Result<Input, Error> {
        Json::of(self).map(|json| Input::Value(json.into()))
    }
}

/// All arguments of a step or a package: one bare, several as a tuple, none as `()`.
#[diagnostic::on_unimplemented(
    message = "these are not the arguments `{T}`",
    label = "expected `{T}`, each as a value or as a handle",
    note = "one argument is passed bare, several as a tuple, none as `()`"
)]
pub trait Inputs<W, T> {
    /// Where each argument comes from, in order.
    ///
    /// # Errors
    /// As [`IntoInput::into_input`].
    #[doc(hidden)]
    fn into_inputs(self, world: &W) -> Result<Vec<Input>, Error>;
}

impl<W> Inputs<W, ()> for () {
    fn into_inputs(self, _: &W) -> Result<Vec<Input>, Error> {
        Ok(Vec::new())
    }
}

impl<W, A, IA: IntoInput<W, A>> Inputs<W, (A,)> for IA {
    fn into_inputs(self, world: &W) -> Result<Vec<Input>, Error> {
        Ok(vec![self.into_input(world)?])
    }
}

macro_rules! tuples {
    ($(($($A:ident $I:ident $i:tt),*))*) => {$(
        impl<W, $($A, $I: IntoInput<W, $A>),*> Inputs<W, ($($A,)*)> for ($($I,)*) {
            fn into_inputs(self, world: &W) -> Result<Vec<Input>, Error> {
                Ok(vec![$(self.$i.into_input(world)?),*])
            }
        }
    )*};
}

tuples! {
    (A IA 0, B IB 1)
    (A IA 0, B IB 1, C IC 2)
    (A IA 0, B IB 1, C IC 2, D ID 3)
    (A IA 0, B IB 1, C IC 2, D ID 3, E IE 4)
    (A IA 0, B IB 1, C IC 2, D ID 3, E IE 4, F IF 5)
    (A IA 0, B IB 1, C IC 2, D ID 3, E IE 4, F IF 5, G IG 6)
    (A IA 0, B IB 1, C IC 2, D ID 3, E IE 4, F IF 5, G IG 6, H IH 7)
}
