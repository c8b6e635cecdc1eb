//! What is said at the end: what ran, the board with its rulings, the costs, and where to look further.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use orchestrator::cli;

use crate::share::Share;
use crate::{Failure, Review, export};

/// Writes the review beside its store and says how it came about.
pub(crate) fn close(store: &Path, review: &Review) -> Result<(), Failure> {
    let place = export::place(store);
    let (neuron, run) = (&review.neuron, &review.choice.id);
    let document = neuron.ledger().blob(&review.document.0).map_err(Failure::beginning)?;
    export::write(&place, document)
        .map_err(|error| Failure::beginning(format!("{} cannot be written: {error}", place.display())))?;
    let share = Share::of(neuron, run).map_err(Failure::beginning)?;
    say(&format!("\n{}", steps(&share)));
    for command in ["board", "cost"] {
        say("");
        let asked = [
            "neuron".as_ref(),
            "--store".as_ref(),
            store.as_os_str(),
            command.as_ref(),
            run.as_str().as_ref(),
        ];
        cli::run_here(asked);
    }
    let neuron = neuron_on(store);
    say(&format!(
        "\nthe review is in {}, the log in {}. To look further:\n\
         \n  {neuron} log --type clearance.go\n  {neuron} board {run}\n  {neuron} verify",
        shown(&place),
        shown(store)
    ));
    Ok(())
}

/// How a person in a clone asks the command line about a store.
pub(crate) fn neuron_on(store: &Path) -> String {
    format!("cargo run --bin neuron -- --store {}", shown(store))
}

/// A path as a shell reads it.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn say(lines: &str) {
    // A reader that has gone wants no more.
    let _ = writeln!(std::io::stdout(), "{lines}");
}

/// Which steps were answered from the log, and which ran.
fn steps(share: &Share) -> String {
    let number = |steps: &[(String, Vec<String>)]| steps.iter().map(|(_, names)| names.len()).sum();
    let (answered, ran): (usize, usize) = (number(&share.answered), number(&share.ran));
    if answered == 0 {
        return format!("{} ran in this process.", counted(ran));
    }
    let verb = if answered == 1 { "was" } else { "were" };
    let mut text = format!(
        "{} {verb} answered from the log and did not run again:",
        counted(answered)
    );
    list(&mut text, &share.answered);
    if ran == 0 {
        text.push_str("\nno step ran in this process.");
    } else {
        let _ = write!(text, "\n{} ran in this process:", counted(ran));
        list(&mut text, &share.ran);
    }
    text
}

fn list(text: &mut String, steps: &[(String, Vec<String>)]) {
    for (agent, names) in steps.iter().filter(|(_, names)| !names.is_empty()) {
        let _ = write!(text, "\n{agent:>12}  {}", names.join(", "));
    }
}

fn counted(steps: usize) -> String {
    format!("{steps} step{}", if steps == 1 { "" } else { "s" })
}
