use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use neuron::{
    Digest, Error, ErrorKind, Json, Ledger, Result, RunId,
    def::{Param, Registry},
    ownership::Ownership,
    schema::Upcasters,
    scope,
};
use tokio::sync::watch;

use super::{standing::End, switchboard::Switchboard};

/// What the runs of one process on one store share.
pub(crate) struct Engine {
    pub(crate) ledger: Ledger,
    pub(crate) ownership: Ownership,
    pub(crate) registry: Arc<Registry>,
    pub(crate) upcasters: Arc<Upcasters>,
    pub(crate) state: scope::State,
    pub(crate) strict: bool,
    pub(crate) build: String,
    pub(crate) switchboard: Arc<Switchboard>,
    runs: Mutex<HashMap<RunId, Live>>,
}

/// A run that this process drives, or waits for.
pub(crate) struct Live {
    pub(crate) name: &'static str,
    pub(crate) args: Json,
    pub(crate) end: watch::Receiver<Option<End>>,
}

impl Live {
    /// Whether somebody still works on it: not once its driver has panicked.
    pub(crate) fn is_driven(&self) -> bool {
        self.end.has_changed().is_ok()
    }
}

impl Engine {
    pub(crate) fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Live>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new(
        ledger: Ledger,
        ownership: Ownership,
        code: (Registry, Upcasters),
        state: scope::State,
        options: (bool, String),
    ) -> Result<Self, Error> {
        Ok(Self {
            switchboard: Switchboard::listen(&ledger)?,
            ledger,
            ownership,
            registry: Arc::new(code.0),
            upcasters: Arc::new(code.1),
            state,
            strict: options.0,
            build: options.1,
            runs: Mutex::default(),
        })
    }
}

pub(crate) fn conflict(id: &RunId, name: &str) -> Error {
    let why = format!("run `{id}` is one of `{name}` with other arguments: give this one another id");
    Error::new(ErrorKind::RunIdConflict, why)
}

/// A hash over everything that is registered: names, parameters and options.
///
/// # Errors
/// [`Malformed`](neuron::ErrorKind::Malformed) if a name has no canonical form.
pub(crate) fn fingerprint(registry: &Registry) -> Result<String, Error> {
    let definitions = registry.entries().map(|entry| {
        let meta = entry.meta();
        let params: Vec<&str> = meta.params.iter().map(Param::name).collect();
        let options = (meta.claims(), meta.attempts, meta.timeout_ms, meta.share);
        (meta.kind, meta.name, params, options)
    });
    let plans = registry.plans().map(|plan| {
        let params: Vec<&str> = plan.params().iter().map(Param::name).collect();
        (plan.name(), params)
    });
    let all = Json::of(&(definitions.collect::<Vec<_>>(), plans.collect::<Vec<_>>()))?;
    Ok(Digest::derive("neuron-registry-v1", all.as_str().as_bytes()).to_string())
}
