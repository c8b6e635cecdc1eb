use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use crate::{Error, ErrorKind, Result};

/// The program's shared state, by type.
#[derive(Clone, Default)]
pub struct State(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({} values)", self.0.len())
    }
}

impl State {
    /// Adds a value; a later one of the same type takes the place of an earlier.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of a type.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if none was given.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<&T, Error> {
        self.find().ok_or_else(|| {
            let name = type_name::<T>();
            Error::new(
                ErrorKind::NotFound,
                format!("no state of type `{name}` was given to this program"),
            )
        })
    }

    pub(super) fn find<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>()).and_then(|value| value.downcast_ref())
    }
}
