use std::path::Path;

use neuron_workspace::{Dice, SEED, fresh_seed, is_long, scratch, seed_given};

use super::{Heard, Told, check, child};

/// Bytes of the file of that name beside the store.
fn bytes(store: &Path, suffix: &str) -> u64 {
    let mut name = store.as_os_str().to_owned();
    name.push(suffix);
    std::fs::metadata(name).map_or(0, |metadata| metadata.len())
}

#[test]
fn where_no_file_may_grow_every_append_is_told_to_have_failed_and_the_same_process_goes_on_when_they_may() {
    let seed = seed_given().unwrap_or_else(fresh_seed);
    eprintln!("to run it again: {SEED}={seed}");
    let mut dice = Dice::new(seed);
    for life in 0..if is_long() { 40 } else { 2 } {
        // A small store each time: in a large one the log has room for long before it is as large as the file.
        let folder = scratch();
        let path = folder.path().join("limit.db");
        let mut child = child(&path, life);
        for _ in 0..4 {
            for _ in 0..20 {
                child.wait_for("stands");
            }
            // At once, soon, or when the log is moved into the store.
            let most = match dice.below(3) {
                0 => 4_096,
                1 => bytes(&path, "-wal") + 20_000,
                _ => bytes(&path, "") + 100_000,
            };
            child.say(&format!("limit {most}"));
            child.wait_for("obeyed limit");
            child.wait_for("failed ");
            child.say("free");
            child.wait_for("obeyed free");
        }
        // The acknowledgements that are to come next were given without a limit.
        for _ in 0..20 {
            child.wait_for("stands");
        }
        let (status, lines) = child.wait();
        assert!(status.success(), "{:?}", lines.last());
        let heard = Heard::of(&lines);
        let failures = heard.batches.values().filter_map(|told| match told {
            Told::Failed(why) => Some(why),
            Told::Stands { .. } => None,
        });
        for why in failures {
            let typed = ["Io", "Full"].iter().any(|kind| why.contains(&format!(" {kind} ")));
            assert!(typed && why.contains("limit.db"), "{why}");
        }
        check(&path, &heard);
    }
}
