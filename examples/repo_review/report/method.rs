//! The section that says where each number comes from.

use super::words::{counted, number};
use super::{item, line};
use crate::git::{READ_MAX, Subject};
use crate::judgement::Findings;

pub(super) fn section(out: &mut String, subject: &Subject, findings: &Findings) {
    line(out, "## How this was measured");
    let commit = subject.commit.as_deref().unwrap_or_default();
    let (risk, docs) = (&findings.risk.scan.coverage, &findings.docs.coverage);
    let of_commit = format!("Everything is of commit `{commit}`, read through `git`; no file of a work tree was read.");
    let of_risk = format!(
        "Risk: the content of {} (vendored code left out), by patterns; a place is `file:line`.",
        counted(risk.files, "file", "files")
    );
    let of_docs = format!(
        "Docs: the content of {}; doc comments are told line by line.",
        counted(
            docs.files,
            "Markdown, Rust or customary file",
            "Markdown, Rust and customary files"
        )
    );
    for sentence in [
        &of_commit,
        "History: `git log --numstat`, without following renames; authors are told apart by address, after the commit's \
         `.mailmap`; lock files and vendored code are no hot files; hot is commits × lines changed.",
        "Structure: `git ls-tree -r -l`, and `git diff-tree --numstat` against the empty tree; languages and tests are \
         told by name; a symbolic link counts as one line.",
        &of_risk,
        "Dependencies: the manifests' own formats; those only to build or test are counted among the direct ones.",
        &of_docs,
    ] {
        item(out, sentence);
    }
    for (count, what) in bounds(findings) {
        if count > 0 {
            item(out, &format!("At a bound: {} {what}.", number(count)));
        }
    }
}

/// What the bounds left out.
fn bounds(findings: &Findings) -> [(u64, String); 7] {
    let (risk, docs) = (&findings.risk.scan.coverage, &findings.docs.coverage);
    let cut = format!("read only to their first {} bytes", number(READ_MAX));
    let unread = "not read, too large or missing in this clone";
    [
        (risk.cut, format!("files {cut} by the risk agent")),
        (docs.cut, format!("files {cut} by the docs agent")),
        (risk.unread + docs.unread, format!("files {unread}")),
        (
            findings.history.dropped,
            "rare names dropped from the history's counts".to_owned(),
        ),
        (findings.dependencies.more, "manifests left out".to_owned()),
        (
            findings.dependencies.vendored,
            "manifests in vendored code not read".to_owned(),
        ),
        (findings.docs.more_links, "relative links not looked up".to_owned()),
    ]
}
