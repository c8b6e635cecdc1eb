//! The runs that a fork parts from: it begins with what was recorded for them.

use std::collections::{HashMap, HashSet};

use neuron::{
    Envelope, Error, ErrorKind, Ledger, Millis, Result, RunId, TokenId, Topic,
    store::Select,
    topic::catalog,
    vocabulary::{
        Message as _,
        orchestration::{OrchestrationCreated, PackageAssigned},
    },
};

use crate::{fact::Fact, package::Key};

/// A run and the runs that it parts from, if it is a fork.
pub(crate) struct Ancestry {
    /// The run that the others part from: calls have the keys that they have there.
    root: RunId,
    /// When that began, and at which `pos`.
    birth: (Millis, u64),
    /// Those before it, oldest first.
    before: Vec<Ancestor>,
}

/// A run that another one parts from.
struct Ancestor {
    run: RunId,
    /// The log as it stood there.
    then: Ledger,
    /// By package, its token, and when it was assigned.
    tokens: HashMap<Key, (TokenId, Millis)>,
}

/// What a body is answered from besides its own topics: topics on the log as it stood.
pub(crate) type Before = Vec<(Ledger, Vec<Topic>)>;

impl Ancestry {
    /// Of a run that parts from none.
    pub(crate) fn alone(run: &RunId, birth: (Millis, u64)) -> Self {
        Self {
            root: run.clone(),
            birth,
            before: Vec::new(),
        }
    }

    /// As the log has it; of a run that nobody began, alone. Blocks.
    ///
    /// # Errors
    /// A kind of the disk; [`ErrorKind::Corrupt`] if a run that it parts from is not there.
    pub(crate) fn of(ledger: &Ledger, run: &RunId) -> Result<Self, Error> {
        let Some((mut first, mut created)) = beginning(ledger, run)? else {
            return Ok(Self::alone(run, (Millis(0), 0)));
        };
        let (mut root, mut before) = (run.clone(), Vec::new());
        while let Some(fork) = created.fork.take() {
            // Whatever it says: only what stood before it began.
            let then = ledger.as_of(fork.at.min(first.pos.saturating_sub(1)))?;
            let absent = || {
                let why = format!(
                    "run `{root}` is a fork of `{}`, which is not on the log at {}",
                    fork.run, fork.at
                );
                Error::new(ErrorKind::Corrupt, why)
            };
            (first, created) = beginning(&then, &fork.run)?.ok_or_else(absent)?;
            before.push(Ancestor {
                tokens: tokens(&then, &fork.run)?,
                run: fork.run.clone(),
                then,
            });
            root = fork.run;
        }
        before.reverse();
        Ok(Self {
            root,
            birth: (first.at, first.pos),
            before,
        })
    }

    pub(crate) fn is_fork(&self) -> bool {
        !self.before.is_empty()
    }

    /// The id of the scope of the run's own body.
    pub(crate) fn scope(&self) -> String {
        self.root.to_string()
    }

    /// What the clock of the run's own body begins with.
    pub(crate) fn birth(&self) -> Millis {
        self.birth.0
    }

    /// The `pos` after which its waits begin.
    pub(crate) fn born(&self) -> u64 {
        self.birth.1
    }

    /// When a package was assigned first.
    pub(crate) fn assigned(&self, package: &Key) -> Option<Millis> {
        let mut first = self.before.iter().filter_map(|ancestor| ancestor.tokens.get(package));
        first.next().map(|(_, at)| *at)
    }

    /// What the body of an orchestrator is answered from besides its own topics.
    pub(crate) fn of_orchestrator(&self) -> Before {
        let topics = |run| vec![catalog::lifecycle(run), catalog::packages(run)];
        let before = self.before.iter();
        before
            .map(|ancestor| (ancestor.then.clone(), topics(&ancestor.run)))
            .collect()
    }

    /// What the body of a package is answered from besides its own topic.
    pub(crate) fn of_package(&self, package: &Key) -> Before {
        let topic = |ancestor: &Ancestor| {
            let (token, _) = ancestor.tokens.get(package)?;
            Some((ancestor.then.clone(), vec![catalog::steps(token)]))
        };
        self.before.iter().filter_map(topic).collect()
    }

    /// What stands on the boards of those before it, of the packages that have their answers.
    pub(crate) fn facts(
        &self,
        own: impl Fn(&Ledger, &RunId) -> Result<Vec<(Envelope, Fact)>, Error>,
    ) -> Result<Vec<(Envelope, Fact)>, Error> {
        let (mut facts, mut over) = (Vec::new(), HashSet::new());
        for ancestor in &self.before {
            let then = own(&ancestor.then, &ancestor.run)?;
            over.extend(then.iter().filter_map(|(_, fact)| match fact {
                Fact::Ended { package, .. } => Some(package.clone()),
                _ => None,
            }));
            let answered = then.into_iter().filter(|(_, fact)| match fact {
                Fact::Edge(edge) => over.contains(&edge.from) && over.contains(&edge.to),
                fact => fact.package().is_some_and(|package| over.contains(package)),
            });
            facts.extend(answered);
        }
        Ok(facts)
    }
}

/// How a run began.
fn beginning(ledger: &Ledger, run: &RunId) -> Result<Option<(Envelope, OrchestrationCreated)>, Error> {
    let Some(row) = ledger.store().row(&catalog::lifecycle(run), 1)? else {
        return Ok(None);
    };
    let first = row.checked()?;
    Ok(OrchestrationCreated::read(&first)?.map(|created| (first, created)))
}

fn tokens(ledger: &Ledger, run: &RunId) -> Result<HashMap<Key, (TokenId, Millis)>, Error> {
    let mut tokens = HashMap::new();
    for envelope in ledger.read(Select::Topic(catalog::packages(run))).checked().envelopes() {
        let envelope = envelope?;
        if let Some(assigned) = PackageAssigned::read(&envelope)? {
            tokens
                .entry(assigned.key.as_str().into())
                .or_insert((assigned.token, envelope.at));
        }
    }
    Ok(tokens)
}
