//! Which steps of a run this process ran, and which the log answered.

use std::collections::HashSet;

use neuron::ownership::LeaseClaimed;
use neuron::store::Select;
use neuron::topic::catalog;
use neuron::vocabulary::Message as _;
use neuron::vocabulary::step::{StepCompleted, StepFailed, StepStarted};
use neuron::{Envelope, Error, Result, RunId};
use orchestrator::Neuron;
use orchestrator::board::BoardView;

/// The steps of a run that have ended, by agent, each in the order of the log.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Those that an earlier process, or another one, ran.
    pub(crate) answered: Vec<(String, Vec<String>)>,
    /// Those that this process ran.
    pub(crate) ran: Vec<(String, Vec<String>)>,
}

impl Share {
    /// Reads it from the log: each envelope of a step carries the epoch of the process that wrote it.
    pub(crate) fn of(neuron: &Neuron, run: &RunId) -> Result<Self, Error> {
        let ledger = neuron.ledger();
        let owned = Select::Key(catalog::leases(), format!("run:{run}").into());
        let mut own = HashSet::new();
        for envelope in ledger.read(owned).envelopes() {
            if let Some(claimed) = LeaseClaimed::read(&envelope?)?
                && claimed.incarnation == neuron.incarnation()
            {
                own.insert(claimed.epoch);
            }
        }
        let mut share = Self::default();
        for package in BoardView::of(ledger, run)?.packages() {
            let steps = ledger.read(Select::Topic(catalog::steps(&package.assigned.token)));
            let (mut begun, mut answered, mut ran) = (HashSet::new(), Vec::new(), Vec::new());
            for envelope in steps.envelopes() {
                let envelope = envelope?;
                let is_own = envelope
                    .headers
                    .decode("epoch")
                    .is_some_and(|epoch| own.contains(&epoch));
                if let Some(started) = StepStarted::read(&envelope)? {
                    if !is_own {
                        begun.insert(started.key);
                    }
                } else if let Some((key, name)) = end(&envelope)? {
                    match (is_own, begun.contains(&key)) {
                        (false, _) => answered.push(name),
                        (true, false) => ran.push(name),
                        (true, true) => ran.push(format!("{name} (begun before, cut off)")),
                    }
                }
            }
            share.answered.push((package.assigned.name.clone(), answered));
            share.ran.push((package.assigned.name.clone(), ran));
        }
        Ok(share)
    }
}

/// The key and name of the step that an envelope ends.
fn end(envelope: &Envelope) -> Result<Option<(String, String)>, Error> {
    if let Some(completed) = StepCompleted::read(envelope)? {
        return Ok(Some((completed.key, completed.name)));
    }
    Ok(StepFailed::read(envelope)?.map(|failed| (failed.key, failed.name)))
}
