//! A small tree that keeps every rule, and one violation of each rule planted in it.

use std::{collections::BTreeMap, fs};

use super::{LINES_MAX, Tree, map};

/// A small tree without a finding.
fn sound() -> BTreeMap<&'static str, String> {
    let map = "## Code map\n### `neuron`\n| file | layer | what it is |\n|---|---|---|\n| `clock.rs` | L0 | time |\n\
               | `error.rs` | L0 | errors |\n| `store/log.rs` | L2 | the log |\n| `store/mod.rs` | L2 | the store |\n| `lib.rs` | L6 | the crate |\n\
               ### `orchestrator`\n| file | layer | what it is |\n|---|---|---|\n| `lib.rs` | O7 | the crate |\n";
    BTreeMap::from([
        (map::FILE, map.to_owned()),
        (
            "neuron/Cargo.toml",
            "[dependencies]\nneuron-macros.workspace = true\n".to_owned(),
        ),
        (
            "neuron/src/lib.rs",
            "mod error; pub mod store; pub use error::Error; use store::open;".to_owned(),
        ),
        ("neuron/src/clock.rs", "pub struct Clock;".to_owned()),
        (
            "neuron/src/error.rs",
            "pub struct Error; #[cfg(test)] mod tests { use crate::store; }".to_owned(),
        ),
        ("neuron/src/store/log.rs", "use crate::Error; // todo!".to_owned()),
        (
            "neuron/src/store/mod.rs",
            "mod log; pub fn open() { self::log::read() }".to_owned(),
        ),
        (
            "orchestrator/Cargo.toml",
            "[dependencies]\nneuron.workspace = true\n".to_owned(),
        ),
        ("orchestrator/src/lib.rs", "#[test]\nfn one_two_three() {}".to_owned()),
    ])
}

fn findings_of(files: &BTreeMap<&str, String>) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Tree::read(root.path()).findings()
}

#[test]
fn a_sound_tree_gives_no_finding() {
    assert_eq!(findings_of(&sound()), [""; 0]);
}

#[test]
fn every_planted_violation_is_found_and_nothing_else() {
    let machine = format!("/// See {}{}.", "/wo", "rk/notes");
    let long = "fn f() {}\n".repeat(LINES_MAX + 1);
    for (path, add, expected) in [
        ("neuron/src/stray.rs", "", "| `stray.rs` |"),
        (
            map::FILE,
            "| `gone.rs` | O7 | gone |",
            "`gone.rs` of orchestrator is mapped but not there",
        ),
        (map::FILE, "| `lib.rs` | O7 | again |", "`lib.rs` is mapped twice"),
        (
            "neuron/src/clock.rs",
            "use crate::store;",
            "clock.rs:2: layer L0 imports store/mod.rs of layer L2",
        ),
        (
            "neuron/src/clock.rs",
            "fn f() { crate::open() }",
            "layer L0 imports store/mod.rs of layer L2",
        ),
        (
            "neuron/src/clock.rs",
            "use crate::{Error, Error as E};",
            "layer L0 imports error.rs of layer L0, whose row is below",
        ),
        (
            "neuron/src/store/log.rs",
            "use super::open;",
            "in a circle: store/mod.rs → store/log.rs → store/mod.rs",
        ),
        (
            "orchestrator/Cargo.toml",
            "telos-adapter.workspace = true",
            "orchestrator must not depend on telos-adapter",
        ),
        (
            "orchestrator/Cargo.toml",
            "x = { package = \"telos-adapter\" }",
            "must not depend on telos-adapter",
        ),
        (
            "telos-adapter/Cargo.toml",
            "[dev-dependencies.orchestrator]",
            "telos-adapter must not depend on orchestrator",
        ),
        (
            "neuron/Cargo.toml",
            "[target.'cfg(unix)'.dependencies]\norchestrator = \"1\"",
            "must not depend on orchestrator",
        ),
        ("neuron/src/store/log.rs", &long, "log.rs: 402 lines without tests"),
        ("examples/one.rs", "fn f() { todo!() }", "one.rs:2: `todo!` is not"),
        ("examples/one.rs", "fn f() { dbg!(1); }", "`dbg!` is not"),
        (
            "examples/one.rs",
            "fn f() { unimplemented!() }",
            "`unimplemented!` is not",
        ),
        ("examples/utils/one.rs", "", "`utils` says nothing"),
        ("examples/one.rs", "mod manager {}", "`mod manager` says nothing"),
        (
            "tests/it/one.rs",
            "#[test]\nfn it_works() {}",
            "one.rs:3: test `it_works` is no sentence",
        ),
        (
            "tests/it/one.rs",
            "#[tokio::test(start_paused = true)]\nasync fn works() {}",
            "test `works` is no sentence",
        ),
        ("README.md", &machine, "is a path of one machine"),
        (".ci/run", &machine, "is a path of one machine"),
    ] {
        let mut files = sound();
        let text = files.entry(path).or_default();
        *text = format!("{text}\n{add}").trim_end_matches('\n').to_owned();
        let findings = findings_of(&files);
        assert!(
            findings.len() == 1 && findings[0].contains(expected),
            "{path}: {add}\n{findings:#?}"
        );
    }
}
