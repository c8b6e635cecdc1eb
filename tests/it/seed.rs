//! `examples/seed` as a user runs it: killed at any moment and run again, the conversation is the one that nobody
//! interrupted.

use std::{collections::BTreeSet, path::Path};

use neuron::{
    ConversationId, Digest, Ledger,
    store::{Access, Options, Select},
    topic::catalog,
};
use neuron_workspace::{Dice, Process, example, fresh_seed, is_long, seed_given};

const PROMPTS: [&str; 4] = ["hello", "how long have we talked?", "and “now”?", "good bye"];

/// One envelope of the conversation, without its time: author, type, text, and what it responds to.
type Said = (String, String, String, Option<u64>);

/// What the store holds, read as anybody would who opens it.
struct Held {
    said: Vec<Said>,
    superseded: usize,
    artifacts: BTreeSet<Digest>,
}

impl Held {
    /// A store that no process has yet made whole holds nothing.
    fn of(store: &Path) -> Self {
        let empty = Self {
            said: Vec::new(),
            superseded: 0,
            artifacts: BTreeSet::new(),
        };
        if !store.exists() {
            return empty;
        }
        let reading = Options {
            access: Access::Read,
            ..Options::default()
        };
        let ledger = Ledger::open(store, reading).unwrap();
        let said = ledger.read(Select::Topic(conversation())).envelopes().map(|envelope| {
            let envelope = envelope.unwrap();
            assert!(envelope.is_intact().unwrap());
            let text = envelope.decode().unwrap();
            let (author, kind) = (envelope.author.to_string(), envelope.body.kind.to_string());
            (author, kind, text, envelope.parent_seq)
        });
        Self {
            said: said.collect(),
            superseded: ledger.read(Select::Topic(catalog::artifacts())).envelopes().count(),
            artifacts: ledger
                .store()
                .manifests()
                .unwrap()
                .into_iter()
                .map(|(hash, _)| hash)
                .collect(),
        }
    }

    fn prompts(&self) -> usize {
        self.said.iter().filter(|(_, kind, ..)| kind == "prompt").count()
    }

    /// Prompts and replies take turns, each reply names its own prompt, and at most the last prompt has none.
    fn assert_whole(&self) {
        for (place, (_, kind, text, parent)) in self.said.iter().enumerate() {
            let before = place as u64;
            let wanted = if place % 2 == 0 {
                ("prompt", None)
            } else {
                ("reply", Some(before))
            };
            assert_eq!((kind.as_str(), *parent), wanted, "{text}");
        }
        assert!(self.superseded <= 1, "superseded {} times", self.superseded);
    }
}

fn conversation() -> neuron::Topic {
    catalog::conversation(&ConversationId::new("seed").unwrap())
}

/// Starts the example on a store, with the prompts that it does not hold yet on its standard input.
fn start(store: &Path, crash_after: Option<u64>) -> Process {
    let held = Held::of(store);
    held.assert_whole();
    let mut command = example("seed");
    command.arg(store);
    if let Some(commit) = crash_after {
        command.args(["--crash-after", &commit.to_string()]);
    }
    let mut process = Process::start(command);
    for prompt in &PROMPTS[held.prompts()..] {
        if process.try_say(prompt).is_err() {
            break; // it is dead already
        }
    }
    process.hang_up();
    process
}

/// What a run that nobody interrupts leaves.
fn uninterrupted() -> Held {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("seed.db");
    let (status, said) = start(&store, None).wait();
    assert!(status.success(), "{said:?}");
    let held = Held::of(&store);
    assert_eq!((held.said.len(), held.prompts()), (2 * PROMPTS.len(), PROMPTS.len()));
    assert_eq!((held.superseded, held.artifacts.len()), (1, 2));
    held
}

fn assert_same(store: &Path, wanted: &Held) {
    let held = Held::of(store);
    held.assert_whole();
    assert_eq!(held.said, wanted.said);
    assert_eq!((held.superseded, &held.artifacts), (1, &wanted.artifacts));
}

#[test]
fn killed_after_any_commit_and_run_again_it_has_said_the_same() {
    let wanted = uninterrupted();
    let mut crashes = 0;
    for commit in 1.. {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("seed.db");
        let (status, said) = start(&store, Some(commit)).wait();
        if !status.success() {
            crashes += 1;
            let (status, said) = start(&store, None).wait();
            assert!(status.success(), "after a crash at commit {commit}: {said:?}");
        }
        assert_same(&store, &wanted);
        if status.success() {
            assert!(
                said.iter().any(|line| line.contains("good bye")),
                "commit {commit}: {said:?}"
            );
            break;
        }
    }
    // Every prompt, every reply and the supersession are a commit of their own.
    assert!(crashes > 2 * PROMPTS.len(), "only {crashes} commits were made");
}

#[test]
fn killed_from_outside_at_random_moments_it_has_said_the_same_in_the_end() {
    let wanted = uninterrupted();
    let seed = seed_given().unwrap_or_else(fresh_seed);
    eprintln!("NEURON_SEED={seed}");
    let mut dice = Dice::new(seed);
    for _ in 0..if is_long() { 200 } else { 8 } {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("seed.db");
        for _ in 0..6 {
            let mut process = start(&store, None);
            // Whatever it does when this many lines were read: lines are read later than they are said.
            for _ in 0..dice.below(2 * PROMPTS.len() + 2) {
                if process.line("").is_err() {
                    break;
                }
            }
            process.kill();
        }
        let (status, said) = start(&store, None).wait();
        assert!(status.success(), "{said:?}");
        assert_same(&store, &wanted);
    }
}
