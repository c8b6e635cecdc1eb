use std::{any::Any, fmt};

use serde::de::DeserializeOwned;

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
