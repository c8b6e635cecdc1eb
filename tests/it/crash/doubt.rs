use neuron::{limits, vocabulary::control::StepRuling};

use super::{Victim, result};

#[test]
fn a_payment_that_the_process_died_in_is_made_again_only_if_a_person_says_so() {
    let rulings = [
        (StepRuling::Done, Some(5), r#""paid 5""#, 1),
        (StepRuling::Redo, None, r#""paid 5""#, 2),
        (StepRuling::Fail, None, r#""not paid: the bank says no""#, 1),
    ];
    for (ruling, output, told, paid) in rulings {
        let mut victim = Victim::new("clerk");
        victim.dies_in("transfer");
        let mut process = victim.start(&[]);
        process.wait_for("step.doubted transfer");
        assert_eq!(victim.done("transfer-5"), 1, "in doubt, it is not made again");
        victim.rule(ruling, output);
        let result = result(process);
        assert!(result.contains(told), "{ruling:?}: {result}");
        assert_eq!(victim.done("transfer-5"), paid, "{ruling:?}");
        assert_eq!(victim.run(&[]).as_deref(), Some(&*result), "the ruling is an answer");
        assert_eq!(victim.done("transfer-5"), paid, "{ruling:?}");
    }
}

#[test]
fn a_ruling_that_was_given_while_nobody_ran_is_heard_at_the_next_start() {
    let mut victim = Victim::new("clerk");
    victim.dies_in("transfer");
    let mut process = victim.start(&[]);
    process.wait_for("step.doubted transfer");
    process.kill();
    victim.rule(StepRuling::Done, Some(7));
    let told = victim.run(&[]).unwrap();
    assert!(told.contains(r#""paid 7""#), "{told}");
    assert_eq!(
        (victim.done("transfer-5"), victim.payloads("step.doubted").len()),
        (1, 1)
    );
}

#[test]
fn a_step_that_stops_the_process_in_its_first_instruction_is_in_doubt_after_so_many_starts() {
    let mut victim = Victim::new("clerk");
    victim.set("FATAL", "last");
    let most = limits::STARTS_WITHOUT_END_MAX + 1; // the first start is not on the log: it rode with no commit
    let mut deaths = 0;
    let mut process = loop {
        let mut process = victim.start(&[]);
        if process.line("step.doubted last").is_ok() {
            break process;
        }
        deaths += 1;
        assert!(deaths <= most, "it is in doubt after {most} starts");
    };
    assert!(
        deaths >= limits::STARTS_WITHOUT_END_MAX,
        "only {deaths} starts were tried"
    );
    let starts = victim.payloads("step.started").into_iter();
    let starts = starts.filter(|start| start["name"] == "last").count();
    assert_eq!(starts, usize::try_from(limits::STARTS_WITHOUT_END_MAX).unwrap());
    // Neither this process nor the next runs it again; a repaired program does, once a person says so.
    process.kill();
    victim.unset("FATAL");
    let (token, key) = victim.waiting();
    assert_eq!((token.as_str().starts_with("clerk-"), key.contains('#')), (true, true));
    victim.rule(StepRuling::Redo, None);
    let told = victim.run(&[]).unwrap();
    assert!(told.ends_with(r#""last"]"#), "{told}");
    let once = ["note-a", "note-b", "pack", "enter", "transfer-5", "last"];
    assert!(once.iter().all(|step| victim.done(step) == 1), "{:?}", victim.marks());
}
