//! The schemas of a Rust type.

use std::sync::Arc;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use crate::{Error, ErrorKind, Result};

use super::{definition::Schema, keyword, name::SchemaRef, split::split};

/// A schema with every schema it names, each before the first that names it, itself last.
#[derive(Clone, Debug)]
pub struct Bundle {
    root: Arc<Schema>,
    members: Vec<Arc<Schema>>,
}

impl Bundle {
    /// The schemas of a type: one for each object type in it, or one for a group of types that name each other.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if a hand-written `JsonSchema` gives no valid definition.
    pub fn of<T: JsonSchema + ?Sized>() -> Result<Self, Error> {
        // No `$schema` keyword, so that a type has one hash as a root and inside another.
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
        let mut root = settings.into_generator().into_root_schema_for::<T>().to_value();
        let definitions = root.as_object_mut().and_then(|root| root.remove("$defs"));
        let definitions = match definitions {
            Some(Value::Object(definitions)) => definitions,
            _ => Map::new(),
        };
        let mut nodes = vec![(T::schema_name().into_owned(), root)];
        nodes.extend(definitions);
        for (_, node) in &mut nodes {
            keyword::each_mut(node, &mut plain_enum);
        }
        let members = split(&nodes)
            .and_then(|members| members.into_iter().map(member).collect::<Result<Vec<_>, _>>())
            .map_err(|error| error.context(format!("schema of `{}`", std::any::type_name::<T>())))?;
        match members.last() {
            Some(root) => Ok(Self {
                root: root.clone(),
                members,
            }),
            None => Err(Error::new(ErrorKind::Schema, "a schema without a definition")),
        }
    }

    /// The schema of the type itself.
    pub fn root(&self) -> &Arc<Schema> {
        &self.root
    }

    /// All of them, in the order in which to register them.
    pub fn members(&self) -> &[Arc<Schema>] {
        &self.members
    }

    /// The member with this reference.
    pub fn get(&self, reference: &SchemaRef) -> Option<&Arc<Schema>> {
        self.members.iter().find(|member| member.reference() == *reference)
    }
}

fn member(schema: Schema) -> Result<Arc<Schema>, Error> {
    Schema::new(schema.definition).map(Arc::new)
}

/// Gives an enum one form, whether its variants are documented or not.
///
/// `schemars` writes variants without comments as one `enum` and those with comments as a `const` each, in another
/// order. Here each is a `const`, sorted, before the variants that hold values.
fn plain_enum(schema: &mut Map<String, Value>) {
    if let Some(names) = names(schema) {
        schema.retain(|keyword, _| keyword != "type" && keyword != "enum");
        schema.insert("oneOf".to_owned(), sorted(names.into_iter().map(constant)).collect());
    }
    for keyword in ["oneOf", "anyOf"] {
        let Some(Value::Array(variants)) = schema.get_mut(keyword) else {
            continue;
        };
        let (mut constants, mut others) = (Vec::new(), Vec::new());
        for variant in std::mem::take(variants) {
            match variant.as_object() {
                Some(object) if object.len() == 2 && names(object).is_some() => {
                    constants.extend(names(object).into_iter().flatten().map(constant));
                }
                Some(object) if object.get("const").is_some_and(Value::is_string) => constants.push(variant),
                _ => others.push(variant),
            }
        }
        variants.extend(sorted(constants.into_iter()).chain(others));
    }
}

/// The strings of `{"type": "string", "enum": […]}`.
fn names(schema: &Map<String, Value>) -> Option<Vec<Value>> {
    let names = schema.get("enum")?.as_array()?;
    let plain = schema.get("type")?.as_str()? == "string" && names.iter().all(Value::is_string);
    plain.then(|| names.clone())
}

fn constant(name: Value) -> Value {
    Value::Object(Map::from_iter([
        ("const".to_owned(), name),
        ("type".to_owned(), "string".into()),
    ]))
}

fn sorted(constants: impl Iterator<Item = Value>) -> impl Iterator<Item = Value> {
    let mut constants: Vec<_> = constants.collect();
    constants.sort_by(|a, b| a["const"].as_str().cmp(&b["const"].as_str()));
    constants.into_iter()
}
