//! From what was recorded to what the code reads now.

use std::{collections::HashMap, fmt};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Error, ErrorKind, Json, Result};

use super::{name::SchemaRef, usage::of};

type Step = Box<dyn Fn(Value) -> Result<Value, Error> + Send + Sync>;

/// Functions that bring a value from one schema to the next. A value takes as many as it needs.
///
/// A value that is valid under the present schema needs none.
///
/// ```
/// # use neuron::schema::{self, Upcasters};
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct V1 { name: String }
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct V2 { first: String, last: String }
///
/// let mut upcasters = Upcasters::default();
/// upcasters.register(|old: V1| Ok(V2 { first: old.name, last: String::new() }))?;
/// let (from, to) = (schema::of::<V1>()?.reference(), schema::of::<V2>()?.reference());
/// let value = upcasters.upcast(serde_json::json!({"name": "Ada"}), from, to)?;
/// assert_eq!(value, serde_json::json!({"first": "Ada", "last": ""}));
/// # Ok::<(), neuron::Error>(())
/// ```
#[derive(Default)]
pub struct Upcasters(HashMap<SchemaRef, (SchemaRef, Step)>);

impl Upcasters {
    /// Registers a function from an old type to its successor.
    ///
    /// # Errors
    /// As [`Upcasters::register_between`], and [`ErrorKind::Schema`] if a type's schema is not allowed.
    pub fn register<Old, New>(
        &mut self,
        step: impl Fn(Old) -> Result<New, Error> + Send + Sync + 'static,
    ) -> Result<(), Error>
    where
        Old: DeserializeOwned + JsonSchema + 'static,
        New: Serialize + JsonSchema + 'static,
    {
        let (from, to) = (of::<Old>()?.reference(), of::<New>()?.reference());
        self.register_between(from, to, move |value| {
            let old = Json::of(&value)?.decode()?;
            Ok(Json::of(&step(old)?)?.to_value())
        })
    }

    /// Registers a function between two schemas, for a type that this program no longer has.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if `from` has a function already, or if the way would lead back to `from`.
    pub fn register_between(
        &mut self,
        from: SchemaRef,
        to: SchemaRef,
        step: impl Fn(Value) -> Result<Value, Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        if self.0.contains_key(&from) {
            return Err(Error::new(
                ErrorKind::Misuse,
                format!("schema {from} has an upcaster already: register one for each schema"),
            ));
        }
        let mut next = Some(to);
        while let Some(at) = next {
            if at == from {
                return Err(Error::new(
                    ErrorKind::Misuse,
                    format!("an upcaster from {from} to {to} closes a circle: no schema may lead back to itself"),
                ));
            }
            next = self.0.get(&at).map(|(to, _)| *to);
        }
        self.0.insert(from, (to, Box::new(step)));
        Ok(())
    }

    /// Brings a value from one schema to another.
    ///
    /// # Errors
    /// [`ErrorKind::ReplayDecode`] if no way leads there, naming where it ends, or if a function on it fails.
    pub fn upcast(&self, mut value: Value, from: SchemaRef, to: SchemaRef) -> Result<Value, Error> {
        let mut at = from;
        // Registration admits no circle, so this ends.
        while at != to {
            let Some((next, step)) = self.0.get(&at) else {
                return Err(Error::new(
                    ErrorKind::ReplayDecode,
                    format!("no upcaster leads from schema {from} to {to}: the way ends at {at}; register one"),
                ));
            };
            value = step(value).map_err(|error| failed(&error, at, *next))?;
            at = *next;
        }
        Ok(value)
    }
}

#[cold]
fn failed(error: &Error, from: SchemaRef, to: SchemaRef) -> Error {
    Error::new(ErrorKind::ReplayDecode, error).context(format!("upcaster from schema {from} to {to}"))
}

impl fmt::Debug for Upcasters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.0.iter().map(|(from, (to, _))| (from, to)))
            .finish()
    }
}
