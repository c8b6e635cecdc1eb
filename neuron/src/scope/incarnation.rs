use std::sync::Arc;

use crate::{Json, Millis, SchemaRef};

/// The key under which the last beginning of a body stands on its topic.
pub(crate) const INCARNATION: &str = "incarnation";

/// What a body begins again with.
#[derive(Clone, Debug)]
pub(crate) struct Onward {
    pub(crate) args: Json,
    pub(crate) schema: SchemaRef,
}

/// A body that begins again.
#[derive(Clone, Debug)]
pub(crate) struct Incarnation {
    /// Its scope.
    pub(crate) scope: Arc<str>,
    /// How often the body has begun again, from 1.
    pub(crate) number: u64,
    /// Its arguments as they are recorded, and their schema.
    pub(crate) args: (Json, SchemaRef),
    /// When it began.
    pub(crate) at: Millis,
}
