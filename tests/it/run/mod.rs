//! Runs of several processes on one store: killed, stopped, taken over, ordered about.

mod child;
mod crash;
mod takeover;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use neuron::{
    Ledger, RunId,
    store::{Access, Options, Select},
};
use neuron_workspace::Process;
use orchestrator::board::BoardView;

use child::Setting;

/// A folder with a store, and what the steps of a run have done to the world.
struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn store(&self) -> PathBuf {
        self.path().join("run.db")
    }

    /// Lets the steps go on that wait at the gate.
    fn open_gate(&self) {
        std::fs::write(self.path().join("gate"), "open").unwrap();
    }

    fn start(&self, setting: &Setting) -> Process {
        child::start(self.path(), setting)
    }

    /// How often each deed was done.
    fn deeds(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.path().join("deeds")).unwrap_or_default();
        let mut deeds = BTreeMap::new();
        for deed in text.lines() {
            *deeds.entry(deed.into()).or_default() += 1;
        }
        deeds
    }

    fn reading(&self) -> Ledger {
        let options = Options {
            access: Access::Read,
            ..Options::default()
        };
        Ledger::open(self.store(), options).unwrap()
    }

    fn board(&self) -> BoardView {
        BoardView::of(&self.reading(), &RunId::new("r").unwrap()).unwrap()
    }

    /// How often each call was answered, by scope and key.
    fn answers(&self) -> BTreeMap<String, usize> {
        let mut answers = BTreeMap::new();
        for envelope in self.reading().read(Select::All).envelopes() {
            let envelope = envelope.unwrap();
            let kind = envelope.body.kind.as_str();
            if [
                "step.completed",
                "step.failed",
                "timer.fired",
                "emit.completed",
                "wait.ended",
                "thread.completed",
                "package.completed",
            ]
            .contains(&kind)
            {
                let payload = envelope.body.payload.as_ref().unwrap().to_value();
                let (scope, key) = (payload["scope"].as_str().unwrap(), payload["key"].as_str().unwrap());
                *answers.entry(format!("{scope} {key}")).or_default() += 1;
            }
        }
        answers
    }

    /// How many envelopes of a type there are.
    fn count(&self, prefix: &str) -> usize {
        let all = self.reading().read(Select::All).envelopes();
        all.filter(|envelope| envelope.as_ref().unwrap().body.kind.as_str().starts_with(prefix))
            .count()
    }
}
