use std::collections::{BTreeSet, VecDeque};

use super::Ledger;
use crate::{
    Envelope, EnvelopeRef, Error, ErrorKind, Result,
    store::{INJECTED, Select},
};

/// Which way to follow causality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To what it responds to and what caused it.
    Causes,
    /// To what responds to it and what it caused.
    Effects,
}

/// One envelope met on a walk.
#[derive(Clone, Debug)]
pub struct Step {
    /// How many edges away from the start; 0 = the start itself.
    pub depth: usize,
    /// The envelope.
    pub envelope: Envelope,
    /// Whether it is a later header injection.
    pub injection: bool,
}

impl Ledger {
    /// Follows causality from an envelope, breadth first, each envelope once: the start, then its neighbours by `pos`.
    /// Injections are left out unless asked for. At most `limit` steps. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the start is not in this store; a kind of the disk.
    pub fn walk(
        &self,
        start: &EnvelopeRef,
        direction: Direction,
        injections: bool,
        limit: usize,
    ) -> Result<Vec<Step>, Error> {
        let mut waiting = VecDeque::from([(0, self.resolve(start)?)]);
        let mut seen = BTreeSet::from([waiting[0].1.pos]);
        let mut steps = Vec::new();
        while let Some((depth, envelope)) = waiting.pop_front() {
            if steps.len() == limit {
                break;
            }
            let mut next = match direction {
                Direction::Causes => self.causes(&envelope)?,
                Direction::Effects => self.effects(&envelope)?,
            };
            next.retain(|envelope| (injections || envelope.body.kind != INJECTED) && seen.insert(envelope.pos));
            next.sort_by_key(|envelope| envelope.pos);
            waiting.extend(next.into_iter().map(|envelope| (depth + 1, envelope)));
            let injection = envelope.body.kind == INJECTED;
            steps.push(Step {
                depth,
                envelope,
                injection,
            });
        }
        Ok(steps)
    }

    fn causes(&self, envelope: &Envelope) -> Result<Vec<Envelope>, Error> {
        let parent = match envelope.parent_seq {
            Some(seq) => self
                .0
                .store
                .row(&envelope.topic, seq)?
                .map(|row| row.envelope())
                .transpose()?,
            None => None,
        };
        let cause = match envelope.cause().map(|cause| self.resolve(&cause)) {
            // An archive may hold a part of a store, and end here.
            Some(Err(error)) if error.kind() == ErrorKind::NotFound && self.0.store.archive()?.is_some() => None,
            cause => cause.transpose()?,
        };
        Ok(parent.into_iter().chain(cause).collect())
    }

    /// Responses stand later in the same topic; there is no index on `parentSeq`, so the rest of the topic is read.
    fn effects(&self, envelope: &Envelope) -> Result<Vec<Envelope>, Error> {
        let later = self
            .read(Select::Topic(envelope.topic.clone()))
            .from(envelope.pos + 1)
            .envelopes();
        let mut found = Vec::new();
        for response in later {
            let response = response?;
            if response.parent_seq == Some(envelope.seq) {
                found.push(response);
            }
        }
        for caused in self.read(Select::CausedBy(envelope.pos)).envelopes() {
            found.push(caused?);
        }
        Ok(found)
    }
}
