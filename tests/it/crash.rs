//! A program that is aborted at every point and started again, as it was or edited: `tests/victim`.

mod doubt;
mod edits;
mod handler;
mod large;
mod matrix;
mod till;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use neuron::{
    Author, Json, Ledger, Pattern, TokenId,
    store::{Access, Options, Select},
    topic::catalog,
    vocabulary::{
        Message as _,
        control::{ControlResolved, StepRuling},
    },
};
use neuron_workspace::{Process, TempDir, example, scratch};
use orchestrator::waiting::{Waits, What};

/// A store, and the program that works on it.
struct Victim {
    folder: TempDir,
    scenario: &'static str,
    env: BTreeMap<&'static str, String>,
}

impl Victim {
    fn new(scenario: &'static str) -> Self {
        Self {
            folder: scratch(),
            scenario,
            env: BTreeMap::new(),
        }
    }

    /// Changes what the program is from its next start on.
    fn set(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.env.insert(name, value.into());
        self
    }

    fn unset(&mut self, name: &'static str) -> &mut Self {
        self.env.remove(name);
        self
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("victim.db")
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn start(&self, args: &[&str]) -> Process {
        let mut command = example("victim");
        command.arg(self.store()).arg(self.scenario).args(args).envs(&self.env);
        Process::start(command)
    }

    /// What it gives in the end; nothing if it died.
    fn run(&self, args: &[&str]) -> Option<String> {
        let (status, said) = self.start(args).wait();
        if !status.success() {
            assert!(status.code().is_none(), "it failed by itself: {said:#?}");
            return None;
        }
        let told = said
            .into_iter()
            .find(|line| line.starts_with("result: ") || line.starts_with("error: "));
        Some(told.expect("a program that ends gives its result"))
    }

    /// Starts it with a step that stops the process.
    fn dies_in(&mut self, step: &str) {
        self.set("FATAL", step);
        assert_eq!(self.run(&[]), None, "`{step}` stops the process");
        self.unset("FATAL");
    }

    /// What was done to the world: the step, and the call.
    fn marks(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.folder().join("victim.db.marks")).unwrap_or_default();
        let pair = |line: &str| {
            line.split_once(' ')
                .map(|(step, key)| (step.to_owned(), key.to_owned()))
        };
        text.lines().map(|line| pair(line).expect("step and call")).collect()
    }

    /// How often a step did what it does.
    fn done(&self, step: &str) -> usize {
        self.marks().iter().filter(|(done, _)| done == step).count()
    }

    /// The log, for a reader.
    fn ledger(&self) -> Option<Ledger> {
        let reading = Options {
            access: Access::Read,
            ..Options::default()
        };
        self.store()
            .exists()
            .then(|| Ledger::open(self.store(), reading).unwrap())
    }

    /// The payloads of a type on the topics of steps.
    fn payloads(&self, kind: &str) -> Vec<serde_json::Value> {
        let Some(ledger) = self.ledger() else { return Vec::new() };
        let steps = Select::Pattern(Pattern::new("agent.*.steps").unwrap());
        let envelopes = ledger.read(steps).envelopes().map(Result::unwrap);
        let of_kind = envelopes.filter(|envelope| envelope.body.kind == *kind);
        of_kind
            .map(|envelope| envelope.body.payload.as_ref().map(Json::to_value).unwrap())
            .collect()
    }

    /// The calls that have an answer.
    fn completed(&self) -> Vec<String> {
        let ends = self.payloads("step.completed").into_iter();
        ends.map(|end| end["key"].as_str().unwrap().to_owned()).collect()
    }

    /// The one step that waits for a person, as `neuron waiting` shows it: its token and key.
    fn waiting(&self) -> (TokenId, String) {
        let waits = self.ledger().unwrap().fold(&Waits, None).unwrap().state;
        let mut items = waits.items();
        let item = items.next().expect("something waits");
        let (What::InDoubt { key, .. } | What::OnceChanged { key, .. }) = &item.what else {
            panic!("a step waits, not {item:?}");
        };
        assert!(items.next().is_none(), "nothing else waits");
        (item.token.clone().unwrap(), key.clone())
    }

    /// Rules on the step that waits, from this process.
    fn rule(&self, ruling: StepRuling, output: Option<u32>) {
        let (token, key) = self.waiting();
        let resolved = ControlResolved {
            key,
            ruling,
            output: output.map(|output| Json::of(&output).unwrap()),
            because: (ruling == StepRuling::Fail).then(|| "the bank says no".into()),
        };
        let draft = resolved
            .draft(catalog::control(&token), Author::human("ada").unwrap())
            .unwrap();
        let ledger = Ledger::open(self.store(), Options::default()).unwrap();
        ledger.append_blocking(neuron::Append::of([draft])).unwrap();
    }
}

/// A process that goes on after something was put on the log; gives its result.
fn result(mut process: Process) -> String {
    process.wait_for("result: ")
}
