use std::{
    collections::HashSet,
    sync::{Arc, PoisonError, RwLock},
};

use crate::{
    Draft, Error, ErrorKind, Json, Result, Schema, SchemaRef, SchemaUse, limits,
    schema::{self, BodyContract, Validator},
    store::Store,
};

/// What a ledger knows of the store's schemas: those it has seen registered. Emptied when full.
#[derive(Debug, Default)]
pub(super) struct Registry(RwLock<HashSet<SchemaRef>>);

impl Registry {
    /// Holds a draft to the schemas it names, and collects those that are not registered yet.
    pub(super) fn check(&self, store: &dyn Store, draft: &Draft, new: &mut Vec<Arc<Schema>>) -> Result<(), Error> {
        if let Some(usage) = &draft.payload_schema {
            self.collect(store, usage, new)?;
            if let Some(payload) = draft.payload.as_ref().filter(|_| !draft.trusted) {
                hold(store, usage, payload).map_err(|error| error.context("the payload breaks its schema"))?;
            }
        }
        for usage in &draft.named {
            self.collect(store, usage, new)?;
        }
        for header in &draft.headers {
            if let Some(usage) = &header.schema {
                self.collect(store, usage, new)?;
                let broken = |error: Error| error.context(format!("header `{}` breaks its schema", header.key));
                hold(store, usage, &header.value).map_err(broken)?;
            }
        }
        if let Some(usage) = &draft.contract {
            self.collect(store, usage, new)?;
            let resolved = usage.resolve(&usage.reference(), &|reference| store.schema(reference))?;
            let contract = resolved.ok_or_else(|| unregistered(&usage.reference()))?;
            let kinds = draft.artifacts.iter().map(|artifact| artifact.kind.as_deref());
            let broken = |error: Error| error.context("the body breaks its contract");
            BodyContract::from_schema(&contract)?.check(kinds).map_err(broken)?;
        }
        Ok(())
    }

    fn collect(&self, store: &dyn Store, usage: &SchemaUse, new: &mut Vec<Arc<Schema>>) -> Result<(), Error> {
        let reference = usage.reference();
        if self.knows(store, &reference)? {
            return Ok(());
        }
        match usage {
            SchemaUse::Ref(reference) => return Err(unregistered(reference)),
            SchemaUse::Inline(schema) => schema::check_references(schema, &|reference| store.schema(reference))?,
            SchemaUse::Type(_) => {}
        }
        for member in usage.members() {
            if !new.iter().any(|known| known.reference() == member.reference()) {
                new.push(member.clone());
            }
        }
        Ok(())
    }

    /// Whether a schema is registered. Its members were registered with it.
    fn knows(&self, store: &dyn Store, reference: &SchemaRef) -> Result<bool, Error> {
        if self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(reference)
        {
            return Ok(true);
        }
        if store.schema(reference)?.is_none() {
            return Ok(false);
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= limits::CACHED_HEADS_MAX {
            known.clear();
        }
        known.insert(*reference);
        Ok(true)
    }
}

pub(super) fn hold(store: &dyn Store, usage: &SchemaUse, value: &Json) -> Result<(), Error> {
    let registry = |reference: &SchemaRef| store.schema(reference);
    Validator::of(&usage.reference(), &|reference| usage.resolve(reference, &registry))?.check(value)
}

fn unregistered(reference: &SchemaRef) -> Error {
    let why = format!("schema {reference} is not registered: give its definition, or append a typed payload first");
    Error::new(ErrorKind::Schema, why)
}
