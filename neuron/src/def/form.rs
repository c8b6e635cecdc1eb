use std::{
    any::TypeId,
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::Param;
use crate::{Digest, Error, Json, Result, SCHEMA_CONTEXT, SchemaRef};

/// The schemas of one definition, worked out once.
#[derive(Debug)]
pub struct Form {
    args: Value,
    output: Value,
    args_schema: SchemaRef,
    output_schema: SchemaRef,
    /// Whether an argument holds a set, whose order says nothing.
    has_sets: bool,
}

impl Form {
    /// The form of the definition with this type, made once.
    pub(super) fn cached(id: TypeId, make: impl FnOnce() -> Self) -> &'static Self {
        static FORMS: RwLock<Option<HashMap<TypeId, &'static Form>>> = RwLock::new(None);
        let known = FORMS.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(form) = known.as_ref().and_then(|forms| forms.get(&id)) {
            return form;
        }
        drop(known);
        let form = make();
        let mut forms = FORMS.write().unwrap_or_else(PoisonError::into_inner);
        // Leaked on purpose: there are as many as the program has definitions.
        forms
            .get_or_insert_default()
            .entry(id)
            .or_insert_with(|| Box::leak(Box::new(form)))
    }

    /// The form of a function with these parameters and the schemas of their types.
    pub(super) fn new(params: &[Param], schemas: Vec<Value>, output: Value) -> Self {
        let args = object_schema(params, schemas);
        Self {
            has_sets: holds_set(&args),
            args_schema: reference(&args),
            output_schema: reference(&output),
            args,
            output,
        }
    }

    /// The schema of the arguments: an object with a description per parameter.
    pub fn args(&self) -> &Value {
        &self.args
    }

    /// The schema of the output.
    pub fn output(&self) -> &Value {
        &self.output
    }

    /// What tells this form of the arguments from others.
    pub fn args_schema(&self) -> SchemaRef {
        self.args_schema
    }

    /// What tells this form of the output from others.
    pub fn output_schema(&self) -> SchemaRef {
        self.output_schema
    }

    /// The same arguments with every set in the order of its elements' canonical text.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if they have no canonical form, which recorded ones have.
    #[doc(hidden)]
    pub fn in_order(&self, args: Json) -> Result<Json, Error> {
        if !self.has_sets {
            return Ok(args);
        }
        let mut value = args.to_value();
        let root = &self.args;
        sort(&mut value, root, root);
        Json::of(&value)
    }
}

/// The schema of a type, in one piece.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    SchemaGenerator::new(settings).into_root_schema_for::<T>().to_value()
}

fn object_schema(params: &[Param], schemas: Vec<Value>) -> Value {
    let mut definitions = Map::new();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (param, mut schema) in params.iter().zip(schemas) {
        let optional = allows_null(&schema);
        if let Some(object) = schema.as_object_mut() {
            if let Some(Value::Object(defs)) = object.remove("$defs") {
                definitions.extend(defs);
            }
            if !param.doc.is_empty() {
                object.insert("description".into(), param.doc.into());
            }
        }
        if !optional {
            required.push(param.name);
        }
        properties.insert(param.name.into(), schema);
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    schema
}

/// The hash of a schema without what only explains it, so that a doc comment changes nothing.
fn reference(schema: &Value) -> SchemaRef {
    let mut bare = schema.clone();
    strip(&mut bare, false);
    // A schema is made of strings, numbers and bools, which always have a canonical form.
    let text = Json::of(&bare).unwrap_or_else(|_| Json::null());
    SchemaRef(Digest::derive(SCHEMA_CONTEXT, text.as_str().as_bytes()))
}

/// Removes annotations; where `named`, keys are names that a user gave, not words of the schema language.
fn strip(schema: &mut Value, named: bool) {
    match schema {
        Value::Object(keys) => {
            if !named {
                keys.retain(|key, _| !["title", "description", "examples", "$comment"].contains(&key.as_str()));
            }
            for (key, value) in keys {
                let data = !named && ["const", "enum", "default"].contains(&key.as_str());
                if !data {
                    strip(
                        value,
                        !named && ["properties", "$defs", "patternProperties"].contains(&key.as_str()),
                    );
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, false)),
        _ => {}
    }
}

fn allows_null(schema: &Value) -> bool {
    match &schema["type"] {
        Value::String(one) => one == "null",
        Value::Array(several) => several.iter().any(|one| one == "null"),
        _ => ["anyOf", "oneOf"]
            .iter()
            .any(|of| schema[of].as_array().into_iter().flatten().any(allows_null)),
    }
}

fn holds_set(schema: &Value) -> bool {
    match schema {
        Value::Object(keys) => keys.get("uniqueItems") == Some(&Value::Bool(true)) || keys.values().any(holds_set),
        Value::Array(items) => items.iter().any(holds_set),
        _ => false,
    }
}

/// Puts every set in `value` in order, as far as `schema` tells where one is.
fn sort(value: &mut Value, schema: &Value, root: &Value) {
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
