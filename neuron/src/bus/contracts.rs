use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Contract, Error, ErrorKind, Pattern, Result, Topic, topic::catalog, vocabulary::Message};

/// Payload of `topic.declared`: a topic, or a family of topics, and its contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopicDeclared {
    /// Name or pattern; the `key` of the envelope.
    pub pattern: Pattern,
    /// What becomes of its envelopes.
    pub contract: Contract,
}

impl Message for TopicDeclared {
    const TYPE: &'static str = "topic.declared";
}

/// The declarations a process knows: the catalogue, and what it has read of `$topics`.
#[derive(Default)]
pub(crate) struct Contracts {
    /// By their `pos`, so that every process reads them in the same order, whenever it learnt of each.
    declared: RwLock<BTreeMap<u64, TopicDeclared>>,
    /// Counts what was learnt.
    version: AtomicU64,
    /// Learns what other processes have declared.
    refresh: OnceLock<Refresh>,
}

type Refresh = Box<dyn Fn() -> Result<(), Error> + Send + Sync>;

impl Contracts {
    /// The contract of a topic, if it is known. The catalogue comes first, then declarations in their order.
    pub(crate) fn get(&self, topic: &Topic) -> Option<Contract> {
        catalog::contract(topic).or_else(|| {
            let declared = self.declared.read().unwrap_or_else(PoisonError::into_inner);
            declared
                .values()
                .find(|known| known.pattern.matches(topic))
                .map(|known| known.contract)
        })
    }

    /// Takes in a declaration that was committed.
    pub(crate) fn learn(&self, pos: u64, declared: TopicDeclared) {
        let mut known = self.declared.write().unwrap_or_else(PoisonError::into_inner);
        if known.insert(pos, declared).is_none() {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Changes whenever a contract may have.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Says how to learn what other processes have declared.
    pub(crate) fn refresh_by(&self, refresh: impl Fn() -> Result<(), Error> + Send + Sync + 'static) {
        let _ = self.refresh.set(Box::new(refresh));
    }

    /// The contract of a topic, looked for in the store if it is not known.
    pub(crate) fn find(&self, topic: &Topic) -> Result<Contract, Error> {
        if let Some(contract) = self.get(topic) {
            return Ok(contract);
        }
        self.refresh.get().map_or(Ok(()), |refresh| refresh())?;
        self.get(topic).ok_or_else(|| unknown(topic))
    }

    /// The declaration of this very name or pattern.
    pub(crate) fn of(&self, pattern: &Pattern) -> Option<Contract> {
        let built_in = catalog::all()
            .find(|(known, _)| known == pattern)
            .map(|(_, contract)| contract);
        built_in.or_else(|| {
            let declared = self.declared.read().unwrap_or_else(PoisonError::into_inner);
            declared
                .values()
                .find(|known| known.pattern == *pattern)
                .map(|known| known.contract)
        })
    }
}

/// How a topic that was never declared is refused.
pub(crate) fn unknown(topic: &Topic) -> Error {
    Error::new(
        ErrorKind::UnknownTopic,
        format!("topic {topic} is not declared: declare it, or a pattern for its family, once per store"),
    )
}

/// Refuses a declaration that the engine's own names or another contract stand against.
pub(crate) fn declarable(contracts: &Contracts, declared: &TopicDeclared) -> Result<bool, Error> {
    let TopicDeclared { pattern, contract } = declared;
    if pattern.as_str().starts_with('$') {
        let why = format!("topic {pattern} belongs to the engine: choose a name without `$`");
        return Err(Error::new(ErrorKind::Contract, why));
    }
    let known = contracts
        .of(pattern)
        .or_else(|| pattern.literal().and_then(|topic| contracts.get(&topic)));
    match known {
        None => Ok(true),
        Some(known) if known == *contract => Ok(false),
        Some(known) => Err(Error::new(
            ErrorKind::Contract,
            format!(
                "topic {pattern} is declared {known:?}; a contract is fixed at creation and cannot become {contract:?}"
            ),
        )),
    }
}

impl fmt::Debug for Contracts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contracts")
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}
