//! The children that other tests stop and kill.

use std::{os::unix::process::ExitStatusExt as _, process::Command};

use neuron_workspace::Process;

/// Says that it is ready, then says every line that it is told.
fn echo() -> Process {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "echo ready; while read -r line; do echo \"heard $line\"; done; echo oh >&2; echo bye",
    ]);
    Process::start(command)
}

#[test]
fn a_child_is_heard_line_by_line_until_it_ends() {
    let mut child = echo();
    child.wait_for("ready");
    child.say("one");
    child.wait_for("heard one");
    child.say("two");
    let (status, mut said) = child.wait();
    assert!(status.success());
    let error = said.iter().position(|line| line == "oh").map(|at| said.remove(at));
    assert!(error.is_some(), "standard error is heard as well");
    assert_eq!(said, ["ready", "heard one", "heard two", "bye"]);
}

#[test]
fn a_paused_child_answers_only_after_it_goes_on() {
    let mut child = echo();
    child.wait_for("ready");
    child.pause();
    child.say("one");
    assert_eq!(child.said(), ["ready"]);
    child.resume();
    child.wait_for("heard one");
}

#[test]
fn a_killed_child_ends_by_that_signal_and_says_nothing_more() {
    let mut child = echo();
    child.wait_for("ready");
    child.pause();
    child.say("one");
    assert_eq!(child.kill().signal(), Some(9));
    let fault = child.line("heard").unwrap_err();
    assert!(
        fault.contains("ended without saying") && fault.contains("ready"),
        "{fault}"
    );
}

#[test]
fn what_a_child_has_started_dies_with_it() {
    let mut command = Command::new("sh");
    command.args(["-c", "sh -c 'echo grandchild $$; read -r never' & wait"]);
    let mut child = Process::start(command);
    let line = child.wait_for("grandchild");
    child.kill();
    let grandchild = line.rsplit(' ').next().unwrap();
    // Its output closes when it dies, so the end of all lines is the proof.
    assert!(
        child.line("never").unwrap_err().contains("ended without saying"),
        "{grandchild}"
    );
}
