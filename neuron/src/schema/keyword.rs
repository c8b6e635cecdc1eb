//! Which keywords of JSON Schema hold schemas. Everything that walks a definition goes through here, so that a
//! property called `title` or a constant that looks like a schema is never taken for one.

use serde_json::{Map, Value};

use crate::{Error, ErrorKind, Result, canon::Path};

use super::name::SchemaRef;

/// Keywords that say nothing about which values are valid.
const ANNOTATIONS: [&str; 4] = ["title", "description", "examples", "$comment"];
/// Keywords that would give a schema another name than its hash.
const NAMES: [&str; 6] = [
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
];

/// What a keyword holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// One schema, or an array of them.
    Schemas,
    /// An object whose members are schemas.
    Named,
    /// A value.
    Data,
}

pub(super) fn holds(keyword: &str) -> Holds {
    match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" => {
            Holds::Named
        }
        "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "items"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contentSchema" => Holds::Schemas,
        _ => Holds::Data,
    }
}

/// Every schema directly below an object schema, with its keyword and, for [`Holds::Named`], its name.
pub(super) fn children(schema: &Map<String, Value>) -> impl Iterator<Item = (&str, Option<&str>, &Value)> {
    schema.iter().flat_map(|(keyword, value)| {
        let mut found = Vec::new();
        match (holds(keyword), value) {
            (Holds::Named, Value::Object(named)) => {
                found.extend(
                    named
                        .iter()
                        .map(|(name, value)| (keyword.as_str(), Some(name.as_str()), value)),
                );
            }
            (Holds::Schemas, Value::Array(list)) => {
                found.extend(list.iter().map(|value| (keyword.as_str(), None, value)));
            }
            (Holds::Schemas, value) => found.push((keyword.as_str(), None, value)),
            _ => {}
        }
        found
    })
}

/// Changes every object schema, outermost first.
pub(super) fn each_mut(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(object) = schema else { return };
    change(object);
    for (keyword, value) in object {
        match (holds(keyword), value) {
            (Holds::Named, Value::Object(named)) => named.values_mut().for_each(|value| each_mut(value, change)),
            (Holds::Schemas, Value::Array(list)) => list.iter_mut().for_each(|value| each_mut(value, change)),
            (Holds::Schemas, value) => each_mut(value, change),
            _ => {}
        }
    }
}

/// Removes what says nothing about validity.
pub(super) fn strip(schema: &mut Value) {
    each_mut(schema, &mut |object| {
        object.retain(|keyword, _| !ANNOTATIONS.contains(&keyword.as_str()));
    });
}

/// Visits every `$ref`.
pub(super) fn each_ref(schema: &Value, visit: &mut impl FnMut(&str)) {
    let Value::Object(object) = schema else { return };
    if let Some(Value::String(uri)) = object.get("$ref") {
        visit(uri);
    }
    children(object).for_each(|(_, _, child)| each_ref(child, visit));
}

/// Refuses a `$ref` that leads elsewhere than into the schema itself or to another by its hash, and other names.
pub(super) fn check_names(schema: &Value) -> Result<(), Error> {
    named(schema, schema, &mut Path::root())
}

fn named(root: &Value, schema: &Value, path: &mut Path) -> Result<(), Error> {
    let Value::Object(object) = schema else { return Ok(()) };
    let refuse = |message: String| Err(Error::new(ErrorKind::Schema, format!("`{path}`: {message}")));
    if let Some(name) = NAMES.iter().find(|name| object.contains_key(**name)) {
        return refuse(format!("`{name}` is not allowed: the name of a schema is its hash"));
    }
    if let Some(Value::String(uri)) = object.get("$ref") {
        let known = match uri.strip_prefix('#') {
            Some(fragment) => resolve(root, fragment).is_some(),
            None => SchemaRef::from_uri(uri).is_some(),
        };
        if !known {
            return refuse(format!(
                "`$ref` to `{uri}` leads nowhere: use `#/$defs/…` within the schema or `neuron:schema:<hash>`"
            ));
        }
    }
    for (keyword, name, child) in children(object) {
        let mut below = path.clone();
        below.push_key(keyword);
        if let Some(name) = name {
            below.push_key(name);
        }
        named(root, child, &mut below)?;
    }
    Ok(())
}

/// What a URI fragment, a JSON pointer, names in a definition.
pub(super) fn resolve<'a>(root: &'a Value, fragment: &str) -> Option<&'a Value> {
    root.pointer(&percent_decode(fragment)?)
}

/// The name behind `#/$defs/`.
pub(super) fn definition_name(uri: &str) -> Option<String> {
    let name = percent_decode(uri.strip_prefix("#/$defs/")?)?;
    (!name.contains('/')).then(|| name.replace("~1", "/").replace("~0", "~"))
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok()
}
