//! The law of payloads: entities in payloads, edges as envelopes, collections as folds.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use crate::{Error, ErrorKind, Result, canon::Path};

use super::{
    definition::{Resolve, Schema, unknown},
    keyword,
    name::SchemaRef,
    reference::{MARK, is_key},
};

/// Refuses a schema that allows a reference anywhere inside an array or a map.
///
/// A reference is a schema with the keyword `x-neuron-ref`, as [`EnvelopeRef`](super::EnvelopeRef) and its like carry
/// it. It is looked for at any depth, through `$ref` and through every way to combine schemas.
///
/// # Errors
/// [`ErrorKind::Schema`] with the path of the collection and what to do instead, or if a schema that is named cannot be
/// resolved.
pub fn check_references(root: &Schema, resolve: &Resolve<'_>) -> Result<(), Error> {
    let mut search = Search {
        resolve,
        documents: HashMap::new(),
        seen: HashSet::from([(root.reference(), String::new(), None)]),
    };
    let value = Arc::new(root.definition().to_value());
    search.documents.insert(root.reference(), value.clone());
    search.schema(root.reference(), &value, &Path::root(), None)
}

/// The collection that a schema is inside of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Inside {
    Array,
    Map,
}

struct Search<'a> {
    resolve: &'a Resolve<'a>,
    documents: HashMap<SchemaRef, Arc<Value>>,
    /// What was followed, from where in a document and inside of what: a recursive type ends here.
    seen: HashSet<(SchemaRef, String, Option<Inside>)>,
}

impl Search<'_> {
    fn schema(
        &mut self,
        document: SchemaRef,
        schema: &Value,
        path: &Path,
        inside: Option<Inside>,
    ) -> Result<(), Error> {
        let Value::Object(object) = schema else { return Ok(()) };
        if let Some(mark) = object.get(MARK) {
            return inside.map_or(Ok(()), |inside| {
                Err(refused(path, mark.as_str().unwrap_or("?"), inside))
            });
        }
        if let Some(Value::String(uri)) = object.get("$ref") {
            self.follow(document, uri, path, inside)?;
        }
        for (word, name, child) in keyword::children(object) {
            let Some((below, within)) = below(word, name, path, inside)? else {
                continue;
            };
            self.schema(document, child, &below, within)?;
        }
        Ok(())
    }

    fn follow(&mut self, document: SchemaRef, uri: &str, path: &Path, inside: Option<Inside>) -> Result<(), Error> {
        let (document, fragment) = match uri.strip_prefix('#') {
            Some(fragment) => (document, fragment),
            None => SchemaRef::from_uri(uri).ok_or_else(|| nowhere(path, uri))?,
        };
        if !self.seen.insert((document, fragment.to_owned(), inside)) {
            return Ok(());
        }
        let value = self.document(document)?;
        let target = keyword::resolve(&value, fragment).ok_or_else(|| nowhere(path, uri))?;
        self.schema(document, target, path, inside)
    }

    fn document(&mut self, reference: SchemaRef) -> Result<Arc<Value>, Error> {
        if let Some(known) = self.documents.get(&reference) {
            return Ok(known.clone());
        }
        let schema = (self.resolve)(&reference)?.ok_or_else(|| unknown(&reference))?;
        let value = Arc::new(schema.definition().to_value());
        self.documents.insert(reference, value.clone());
        Ok(value)
    }
}

/// Where a child schema applies, and inside of what; nothing if it applies only where it is named.
fn below(
    word: &str,
    name: Option<&str>,
    path: &Path,
    inside: Option<Inside>,
) -> Result<Option<(Path, Option<Inside>)>, Error> {
    let mut below = path.clone();
    Ok(Some(match word {
        "$defs" | "definitions" => return Ok(None),
        "properties" => {
            below.push_key(name.unwrap_or_default());
            (below, inside)
        }
        "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains" => {
            below.push_every_index();
            (below, Some(Inside::Array))
        }
        "additionalProperties" | "unevaluatedProperties" | "patternProperties" | "propertyNames" => {
            below.push_every_key();
            if word == "patternProperties" && name.is_some_and(is_key) {
                return Err(refused(&below, "as key", Inside::Map));
            }
            (below, Some(Inside::Map))
        }
        _ => (below, inside),
    }))
}

#[cold]
fn refused(path: &Path, what: &str, inside: Inside) -> Error {
    let whole = match inside {
        Inside::Array => "an array",
        Inside::Map => "a map",
    };
    Error::new(
        ErrorKind::Schema,
        format!(
            "`{path}` is a reference ({what}) inside {whole}: a payload holds one entity, so append one envelope for \
             each edge and fold them into the collection"
        ),
    )
}

#[cold]
fn nowhere(path: &Path, uri: &str) -> Error {
    Error::new(ErrorKind::Schema, format!("`{path}`: `$ref` to `{uri}` leads nowhere"))
}
