use neuron::store::Point;
use neuron_workspace::is_long;

use super::{World, child::Setting};

/// What a run that nobody disturbs gives and does.
fn undisturbed() -> (World, u64) {
    let world = World::new();
    let (_, said) = world.start(&house()).wait();
    assert!(said.iter().any(|line| line == "output 106"), "{said:?}");
    let commits = world.reading().store().last().unwrap().0;
    (world, commits)
}

fn house() -> Setting {
    Setting {
        name: "house",
        ..Setting::default()
    }
}

/// The run, aborted at one commit and started again: as if nothing had been, but for the steps in flight.
fn aborted(point: Point, commit: u64, whole: &World) -> bool {
    let world = World::new();
    let crash = Setting {
        crash: Some((point, commit)),
        ..house()
    };
    let (first, _) = world.start(&crash).wait();
    if first.success() {
        return false;
    }
    let (status, said) = world.start(&house()).wait();
    let case = format!("aborted {point:?} {commit}");
    assert!(status.success(), "{case}: {said:?}");
    assert!(said.iter().any(|line| line == "output 106"), "{case}: {said:?}");
    let (answers, wanted) = (world.answers(), whole.answers());
    assert!(answers.values().all(|count| *count == 1), "{case}: {answers:?}");
    for call in wanted.keys() {
        assert!(answers.contains_key(call), "{case}: {call} has no answer");
    }
    // A payment in doubt was looked into by a step of its own; nothing else is new.
    assert!(answers.len() <= wanted.len() + 1, "{case}");
    assert_eq!(world.deeds().get("pay"), Some(&1), "{case}");
    assert_eq!(world.deeds().len(), whole.deeds().len(), "{case}");
    assert_eq!(world.count("replay."), 0, "{case}");
    for kind in [
        "house.called",
        "package.assigned",
        "plan.declared",
        "clearance.go",
        "orchestration.c",
    ] {
        assert_eq!(world.count(kind), whole.count(kind), "{case}: {kind}");
    }
    true
}

#[test]
fn aborted_at_any_commit_and_started_again_a_run_ends_as_if_it_had_not_been() {
    let (whole, envelopes) = undisturbed();
    assert!(whole.answers().values().all(|count| *count == 1));
    let stride = if is_long() { 1 } else { 3 };
    for point in [Point::AfterCommit, Point::BeforeCommit] {
        let mut aborts = 0;
        for commit in (1..=envelopes).step_by(stride) {
            if !aborted(point, commit, &whole) {
                break;
            }
            aborts += 1;
        }
        assert!(aborts > 5, "the run has more commits than {aborts}");
    }
}

#[test]
fn aborted_again_and_again_a_run_ends_all_the_same() {
    let (whole, _) = undisturbed();
    let world = World::new();
    // Far enough apart that each process gets on; a step cut off three times in a row would be in doubt.
    for commit in [15, 12, 14, 11] {
        let crash = Setting {
            crash: Some((Point::AfterCommit, commit)),
            ..house()
        };
        drop(world.start(&crash).wait());
    }
    let (_, said) = world.start(&house()).wait();
    assert!(said.iter().any(|line| line == "output 106"), "{said:?}");
    assert!(world.answers().values().all(|count| *count == 1));
    assert_eq!(world.deeds().get("pay"), whole.deeds().get("pay"));
}
