use std::collections::BTreeMap;

use neuron::{
    Topic,
    store::{Select, verify},
};

use super::Victim;

/// How often each letter was stamped.
fn stamps(victim: &Victim) -> BTreeMap<String, usize> {
    let mut stamps = BTreeMap::new();
    let ledger = victim.ledger().unwrap();
    let select = Select::Topic(Topic::new("stamps").unwrap());
    for stamp in ledger.read(select).envelopes() {
        *stamps.entry(stamp.unwrap().decode().unwrap()).or_default() += 1;
    }
    verify::verify(&**ledger.store()).unwrap();
    stamps
}

fn once(letters: &[&str]) -> BTreeMap<String, usize> {
    letters.iter().map(|letter| ((*letter).to_owned(), 1)).collect()
}

#[test]
fn aborted_at_any_commit_and_served_again_what_a_handler_gives_stands_once_for_each_message() {
    for point in ["before", "after"] {
        for commit in 1.. {
            let victim = Victim::new("post");
            let when = format!("aborted {point} commit {commit}");
            let undisturbed = victim.run(&["--abort", point, &commit.to_string()]);
            let ended = undisturbed.clone().or_else(|| victim.run(&[]));
            assert_eq!(ended.as_deref(), Some("result: 1"), "{when}: one is parked");
            assert_eq!(stamps(&victim), once(&["one", "two", "late", "three"]), "{when}");
            if undisturbed.is_some() {
                assert!(commit > 5, "{commit} commits");
                break;
            }
        }
    }
}

#[test]
fn a_message_that_kills_the_process_of_its_handler_is_parked_and_the_others_are_handled() {
    let mut victim = Victim::new("post");
    victim.set("FATAL", "two");
    let mut deaths = 0;
    let ended = loop {
        match victim.run(&[]) {
            Some(ended) => break ended,
            None => deaths += 1,
        }
        assert!(deaths <= 4, "it goes on killing");
    };
    assert_eq!(
        (ended.as_str(), deaths),
        ("result: 2", 4),
        "one death that nobody recorded, then three"
    );
    assert_eq!(stamps(&victim), once(&["one", "late", "three"]));
}

#[test]
fn of_two_processes_one_runs_a_handler_and_the_other_takes_over_when_it_dies() {
    let mut victim = Victim::new("post");
    victim.set("HELD", "1");
    let mut first = victim.start(&[]);
    first.wait_for("stamps held");
    let mut second = victim.start(&[]);
    second.wait_for("serves");
    first.kill();
    second.wait_for("stamps held");
    second.say("go on");
    second.wait_for("result: 0");
    assert!(second.wait().0.success());
    assert_eq!(stamps(&victim), once(&["held"]));
}
