use std::{
    any::{Any, type_name},
    fmt,
};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Committed;
use crate::{Error, ErrorKind, Json, Result, SchemaRef};

/// The recorded answer of a call.
pub(crate) struct Answer {
    pub(crate) place: Committed,
    pub(crate) outcome: Result<Json, Error>,
    pub(crate) schema: Option<SchemaRef>,
    /// What the output decodes to, while it is fresh.
    pub(crate) typed: Option<Box<dyn Any + Send>>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({} {:?})", self.place.pos, self.outcome)
    }
}

impl Answer {
    pub(crate) fn new(place: Committed, outcome: Result<Json, Error>) -> Self {
        Self {
            place,
            outcome,
            schema: None,
            typed: None,
        }
    }

    /// An update as the body takes it: where its request stands, and what it asks.
    pub(crate) fn asked(mut self, pos: u64) -> Result<Self, Error> {
        if let Ok(request) = &self.outcome {
            self.outcome = Ok(Json::of(&(pos, request))?);
        }
        Ok(self)
    }
}

/// What a body is told that asked a person and was not answered in time.
pub(crate) fn lapsed() -> Error {
    Error::new(ErrorKind::Timeout, "nobody answered the question in time")
}

/// What a body is told.
pub struct Taken {
    /// The recorded output.
    pub json: Json,
    /// What it decodes to, if that is known already.
    pub typed: Option<Box<dyn Any + Send>>,
    /// The schema that it was recorded with.
    pub schema: Option<SchemaRef>,
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

impl Taken {
    /// The typed value.
    pub(crate) fn decode<T: DeserializeOwned + 'static>(self) -> Result<T, Error> {
        match self.typed.map(<Box<dyn Any + Send>>::downcast::<T>) {
            Some(Ok(typed)) => Ok(*typed),
            _ => self.json.decode(),
        }
    }
}

/// Why an answer that is on the log cannot be told to a body.
pub(crate) fn undecodable<T>(name: &str, recorded: &Json, why: &Error) -> Error {
    let (present, recorded) = (type_name::<T>(), shape(&recorded.to_value()));
    let message = format!(
        "the recorded output of `{name}` does not decode as the present type: it is {recorded}, and the code reads \
         `{present}`: {why}; put the type back, or register an upcaster"
    );
    Error::new(ErrorKind::ReplayDecode, message)
}

/// What sort of value it is, without the value.
fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "a bool".into(),
        Value::Number(_) => "a number".into(),
        Value::String(_) => "a string".into(),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) if fields.is_empty() => "an object without fields".into(),
        Value::Object(fields) => {
            let names: Vec<_> = fields.keys().take(SHAPE_FIELDS).map(String::as_str).collect();
            let more = if fields.len() > SHAPE_FIELDS { ", …" } else { "" };
            format!("an object with `{}`{more}", names.join("`, `"))
        }
    }
}

/// So many fields of a recorded object are named in a message.
const SHAPE_FIELDS: usize = 8;
