//! The section of the history agent.

use super::line;
use super::words::{Table, code, counted, number, text};
use crate::git::Subject;
use crate::history::History;

pub(super) fn section(out: &mut String, subject: &Subject, history: &History) {
    line(out, "## History");
    let merges = counted(history.merges, "merge", "merges");
    let changes = counted(history.changes, "file change", "file changes");
    let (added, removed) = (number(history.added), number(history.removed));
    line(
        out,
        &format!(
            "{}, {merges} among them; {changes}, {added} lines added, {removed} removed.",
            counted(history.commits, "commit", "commits")
        ),
    );
    let owners = &history.ownership;
    if owners.bus_factor > 0 {
        let people = counted(owners.bus_factor, "person", "people");
        let bots = if owners.bot_changes > 0 {
            format!(
                " {} were made by programs.",
                counted(owners.bot_changes, "change", "changes")
            )
        } else {
            String::new()
        };
        line(
            out,
            &format!(
                "**Bus factor {}**: {people} made half of the changes.{bots}",
                number(owners.bus_factor)
            ),
        );
    }
    let mut table = Table::new(&["Author", "#Commits", "#File changes"]);
    for owner in &owners.owners {
        table.row(&[text(&owner.name), number(owner.commits), number(owner.changes)]);
    }
    table.show(out);
    let mut table = Table::new(&[
        "Most changed directory",
        "#File changes",
        "#Authors",
        "#Bus factor",
        "Most by",
    ]);
    for one in &owners.directories {
        table.row(&[
            code(&one.path),
            number(one.changes),
            number(one.authors),
            number(one.bus_factor),
            text(&one.first),
        ]);
    }
    table.show(out);
    let mut table = Table::new(&["Hot file", "#Commits", "#Lines added", "#Lines removed"]);
    for file in &history.hot {
        table.row(&[
            code(&file.path),
            number(file.commits),
            number(file.added),
            number(file.removed),
        ]);
    }
    table.show(out);
    if subject.shallow {
        line(
            out,
            "In a shallow clone the oldest commit here seems to add every file at once.",
        );
    }
}
