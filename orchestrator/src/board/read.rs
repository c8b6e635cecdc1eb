use neuron::{Envelope, Error, Ledger, Result, RunId, TokenId, Topic, store::Select, topic::catalog};

use super::BoardView;
use crate::{ancestry::Ancestry, fact::Fact};

impl BoardView {
    /// The board of a run, from its log. Blocks.
    ///
    /// ```
    /// # use neuron::{Ledger, RunId};
    /// # fn show(ledger: &Ledger) -> Result<(), neuron::Error> {
    /// let board = orchestrator::board::BoardView::of(ledger, &RunId::new("digest-1")?)?;
    /// for package in board.packages() {
    ///     println!("{} {}", package.assigned.name, board.phase(package));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A kind of the disk; [`Schema`](neuron::ErrorKind::Schema) or [`Corrupt`](neuron::ErrorKind::Corrupt) for an
    /// envelope that is not what its type says.
    pub fn of(ledger: &Ledger, run: &RunId) -> Result<Self, Error> {
        let mut board = Self::default();
        for (_, fact) in facts(ledger, run)? {
            board.record(&fact)?;
        }
        Ok(board)
    }
}

/// What the log says of a run, with the envelopes that say it, in the order of the store; for a fork, first what it has
/// from those that it parts from. Blocks.
pub(crate) fn facts(ledger: &Ledger, run: &RunId) -> Result<Vec<(Envelope, Fact)>, Error> {
    let mut facts = Ancestry::of(ledger, run)?.facts(own)?;
    facts.extend(own(ledger, run)?);
    Ok(facts)
}

fn own(ledger: &Ledger, run: &RunId) -> Result<Vec<(Envelope, Fact)>, Error> {
    let mut facts = Vec::new();
    for topic in [catalog::lifecycle(run), catalog::packages(run), catalog::clearance(run)] {
        read(ledger, topic, &mut facts)?;
    }
    let assigned = facts.iter().filter_map(|(_, fact)| match fact {
        Fact::Assigned(assigned) => Some(assigned.token.clone()),
        _ => None,
    });
    let tokens: Vec<TokenId> = assigned.collect();
    for token in tokens {
        read(ledger, catalog::plan(&token), &mut facts)?;
    }
    facts.sort_by_key(|(envelope, _)| envelope.pos);
    Ok(facts)
}

fn read(ledger: &Ledger, topic: Topic, facts: &mut Vec<(Envelope, Fact)>) -> Result<(), Error> {
    for envelope in ledger.read(Select::Topic(topic)).checked().envelopes() {
        let envelope = envelope?;
        if let Some(fact) = Fact::of(&envelope)? {
            facts.push((envelope, fact));
        }
    }
    Ok(())
}
