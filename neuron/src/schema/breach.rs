//! How a value that breaks its schema is told about.

use jsonschema::{ValidationError, paths::LocationSegment};
use serde_json::Value;

use crate::{Error, ErrorKind, Result, canon::Path, limits};

/// Refuses a definition that is no JSON Schema.
pub(super) fn check_definition(definition: &Value) -> Result<(), Error> {
    if !definition.is_object() && !definition.is_boolean() {
        return Err(Error::new(
            ErrorKind::Schema,
            "a schema is an object, `true` or `false`",
        ));
    }
    jsonschema::draft202012::meta::validate(definition)
        .map_err(|error| Error::new(ErrorKind::Schema, format!("not a JSON Schema: {}", told(&error))))
}

/// Path and reason. A large value is not repeated in the message: it has its path.
pub(super) fn told(error: &ValidationError<'_>) -> String {
    let mut path = Path::root();
    for segment in error.instance_path() {
        match segment {
            LocationSegment::Property(name) => path.push_key(&name),
            LocationSegment::Index(index) => path.push_index(index),
        }
    }
    let mut reason = error.to_string();
    if reason.len() > limits::QUOTED_BYTES_MAX {
        reason = error.masked().to_string();
    }
    format!("`{path}`: {reason}")
}
