//! Reviews a Git repository.
#![allow(clippy::print_stdout, reason = "a program at a terminal")]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod agents;
mod bounded;
mod dependencies;
mod docs;
mod git;
mod history;
mod judgement;
mod language;
mod name;
mod report;
mod risk;
mod rust_source;
mod structure;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::process::ExitCode;

use git::{GitError, Reader, Repository, Subject};
use judgement::Findings;

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    match review(Path::new(&path)) {
        Ok(review) => {
            print!("{review}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("repo_review: {error}");
            ExitCode::from(if error.is_no_repository() { 2 } else { 1 })
        }
    }
}

/// Reviews the repository at `path`, one agent after the other.
fn review(path: &Path) -> Result<String, GitError> {
    let repository = Repository::open(path)?;
    let subject = repository.subject()?;
    let reader = repository.reader();
    let findings = findings(&reader, &subject)?;
    eprintln!(
        "{}",
        report::counted(reader.calls(), "git command was read", "git commands were read")
    );
    Ok(report::review(&subject, &findings, &judgement::weigh(&findings)))
}

fn findings(reader: &Reader, subject: &Subject) -> Result<Findings, GitError> {
    let quiet: git::Progress<'_> = &mut |_| Ok(());
    let walk = history::walk(reader, subject, quiet)?;
    let hot = history::present(reader, subject, walk.candidates.clone(), quiet)?;
    let ownership = history::measure(&walk);
    let listing = structure::list(reader, subject, quiet)?;
    let lines = structure::count_lines(reader, subject, quiet)?;
    let manifests = dependencies::find(reader, subject, quiet)?;
    let reading = docs::read(reader, subject, quiet)?;
    let broken = docs::check(reader, subject, &reading.links, quiet)?;
    Ok(Findings {
        history: history::summarise(&walk, ownership, hot),
        structure: structure::summarise(listing, &lines),
        risk: risk::rank(risk::scan(reader, subject, quiet)?),
        dependencies: dependencies::compare(&manifests, &dependencies::read(reader, &manifests, quiet)?),
        docs: docs::summarise(reading, broken),
    })
}
