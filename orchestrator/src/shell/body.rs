use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use neuron::{Error, ErrorKind, Json, Result, plan::Input, scope::Scope};

use super::{assign::Work, laid::Laid};
use crate::package::Key;

/// What an orchestrator's body finds in its scope: the run it belongs to.
#[derive(Clone)]
pub(crate) struct Link {
    /// Takes what a body has assigned.
    pub(crate) take: Arc<dyn Fn(Arc<Body>, Vec<Laid>) + Send + Sync>,
    /// The package whose body it is; `None` for the run's own.
    pub(crate) within: Option<Key>,
}

/// The packages of one orchestrator's body, in the order in which it assigned them.
pub(crate) struct Body {
    pub(crate) scope: Arc<Scope>,
    link: Option<Link>,
    packages: Mutex<Vec<Slot>>,
}

struct Slot {
    key: Key,
    name: &'static str,
    /// Until the body is idle.
    laid: Option<Laid>,
}

impl Body {
    pub(crate) fn new(scope: Arc<Scope>) -> Self {
        let link = scope.runtime().shared().get::<Link>().ok().cloned();
        Self {
            scope,
            link,
            packages: Mutex::default(),
        }
    }

    pub(crate) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Lays a package on the board, and gives its place and key. Its identity is its content: an argument that is a
    /// package stands as that package's key.
    pub(crate) fn lay(&self, work: Work, inputs: Vec<Input>) -> Result<(usize, Key), Error> {
        if self.link.is_none() {
            let why = "this board belongs to no run: start the orchestrator with `neuron.run(…)`";
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        let mut identity = BTreeMap::new();
        for (param, input) in work.params.iter().zip(&inputs) {
            identity.insert(param.name(), self.identity(input)?);
        }
        let identity = work.in_order(Json::of(&identity)?)?;
        let key = self.scope.claim_renamed(work.name, work.was, &identity)?;
        let mut packages = self.packages();
        packages.push(Slot {
            key: key.clone(),
            name: work.name,
            laid: Some(Laid {
                key: key.clone(),
                work,
                inputs,
                after: Vec::new(),
            }),
        });
        Ok((packages.len() - 1, key))
    }

    fn identity(&self, input: &Input) -> Result<Json, Error> {
        let key = |place: usize| {
            let key = self.key(place);
            key.ok_or_else(|| Error::new(ErrorKind::Misuse, "a package of another board was given as an argument"))
        };
        match input {
            Input::Value(given) => Ok(given.recorded().clone()),
            Input::Wire(place) => Json::of(&*key(*place)?),
            Input::Wires(places) => {
                let keys = places.iter().map(|place| key(*place)).collect::<Result<Vec<_>, _>>()?;
                Json::of(&keys.iter().map(|key| &**key).collect::<Vec<_>>())
            }
            Input::List(list) => Json::of(
                &list
                    .iter()
                    .map(|input| self.identity(input))
                    .collect::<Result<Vec<_>, _>>()?,
            ),
            Input::Param(_) => Err(Error::new(ErrorKind::Misuse, "a node of a plan was given to a board")),
        }
    }

    /// Adds an edge without a value.
    pub(crate) fn after(&self, place: usize, first: usize) -> Result<(), Error> {
        let mut packages = self.packages();
        let Some(laid) = packages.get_mut(place).and_then(|slot| slot.laid.as_mut()) else {
            let why = "`.after` came too late: the package is declared once its orchestrator awaits something";
            return Err(Error::new(ErrorKind::Misuse, why));
        };
        if !laid.after.contains(&first) {
            laid.after.push(first);
        }
        Ok(())
    }

    /// Hands what was assigned since the last time to the driver.
    pub(crate) fn flush(self: &Arc<Self>) {
        let packages: Vec<Laid> = self.packages().iter_mut().filter_map(|slot| slot.laid.take()).collect();
        if let Some(link) = self.link.as_ref().filter(|_| !packages.is_empty()) {
            (link.take)(self.clone(), packages);
        }
    }

    pub(crate) fn key(&self, place: usize) -> Option<Key> {
        self.packages().get(place).map(|slot| slot.key.clone())
    }

    /// What a package of this body is called.
    pub(crate) fn name(&self, place: usize) -> &'static str {
        self.packages().get(place).map_or("", |slot| slot.name)
    }

    /// What a package gave, once it has its answer.
    pub(crate) fn output(&self, place: usize) -> Option<Json> {
        let key = self.key(place)?;
        self.scope.recorded(&key).and_then(Result::ok)
    }

    fn packages(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.packages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
