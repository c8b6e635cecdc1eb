use neuron_workspace::{Dice, Process, SEED, fresh_seed, is_long, scratch, seed_given};

use super::{Heard, check, child};

/// Waits until a child has told so many more acknowledgements.
fn goes_on(child: &mut Process, times: usize) {
    for _ in 0..times {
        child.wait_for("stands");
    }
}

#[test]
fn writers_killed_at_any_moment_leave_every_acknowledged_batch_whole() {
    let seed = seed_given().unwrap_or_else(fresh_seed);
    eprintln!("to run it again: {SEED}={seed}");
    let mut dice = Dice::new(seed);
    let folder = scratch();
    let path = folder.path().join("storm.db");
    let mut lives = 0..;
    let mut started = || child(&path, lives.next().unwrap());
    let mut children = [started(), started()];
    let mut said = Vec::new();
    let rounds = if is_long() { 400 } else { 8 };
    for round in 0..rounds {
        for child in &mut children {
            goes_on(child, 1);
        }
        goes_on(&mut children[dice.below(2)], dice.below(60));
        // One of them, the other, or both at once, so that nobody is left who knows where the log ends.
        let victims = [vec![0], vec![1], vec![0, 1]][dice.below(3)].clone();
        for victim in &victims {
            children[*victim].kill();
            said.extend_from_slice(children[*victim].said());
        }
        if victims.len() == 2 && (round % 4 == 0 || !is_long()) {
            check(&path, &Heard::of(&said));
        }
        for victim in &victims {
            children[*victim] = started();
        }
    }
    for mut child in children {
        goes_on(&mut child, 1);
        child.kill();
        said.extend_from_slice(child.said());
    }
    let heard = Heard::of(&said);
    assert!(
        heard.standing() > rounds,
        "only {} batches were acknowledged",
        heard.standing()
    );
    check(&path, &heard);
}
