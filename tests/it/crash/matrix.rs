use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
};

use neuron::limits;
use neuron_workspace::{Dice, fresh_seed, is_long, seed_given};

use super::Victim;

/// Steps that had completed when the process died did nothing afterwards, each has one answer, and the payment was made
/// once.
fn assert_nothing_twice(victim: &Victim, completed: &BTreeSet<String>, before: usize, when: &str) {
    let marks = victim.marks();
    for (step, key) in &marks[before..] {
        assert!(!completed.contains(key), "{when}: `{step}` had completed and ran again");
    }
    assert_eq!(victim.done("pay"), 1, "{when}: paid once");
    let mut answers = BTreeMap::<String, usize>::new();
    victim
        .completed()
        .into_iter()
        .for_each(|key| *answers.entry(key).or_default() += 1);
    let twice: Vec<_> = answers.into_iter().filter(|(_, count)| *count > 1).collect();
    assert!(twice.is_empty(), "{when}: answered twice: {twice:?}");
}

/// Aborts a fresh run at each commit in turn and starts it again, until a run ends before it gets there.
fn at_every_commit(point: &str, wanted: &str) -> usize {
    for commit in 1.. {
        let victim = Victim::new("workshop");
        let crashed = victim.run(&["--abort", point, &commit.to_string()]);
        if let Some(result) = crashed {
            assert_eq!(result, wanted, "{point} commit {commit}, which never came");
            return commit - 1;
        }
        let when = format!("aborted {point} commit {commit}");
        let (completed, before) = (victim.completed().into_iter().collect(), victim.marks().len());
        assert_eq!(victim.run(&[]).as_deref(), Some(wanted), "{when}");
        assert_nothing_twice(&victim, &completed, before, &when);
    }
    unreachable!("every run ends")
}

#[test]
fn aborted_before_or_after_any_commit_a_run_gives_the_same_and_completes_nothing_twice() {
    let victim = Victim::new("workshop");
    let wanted = victim.run(&[]).expect("nobody interrupts it");
    assert!(wanted.starts_with("result: "), "{wanted}");
    let commits: Vec<usize> = thread::scope(|scope| {
        let points = ["before", "after"].map(|point| scope.spawn(|| at_every_commit(point, &wanted)));
        points.map(|point| point.join().unwrap()).to_vec()
    });
    let answers = victim.completed().len();
    assert!(
        commits.iter().all(|count| *count > answers),
        "{commits:?} commits, {answers} answers"
    );
}

/// A process that dies again while it recovers: fewer times than make a step that was in flight each time suspect.
#[test]
fn aborted_again_while_it_recovers_a_run_gives_the_same_in_the_end() {
    let wanted = Victim::new("workshop").run(&[]).expect("nobody interrupts it");
    let seed = seed_given().unwrap_or_else(fresh_seed);
    eprintln!("NEURON_SEED={seed}");
    let mut dice = Dice::new(seed);
    for round in 0..if is_long() { 200 } else { 6 } {
        let victim = Victim::new("workshop");
        let mut when = format!("round {round}, aborted");
        for _ in 1..limits::STARTS_WITHOUT_END_MAX {
            let point = ["before", "after"][dice.below(2)];
            let commit = (dice.below(20) + 1).to_string();
            when = format!("{when} {point} commit {commit},");
            assert_goes_on(&victim, &["--abort", point, &commit], &wanted, &when);
        }
        assert!(assert_goes_on(&victim, &[], &wanted, &when), "{when}");
        assert_eq!(victim.done("pay"), 1, "{when}");
    }
}

/// Starts it once more; whether it came to its end. What had completed before does nothing.
fn assert_goes_on(victim: &Victim, args: &[&str], wanted: &str, when: &str) -> bool {
    let (completed, before) = (victim.completed(), victim.marks().len());
    let result = victim.run(args);
    for (step, key) in &victim.marks()[before..] {
        assert!(!completed.contains(key), "{when}: `{step}` had completed and ran again");
    }
    assert_eq!(result.as_deref().unwrap_or(wanted), wanted, "{when}");
    result.is_some()
}
