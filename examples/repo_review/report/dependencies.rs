//! The section of the dependencies agent.

use super::line;
use super::words::{Table, code, counted, number, text};
use crate::dependencies::{Dependencies, ManifestRow};

pub(super) fn section(out: &mut String, dependencies: &Dependencies) {
    line(out, "## Dependencies");
    if dependencies.manifests == 0 {
        return line(out, "No manifest of a known format was found.");
    }
    let manifests = counted(dependencies.manifests, "manifest", "manifests");
    line(
        out,
        &format!(
            "{manifests}, {}.",
            counted(dependencies.direct, "direct dependency", "direct dependencies")
        ),
    );
    let mut table = Table::new(&[
        "Manifest",
        "#Direct",
        "#Only to build or test",
        "Lock file",
        "Any version will do",
        "Note",
    ]);
    for row in &dependencies.shown {
        table.row(&manifest(row));
    }
    table.show(out);
    let mut table = Table::new(&["Required differently", "Requirements"]);
    for one in &dependencies.first_at_odds {
        table.row(&[code(&one.name), names(&one.requirements)]);
    }
    table.show(out);
}

fn manifest(row: &ManifestRow) -> [String; 6] {
    let lock = match (&row.lock, row.lockable) {
        (Some(lock), _) => code(lock),
        (None, true) => "none".to_owned(),
        (None, false) => "has no such thing".to_owned(),
    };
    let note = match &row.malformed {
        Some(reason) => format!("malformed: {}", text(reason)),
        None if row.twice.is_empty() => String::new(),
        None => format!("declared twice: {}", names(&row.twice)),
    };
    [
        code(&row.path),
        number(row.direct),
        number(row.development),
        lock,
        names(&row.unpinned),
        note,
    ]
}

fn names(names: &[String]) -> String {
    names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
}
