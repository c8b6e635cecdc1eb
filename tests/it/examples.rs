//! The examples that teach one thing each: each prints what its own documentation says, on a store that is sound after it.

use std::{fs, path::Path};

use neuron::store::{Access, Options, Sqlite, verify};
use neuron_workspace::{Process, example, scratch};

/// In reading order, after `seed`, which has tests of its own.
const EXAMPLES: [&str; 10] = [
    "correct",
    "fold",
    "agent",
    "plan",
    "parallel",
    "human",
    "saga",
    "long_loop",
    "transaction",
    "test_your_agent",
];

/// The lines that an example says it prints, after the command.
fn promised(name: &str) -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs"));
    let source = fs::read_to_string(source).unwrap();
    let comment: Vec<_> = source.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let lines = comment.iter().map(|line| line.trim());
    let command = format!("$ cargo run --example {name} -- {name}.db");
    let printed = lines.skip_while(|line| *line != command).skip(1);
    printed.take_while(|line| *line != "```").map(str::to_owned).collect()
}

#[test]
fn each_example_prints_what_it_says_and_leaves_a_sound_store() {
    for name in EXAMPLES {
        let promised = promised(name);
        assert!(!promised.is_empty(), "{name} says nothing");
        let folder = scratch();
        let store = folder.path().join(format!("{name}.db"));
        let mut command = example(name);
        command.arg(&store);
        let (status, said) = Process::start(command).wait();
        assert!(status.success(), "{name}: {said:?}");
        assert_eq!(said, promised, "{name}");
        let reading = Options {
            access: Access::Read,
            ..Options::default()
        };
        verify::verify(&Sqlite::open(&store, reading).unwrap()).unwrap();
    }
}
