//! Sets have no order of their own: on the log they stand in one, so that equal values are equal text.

use std::{
    any::TypeId,
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;

use crate::{Error, Json, Result};

/// A value of this type with every set in the order of its elements' canonical text.
///
/// # Errors
/// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if it has no canonical form, which a recorded one has.
pub(crate) fn in_order<T: JsonSchema + 'static>(json: Json) -> Result<Json, Error> {
    let Some(schema) = with_sets::<T>() else {
        return Ok(json);
    };
    let mut value = json.to_value();
    sort(&mut value, schema, schema);
    Json::of(&value)
}

/// The schema of a type that holds sets, made once; `None` for any other type.
fn with_sets<T: JsonSchema + 'static>() -> Option<&'static Value> {
    static SCHEMAS: RwLock<Option<HashMap<TypeId, Option<&'static Value>>>> = RwLock::new(None);
    let id = TypeId::of::<T>();
    let known = SCHEMAS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = known.as_ref().and_then(|schemas| schemas.get(&id)) {
        return *schema;
    }
    drop(known);
    let schema = schema_of::<T>();
    // Leaked on purpose: there are as many as the program has types of arguments.
    let schema = holds_set(&schema).then(|| &*Box::leak(Box::new(schema)));
    let mut schemas = SCHEMAS.write().unwrap_or_else(PoisonError::into_inner);
    *schemas.get_or_insert_default().entry(id).or_insert(schema)
}

/// The schema of a type, in one piece.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    SchemaGenerator::new(settings).into_root_schema_for::<T>().to_value()
}

/// Whether a value of this schema may hold a set.
pub(super) fn holds_set(schema: &Value) -> bool {
    match schema {
        Value::Object(keys) => keys.get("uniqueItems") == Some(&Value::Bool(true)) || keys.values().any(holds_set),
        Value::Array(items) => items.iter().any(holds_set),
        _ => false,
    }
}

/// Puts every set in `value` in order, as far as `schema` tells where one is.
pub(super) fn sort(value: &mut Value, schema: &Value, root: &Value) {
    let Some(keys) = schema.as_object() else { return };
    let target = keys
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|target| target.strip_prefix('#'));
    if let Some(target) = target.and_then(|pointer| root.pointer(pointer)) {
        sort(value, target, root);
    }
    for of in ["anyOf", "oneOf", "allOf"] {
        for part in keys.get(of).and_then(Value::as_array).into_iter().flatten() {
            if of == "allOf" || fits(value, part, root) {
                sort(value, part, root);
            }
        }
    }
    match value {
        Value::Object(fields) => {
            let properties = keys.get("properties");
            for (name, field) in fields {
                let known = properties.and_then(|properties| properties.get(name));
                if let Some(schema) = known.or_else(|| keys.get("additionalProperties")) {
                    sort(field, schema, root);
                }
            }
        }
        Value::Array(items) => {
            let prefix = keys.get("prefixItems").and_then(Value::as_array);
            for (at, item) in items.iter_mut().enumerate() {
                let known = prefix.and_then(|prefix| prefix.get(at));
                if let Some(schema) = known.or_else(|| keys.get("items")) {
                    sort(item, schema, root);
                }
            }
            if keys.get("uniqueItems") == Some(&Value::Bool(true)) {
                items.sort_by_cached_key(|item| Json::of(item).map(|json| json.to_string()).unwrap_or_default());
            }
        }
        _ => {}
    }
}

/// Whether `value` may be of this variant: by its kind, its constants, and the fields it must have.
fn fits(value: &Value, schema: &Value, root: &Value) -> bool {
    let Some(keys) = schema.as_object() else {
        return schema != &Value::Bool(false);
    };
    if let Some(target) = keys.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.is_none_or(|target| fits(value, target, root));
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |one: &Value| one == kind || (kind == "integer" && one == "number");
    let kind_fits = match keys.get("type") {
        None => true,
        Some(Value::Array(several)) => several.iter().any(is),
        Some(one) => is(one),
    };
    let constant_fits = keys.get("const").is_none_or(|constant| constant == value)
        && keys
            .get("enum")
            .and_then(Value::as_array)
            .is_none_or(|values| values.contains(value));
    let required = keys.get("required").and_then(Value::as_array);
    let has_required = required.is_none_or(|names| {
        names
            .iter()
            .filter_map(Value::as_str)
            .all(|name| value.get(name).is_some())
    });
    let fields_fit = keys
        .get("properties")
        .and_then(Value::as_object)
        .is_none_or(|properties| {
            properties
                .iter()
                .all(|(name, schema)| value.get(name).is_none_or(|field| fits(field, schema, root)))
        });
    kind_fits && constant_fits && has_required && fields_fit
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "camelCase")]
    enum Filter {
        Any { of: HashSet<u32> },
        Path { of: Vec<u32> },
        All { filters: Vec<Filter> },
    }

    fn in_order<T: Serialize + JsonSchema>(value: &T) -> String {
        let schema = schema_of::<T>();
        let mut value = serde_json::to_value(value).unwrap();
        sort(&mut value, &schema, &schema);
        Json::of(&value).unwrap().to_string()
    }

    #[test]
    fn a_set_has_one_text_wherever_it_stands() {
        let many = || (0..50).collect::<HashSet<u32>>();
        let value = || {
            (
                Some(many()),
                vec![many()],
                [("k", many())].into_iter().collect::<HashMap<_, _>>(),
            )
        };
        assert_eq!(in_order(&value()), in_order(&value()));
        let sorted: BTreeSet<String> = (0..50).map(|n: u32| n.to_string()).collect();
        let text = sorted.into_iter().collect::<Vec<_>>().join(",");
        assert_eq!(in_order(&many()), format!("[{text}]"));
    }

    #[test]
    fn a_list_beside_a_set_keeps_its_order() {
        let filters = Filter::All {
            filters: vec![
                Filter::Path { of: vec![3, 1, 2] },
                Filter::Any { of: [3, 1, 2].into() },
                Filter::All {
                    filters: vec![Filter::Path { of: vec![2, 1] }],
                },
            ],
        };
        assert_eq!(
            in_order(&filters),
            r#"{"filters":[{"kind":"path","of":[3,1,2]},{"kind":"any","of":[1,2,3]},{"filters":[{"kind":"path","of":[2,1]}],"kind":"all"}],"kind":"all"}"#
        );
    }
}
