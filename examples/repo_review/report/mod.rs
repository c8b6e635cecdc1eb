//! The review as Markdown. Same commit, same bytes: there is no clock in it and no path of the machine.

mod dependencies;
mod docs;
mod history;
mod method;
mod risk;
mod structure;
mod words;

use crate::git::Subject;
use crate::judgement::{Findings, Judgement, Urgency};

pub(crate) use words::{code, counted, date, number, per_cent, text};

/// The text of `review.md`.
pub(crate) fn review(subject: &Subject, findings: &Findings, judgement: &Judgement) -> String {
    let mut out = String::new();
    title(&mut out, subject);
    summary(&mut out, subject, findings);
    if subject.commit.is_some() {
        first(&mut out, judgement);
        history::section(&mut out, subject, &findings.history);
        structure::section(&mut out, &findings.structure);
        risk::section(&mut out, &findings.risk);
        dependencies::section(&mut out, &findings.dependencies);
        docs::section(&mut out, &findings.docs);
        method::section(&mut out, subject, findings);
    }
    out
}

fn title(out: &mut String, subject: &Subject) {
    match &subject.commit {
        Some(commit) => line(out, &format!("# Review of commit {}", &commit[..commit.len().min(12)])),
        None => line(out, "# Review of a repository without commits"),
    }
}

fn summary(out: &mut String, subject: &Subject, findings: &Findings) {
    if subject.commit.is_none() {
        return line(
            out,
            "`HEAD` names no commit yet. Commit something, and there will be something to review.",
        );
    }
    let (history, structure) = (&findings.history, &findings.structure);
    let commits = counted(history.commits, "commit", "commits");
    let authors = counted(history.ownership.authors, "author", "authors");
    let period = match (history.first, history.last) {
        (Some(first), Some(last)) if date(first) == date(last) => format!(" on {}", date(first)),
        (Some(first), Some(last)) => format!(" from {} to {}", date(first), date(last)),
        _ => String::new(),
    };
    let files = counted(structure.listing.files, "file", "files");
    let lines = counted(structure.lines, "line", "lines");
    let mostly = structure.languages.iter().find(|language| language.lines > 0);
    let mostly = mostly.map_or_else(String::new, |language| format!(", most of it {}", text(&language.name)));
    line(
        out,
        &format!("{commits} by {authors}{period}; {files} with {lines}{mostly}."),
    );
    if subject.shallow {
        line(
            out,
            "**This clone is shallow**: its history is cut off, and all numbers about history are of the part that is here.",
        );
    }
}

fn first(out: &mut String, judgement: &Judgement) {
    line(out, "## What to look at first");
    if judgement.concerns.is_empty() {
        return line(
            out,
            "Nothing stands out. That is a statement about what was measured, not a promise.",
        );
    }
    let groups = [
        (Urgency::Now, "Before anything else"),
        (Urgency::Soon, "Before the next larger change"),
        (Urgency::Sometime, "When there is time"),
    ];
    for (urgency, heading) in groups {
        let concerns: Vec<_> = judgement
            .concerns
            .iter()
            .filter(|concern| concern.urgency == urgency)
            .collect();
        if concerns.is_empty() {
            continue;
        }
        line(out, &format!("**{heading}**"));
        for concern in concerns {
            let sections: Vec<_> = concern
                .sections
                .iter()
                .map(|one| format!("[{one}](#{})", one.to_lowercase()))
                .collect();
            item(out, &format!("{} ({})", concern.sentence, sections.join(", ")));
        }
        out.push('\n');
    }
}

/// One item of a list.
fn item(out: &mut String, sentence: &str) {
    out.push_str("- ");
    out.push_str(sentence);
    out.push('\n');
}

/// A paragraph.
fn line(out: &mut String, paragraph: &str) {
    out.push_str(paragraph);
    out.push_str("\n\n");
}
