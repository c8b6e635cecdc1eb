use std::{
    any::TypeId,
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::{
    Param,
    sets::{holds_set, schema_of, sort},
};
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
    pub(super) fn cached(id: TypeId, params: &'static [Param], make: fn(&'static [Param]) -> Self) -> &'static Self {
        static FORMS: RwLock<Option<HashMap<TypeId, &'static Form>>> = RwLock::new(None);
        let known = FORMS.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(form) = known.as_ref().and_then(|forms| forms.get(&id)) {
            return form;
        }
        drop(known);
        let form = make(params);
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

/// What tells the form of a type from others on the log: what stands as `outputSchema` beside an output of this type.
pub fn schema_ref<T: JsonSchema>() -> SchemaRef {
    reference(&schema_of::<T>())
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
