//! Holding a value to its schema.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use jsonschema::{Draft, Retrieve, Uri};
use serde_json::Value;

use crate::{Error, ErrorKind, Json, Result, limits};

use super::{
    breach::told,
    definition::{Resolve, Schema, unknown},
    name::SchemaRef,
};

/// Compiled validators of this process, by hash: what a hash means never changes. Emptied when full.
static COMPILED: LazyLock<RwLock<HashMap<SchemaRef, Arc<Validator>>>> = LazyLock::new(RwLock::default);

/// A compiled schema.
pub struct Validator {
    reference: SchemaRef,
    compiled: jsonschema::Validator,
}

impl Validator {
    /// Compiles a schema with all that it names.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if a schema it names is not registered or a definition does not compile; those of
    /// `resolve`.
    pub fn new(root: &Schema, resolve: &Resolve<'_>) -> Result<Self, Error> {
        let reference = root.reference();
        let mut members = Members(HashMap::new());
        let mut open = root.dependencies();
        while let Some(next) = open.pop() {
            if next != reference && !members.0.contains_key(&next.uri()) {
                let schema = resolve(&next)?.ok_or_else(|| unknown(&next).context(format!("schema {reference}")))?;
                open.extend(schema.dependencies());
                members.0.insert(next.uri(), schema.definition().to_value());
            }
        }
        let value = root.definition().to_value();
        members.0.insert(reference.uri(), value.clone());
        let compiled = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_base_uri(reference.uri())
            .with_retriever(members)
            .build(&value)
            .map_err(|error| {
                Error::new(
                    ErrorKind::Schema,
                    format!("schema {reference} does not compile: {error}"),
                )
            })?;
        Ok(Self { reference, compiled })
    }

    /// The validator of a registered schema; compiled once per process.
    ///
    /// # Errors
    /// As [`Validator::new`].
    pub fn of(reference: &SchemaRef, resolve: &Resolve<'_>) -> Result<Arc<Self>, Error> {
        let known = COMPILED
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(reference)
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let root = resolve(reference)?.ok_or_else(|| unknown(reference))?;
        let made = Arc::new(Self::new(&root, resolve)?);
        let mut compiled = COMPILED.write().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= limits::CACHED_VALIDATORS_MAX {
            compiled.clear();
        }
        compiled.insert(*reference, made.clone());
        Ok(made)
    }

    /// Holds a value to the schema.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] with the path of the first value that breaks it, what was expected there, and the schema.
    pub fn check(&self, json: &Json) -> Result<(), Error> {
        let value = json.to_value();
        let mut broken = self.compiled.iter_errors(&value);
        let Some(first) = broken.next() else { return Ok(()) };
        let more = match broken.count() {
            0 => String::new(),
            more => format!("; {more} more"),
        };
        Err(Error::new(
            ErrorKind::Schema,
            format!("{} (schema {}{more})", told(&first), self.reference),
        ))
    }

    /// What it holds values to.
    pub fn reference(&self) -> SchemaRef {
        self.reference
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Validator({})", self.reference)
    }
}

/// The schemas that are compiled together. Nothing else is ever fetched.
struct Members(HashMap<String, Value>);

impl Retrieve for Members {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let known = self.0.get(uri.as_str()).cloned();
        known.ok_or_else(|| format!("`{uri}` is not registered").into())
    }
}
