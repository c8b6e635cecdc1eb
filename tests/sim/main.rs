//! Simulated histories: actors of two processes append, compare and set, claim and hand over, subscribe, consume and crash,
//! and the clock jumps, all from one seed; after every step the log is held to the laws, and in the end every message has had
//! its effect once.
//!
//! A failure prints its seed. `NEURON_SEED=7 cargo test --test sim` runs that history again; `NEURON_LONG=1` runs many more.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails is meant to panic"
)]

mod actor;
mod disk;
mod oracle;
mod planted;
mod world;

use neuron_workspace::{SEED, fresh_seed, is_long, seed_given};

use disk::Kind;
use world::World;

/// Tells the seed of the history that fails.
struct Seed(u64, Kind);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(seed, kind) = self;
            eprintln!("the history on {kind:?} failed; to run it again: {SEED}={seed} cargo test --test sim");
        }
    }
}

/// One history; gives the story of its log.
fn history(seed: u64, kind: Kind, steps: usize) -> Vec<String> {
    let told = Seed(seed, kind);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let story = runtime.block_on(async {
        let mut world = World::new(seed, kind);
        for _ in 0..steps {
            world.step().await;
        }
        world.settle().await
    });
    drop(told);
    story
}

fn histories(kind: Kind, short: u64, steps: usize) {
    if let Some(seed) = seed_given() {
        history(seed, kind, steps);
        return;
    }
    let count = if is_long() { short * 25 } else { short };
    // A few that never change, so that a change of the code is what breaks them, and as many that nobody has met yet.
    let fresh = fresh_seed();
    for seed in (0..count.div_ceil(2)).chain((0..count / 2).map(|n| fresh.wrapping_add(n))) {
        history(seed, kind, steps);
    }
}

#[test]
fn the_laws_hold_in_every_history_in_memory() {
    histories(Kind::Memory, 40, 200);
}

#[test]
fn the_laws_hold_in_every_history_on_a_file() {
    histories(Kind::File, 8, 120);
}

#[test]
fn a_history_follows_from_its_seed() {
    let (one, again) = (history(1, Kind::Memory, 100), history(1, Kind::Memory, 100));
    assert_eq!(one, again);
    assert_ne!(one, history(2, Kind::Memory, 100));
    assert!(one.len() > 50, "only {} envelopes in a hundred steps", one.len());
    let effects = one.iter().filter(|line| line.starts_with(actor::EFFECTS)).count();
    assert!(effects > 3, "only {effects} messages were consumed");
}
