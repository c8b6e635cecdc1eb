//! How a draft says which schema it means.

use std::{
    any::TypeId,
    collections::HashMap,
    slice,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{Error, ErrorKind, Json, Result, limits};

use super::{
    bundle::Bundle,
    collection::check_references,
    definition::{Resolve, Schema},
    name::SchemaRef,
};

/// One entry per type that this program asks about, so the code bounds it.
static TYPES: LazyLock<RwLock<HashMap<TypeId, Arc<SchemaUse>>>> = LazyLock::new(RwLock::default);

/// The schema of a payload type, checked once per process.
///
/// # Errors
/// [`ErrorKind::Schema`] if the type holds a list or map of references, with the path of it,
/// or has no definition.
///
/// ```
/// #[derive(schemars::JsonSchema)]
/// struct Note { text: String }
/// let schema = neuron::schema::of::<Note>()?;
/// assert_eq!(schema.members().len(), 1);
/// # Ok::<(), neuron::Error>(())
/// ```
pub fn of<T: JsonSchema + 'static>() -> Result<Arc<SchemaUse>, Error> {
    let id = TypeId::of::<T>();
    let known = TYPES.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let bundle = Bundle::of::<T>()?;
    check_references(bundle.root(), &|reference| Ok(bundle.get(reference).cloned()))
        .map_err(|error| error.context(format!("`{}` cannot be a payload", std::any::type_name::<T>())))?;
    let made = Arc::new(SchemaUse::Type(bundle));
    let mut types = TYPES.write().unwrap_or_else(PoisonError::into_inner);
    Ok(types.entry(id).or_insert(made).clone())
}

/// A schema by its hash, by a small definition, or by a Rust type. What is not in the registry yet is registered with
/// the append.
#[derive(Clone, Debug)]
pub enum SchemaUse {
    /// A schema that is registered.
    Ref(SchemaRef),
    /// A definition of at most 1 KiB; it stands for the same reference.
    Inline(Arc<Schema>),
    /// The schema of a type, and those it names.
    Type(Bundle),
}

impl SchemaUse {
    /// A definition given with the draft.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] beyond [`INLINE_SCHEMA_BYTES_MAX`](limits::INLINE_SCHEMA_BYTES_MAX), and as
    /// [`Schema::new`].
    pub fn inline(definition: Json) -> Result<Self, Error> {
        if definition.len() > limits::INLINE_SCHEMA_BYTES_MAX {
            let (bytes, max) = (definition.len(), limits::INLINE_SCHEMA_BYTES_MAX);
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("an inline schema of {bytes} bytes: at most {max} are allowed, register it and use its hash"),
            ));
        }
        Schema::new(definition).map(|schema| Self::Inline(Arc::new(schema)))
    }

    /// The reference that the record holds.
    pub fn reference(&self) -> SchemaRef {
        match self {
            Self::Ref(reference) => *reference,
            Self::Inline(schema) => schema.reference(),
            Self::Type(bundle) => bundle.root().reference(),
        }
    }

    /// What it brings along, in the order in which to register it.
    pub fn members(&self) -> &[Arc<Schema>] {
        match self {
            Self::Ref(_) => &[],
            Self::Inline(schema) => slice::from_ref(schema),
            Self::Type(bundle) => bundle.members(),
        }
    }

    /// Resolves from what it brings along, else by `registry`.
    ///
    /// # Errors
    /// Those of `registry`.
    pub fn resolve(&self, reference: &SchemaRef, registry: &Resolve<'_>) -> Result<Option<Arc<Schema>>, Error> {
        let own = self.members().iter().find(|member| member.reference() == *reference);
        own.map_or_else(|| registry(reference), |own| Ok(Some(own.clone())))
    }
}

impl From<SchemaRef> for SchemaUse {
    fn from(reference: SchemaRef) -> Self {
        Self::Ref(reference)
    }
}

impl From<Bundle> for SchemaUse {
    fn from(bundle: Bundle) -> Self {
        Self::Type(bundle)
    }
}

/// As text: the hash as a string, or the inline definition itself.
impl Serialize for SchemaUse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline(schema) => schema.serialize(serializer),
            other => other.reference().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SchemaUse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        let usage = if json.as_str().starts_with('"') {
            json.decode().map(Self::Ref)
        } else {
            Self::inline(json)
        };
        usage.map_err(D::Error::custom)
    }
}
