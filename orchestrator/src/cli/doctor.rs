//! `neuron doctor`: what is wrong with a store, and what can be done.

use std::path::Path;

use neuron::doctor::{self, Diagnosis, Severity};
use serde_json::json;

use super::{
    console::{Console, Paint},
    outcome::{Failure, Outcome},
    text::count,
};

/// Arguments of `doctor`.
#[derive(Clone, Debug, clap::Args)]
pub struct Doctor {
    /// Put right what is no record: guards and indexes are made anew, a huge write-ahead log is moved in, slots of dead
    /// processes and a damaged side file are removed
    #[arg(long)]
    repair: bool,
}

impl Doctor {
    /// Ends well for a sound store, with 1 for one that can be put right, with 2 for a damaged one.
    pub(super) fn run(&self, store: &Path, console: &mut Console<'_>) -> Outcome {
        let mut found = doctor::examine(store)?;
        let mut done = Vec::new();
        if self.repair && found.findings.iter().any(|finding| finding.by_repair) {
            done = doctor::mend(store)?;
            found = doctor::examine(store)?;
        }
        let severity = found.severity().unwrap_or(Severity::Note);
        let word = word(severity);
        if console.is_json() {
            console.json(&json!({ "state": word, "done": done, "found": found }))?;
        } else {
            tell(&found, &done, self.repair, console)?;
        }
        match severity {
            Severity::Note => Ok(()),
            Severity::Mendable => Err(Failure::Answered),
            Severity::Damaged => Err(Failure::Broken),
        }
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "sound",
        Severity::Mendable => "mendable",
        Severity::Damaged => "damaged",
    }
}

fn tell(found: &Diagnosis, done: &[String], repaired: bool, console: &mut Console<'_>) -> Outcome {
    for done in done {
        let line = console.paint(Paint::Good, "done: ") + done;
        console.line(&line)?;
    }
    for finding in &found.findings {
        let (word, paint) = match finding.severity {
            Severity::Note => ("note", Paint::Faint),
            Severity::Mendable => ("mendable", Paint::Open),
            Severity::Damaged => ("damaged", Paint::Bad),
        };
        let head = console.paint(paint, word);
        console.line(&head)?;
        console.prose(&finding.what)?;
        console.prose(&format!("→ {}", finding.remedy))?;
    }
    if let Some(verified) = &found.verified {
        let (envelopes, topics) = (count(verified.envelopes, "envelope"), count(verified.topics, "topic"));
        let artifacts = count(verified.artifacts, "artifact");
        let records = console.paint(Paint::Good, "what was recorded is intact: ");
        console.line(&format!("{records}{envelopes}, {topics}, {artifacts}"))?;
        console.line(&format!("head {}", verified.head))?;
    }
    let left = found.findings.iter().filter(|finding| finding.by_repair).count();
    if left > 0 && !repaired {
        console.say(&format!(
            "{} can be put right by `neuron doctor --repair`, which changes no record",
            count(left as u64, "finding")
        ));
    }
    Ok(())
}
