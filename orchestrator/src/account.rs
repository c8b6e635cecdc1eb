//! What a run took: by package, by agent, by step. Written at the boundary of each step, added up here.

use std::{
    collections::BTreeMap,
    ops::{Add, AddAssign},
};

use neuron::{
    Envelope, Error, Fold, Ledger, Result, RunId, TokenId,
    store::Select,
    topic::catalog,
    vocabulary::{Message as _, orchestration::PackageAssigned, step::StepAttempted},
};
use serde::{Deserialize, Serialize};

/// What some work took, without what the steps it called took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Burn {
    /// Tokens given to a model.
    pub tokens_in: u64,
    /// Tokens taken from a model.
    pub tokens_out: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Time on a monotonic clock, in milliseconds.
    pub duration_ms: u64,
    /// Steps that ended, well or not.
    pub steps: u64,
}

impl AddAssign for Burn {
    fn add_assign(&mut self, more: Self) {
        self.tokens_in = self.tokens_in.saturating_add(more.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(more.tokens_out);
        self.tool_calls = self.tool_calls.saturating_add(more.tool_calls);
        self.duration_ms = self.duration_ms.saturating_add(more.duration_ms);
        self.steps = self.steps.saturating_add(more.steps);
    }
}

impl Add for Burn {
    type Output = Self;

    fn add(mut self, more: Self) -> Self {
        self += more;
        self
    }
}

impl std::iter::Sum for Burn {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// The account of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    packages: BTreeMap<TokenId, Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    /// The package's place in the order of assignment.
    place: usize,
    agent: String,
    steps: BTreeMap<String, Burn>,
}

impl Account {
    /// The account of a run, from its log. Blocks.
    ///
    /// # Errors
    /// A kind of the disk; [`Schema`](neuron::ErrorKind::Schema) for an envelope that is not what its type says.
    pub fn of(ledger: &Ledger, run: &RunId) -> Result<Self, Error> {
        let fold = Cost::new(run);
        let mut account = fold.init();
        for envelope in ledger.read(Select::Topic(catalog::packages(run))).checked().envelopes() {
            fold.apply(&mut account, &envelope?)?;
        }
        let tokens: Vec<TokenId> = account.packages.keys().cloned().collect();
        for token in tokens {
            for envelope in ledger.read(Select::Topic(catalog::steps(&token))).checked().envelopes() {
                fold.apply(&mut account, &envelope?)?;
            }
        }
        Ok(account)
    }

    /// What everything took together.
    pub fn total(&self) -> Burn {
        self.packages
            .values()
            .flat_map(|line| line.steps.values().copied())
            .sum()
    }

    /// By package: the token, the agent or plan, and what it took, in the order of assignment.
    pub fn by_package(&self) -> Vec<(&TokenId, &str, Burn)> {
        let mut lines: Vec<_> = self.packages.iter().collect();
        lines.sort_by_key(|(_, line)| line.place);
        let lines = lines.into_iter();
        lines
            .map(|(token, line)| (token, &*line.agent, line.steps.values().copied().sum()))
            .collect()
    }

    /// By agent or plan.
    pub fn by_agent(&self) -> BTreeMap<&str, Burn> {
        let mut agents = BTreeMap::<&str, Burn>::new();
        for line in self.packages.values() {
            *agents.entry(&line.agent).or_default() += line.steps.values().copied().sum();
        }
        agents
    }

    /// By step.
    pub fn by_step(&self) -> BTreeMap<&str, Burn> {
        let mut steps = BTreeMap::<&str, Burn>::new();
        for (name, burn) in self.packages.values().flat_map(|line| &line.steps) {
            *steps.entry(name).or_default() += *burn;
        }
        steps
    }
}

/// Folds the log into the [`Account`] of one run. It may be given any envelopes, those of other runs too.
#[derive(Clone, Debug)]
pub struct Cost(RunId);

impl Cost {
    /// The fold of one run.
    pub fn new(run: &RunId) -> Self {
        Self(run.clone())
    }
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Fold for Cost {
    type State = Account;

    fn init(&self) -> Account {
        Account::default()
    }

    fn apply(&self, account: &mut Account, envelope: &Envelope) -> Result<(), Error> {
        if envelope.body.kind == PackageAssigned::TYPE && envelope.topic == catalog::packages(&self.0) {
            let assigned: PackageAssigned = envelope.decode()?;
            let line = Line {
                place: account.packages.len(),
                agent: assigned.name,
                steps: BTreeMap::new(),
            };
            account.packages.entry(assigned.token).or_insert(line);
        }
        let Some(line) = steps_of(envelope).and_then(|token| account.packages.get_mut(&token)) else {
            return Ok(());
        };
        if let Some(burn) = burn(envelope) {
            *line.steps.entry(envelope.decode::<Named>()?.name).or_default() += burn;
        }
        Ok(())
    }
}

/// The token whose steps an envelope is about.
pub(crate) fn steps_of(envelope: &Envelope) -> Option<TokenId> {
    match envelope.topic.segments().collect::<Vec<_>>()[..] {
        ["agent", token, "steps"] => TokenId::new(token).ok(),
        _ => None,
    }
}

/// What the headers say an attempt took; `None` for an envelope that ends none.
fn burn(envelope: &Envelope) -> Option<Burn> {
    let number = |key| envelope.headers.decode::<u64>(key);
    let duration_ms = number("duration-ms")?;
    Some(Burn {
        tokens_in: number("tokens-in").unwrap_or(0),
        tokens_out: number("tokens-out").unwrap_or(0),
        tool_calls: number("tool-calls").unwrap_or(0),
        duration_ms,
        // An attempt that will be made again took something, and ends no step.
        steps: u64::from(envelope.body.kind != StepAttempted::TYPE),
    })
}
