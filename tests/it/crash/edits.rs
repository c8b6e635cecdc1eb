use std::{fs, path::Path};

use neuron::vocabulary::control::StepRuling;

use super::{Victim, result};

/// A program that died in its last step, was edited, and runs to its end.
struct Edited {
    victim: Victim,
    told: String,
    /// What was done after the edit.
    done: Vec<String>,
}

fn edited(edit: &str) -> Edited {
    let mut victim = Victim::new("clerk");
    victim.set("PASSWORD", "hunter2").dies_in("last");
    let before = victim.marks().len();
    let told = victim.set("EDIT", edit).run(&[]).unwrap();
    let done = victim.marks().into_iter().skip(before).map(|(step, _)| step).collect();
    Edited { victim, told, done }
}

/// How many findings of a replay stand on the log: diverged, reordered, unrecorded.
fn findings(victim: &Victim) -> [usize; 3] {
    ["replay.diverged", "replay.reordered", "replay.unrecorded"].map(|kind| victim.payloads(kind).len())
}

const REST: &str = r#""lamp false", "ada with 7 letters", "paid 5", "last"]"#;

#[test]
fn nothing_but_the_step_in_flight_runs_again_in_a_program_that_was_not_edited() {
    let Edited { victim, told, done } = edited("");
    assert_eq!(told, format!(r#"result: ["a", "b", {REST}"#));
    assert_eq!(done, ["last"]);
    assert_eq!(findings(&victim), [0, 0, 0]);
}

#[test]
fn an_inserted_step_runs_and_the_recorded_ones_answer() {
    let Edited { victim, told, done } = edited("insert");
    assert_eq!(told, format!(r#"result: ["a", "new", "b", {REST}"#));
    assert_eq!(done, ["note-new", "last"]);
    let reordered = victim.payloads("replay.reordered");
    assert_eq!(
        findings(&victim),
        [0, 1, 0],
        "it ran before answers that the log had already"
    );
    assert_eq!(
        (&reordered[0]["name"], &reordered[0]["usedName"]),
        (&"note".into(), &"note".into())
    );
}

#[test]
fn a_removed_step_leaves_an_answer_that_nobody_asked_for_and_that_is_told() {
    let Edited { victim, told, done } = edited("remove");
    assert_eq!(told, format!(r#"result: ["b", {REST}"#));
    assert_eq!(done, ["last"]);
    assert_eq!(findings(&victim), [1, 0, 0]);
    assert_eq!(victim.payloads("replay.diverged")[0]["name"], "note");
}

#[test]
fn steps_in_another_order_keep_their_answers() {
    let Edited { victim, told, done } = edited("reorder");
    assert_eq!(told, format!(r#"result: ["b", "a", {REST}"#));
    assert_eq!(done, ["last"]);
    assert_eq!(findings(&victim), [0, 0, 0]);
}

#[test]
fn an_argument_with_a_new_field_that_has_a_default_is_the_same_call() {
    let Edited { victim, told, done } = edited("field");
    assert_eq!(told, format!(r#"result: ["a", "b", {REST}"#));
    assert_eq!(done, ["last"], "neither the step nor what lies below it runs again");
    assert_eq!(findings(&victim), [0, 0, 0]);
}

/// A payment that was edited: held, and nothing paid.
fn held() -> (Victim, neuron_workspace::Process) {
    let mut victim = Victim::new("clerk");
    victim.set("PASSWORD", "hunter2").dies_in("last");
    let mut process = victim.set("EDIT", "once").start(&[]);
    process.wait_for("replay.once_changed transfer");
    let finding = &victim.payloads("replay.once_changed")[0];
    let (_, key) = victim.waiting();
    assert_eq!(finding["key"], *key, "`neuron waiting` shows it");
    let paid = victim
        .payloads("step.completed")
        .into_iter()
        .find(|end| end["name"] == "transfer")
        .unwrap();
    assert_eq!(finding["recorded"], paid["key"]);
    assert_eq!((victim.done("transfer-5"), victim.done("transfer-6")), (1, 0));
    (victim, process)
}

#[test]
fn a_changed_payment_is_held_until_the_code_is_put_back() {
    let (mut victim, mut process) = held();
    process.kill();
    let told = victim.unset("EDIT").run(&[]).unwrap();
    assert_eq!(told, format!(r#"result: ["a", "b", {REST}"#));
    assert_eq!((victim.done("transfer-5"), victim.done("transfer-6")), (1, 0));
}

#[test]
fn a_changed_payment_is_held_until_a_person_rules_on_it() {
    for (ruling, output, told, paid) in [
        (StepRuling::Redo, None, "paid 6", 1),
        (StepRuling::Done, Some(5), "paid 5", 0),
        (StepRuling::Fail, None, "not paid: the bank says no", 0),
    ] {
        let (victim, process) = held();
        victim.rule(ruling, output);
        let result = result(process);
        assert!(result.contains(told), "{ruling:?}: {result}");
        assert_eq!(
            (victim.done("transfer-5"), victim.done("transfer-6")),
            (1, paid),
            "{ruling:?}"
        );
    }
}

/// Every file below a folder that holds these bytes.
fn holding(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if fs::read(&path)
            .unwrap()
            .windows(bytes.len())
            .any(|window| window == bytes)
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_rotated_secret_is_the_same_call_and_no_secret_is_in_any_file_of_the_store() {
    let secrets = ["correct-horse", "battery-staple-9"];
    let mut victim = Victim::new("clerk");
    victim.set("PASSWORD", secrets[0]).dies_in("last");
    let told = victim.set("PASSWORD", secrets[1]).run(&[]).unwrap();
    assert!(
        told.contains(r#""ada with 13 letters""#),
        "the recorded answer is used: {told}"
    );
    assert_eq!(victim.done("enter"), 1);
    for secret in secrets {
        assert_eq!(holding(victim.folder(), secret.as_bytes()), [""; 0], "{secret}");
    }
    assert!(
        !holding(victim.folder(), b"ada with 13 letters").is_empty(),
        "the search finds what is there"
    );
}
