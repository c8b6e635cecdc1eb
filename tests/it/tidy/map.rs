//! The code map of `ARCHITECTURE.md`: one table per crate, its rows in the order in which files may build on each other.
//!
//! A table stands under a heading that holds nothing but the crate's name, `### \`neuron\``, and has the columns file
//! (below `src`), layer (a letter and a number) and what it is. Rows are sorted by layer; a file may import the rows
//! above its own.

use std::fmt::Write as _;

/// Where the map stands, seen from the root.
pub(crate) const FILE: &str = "neuron/docs/ARCHITECTURE.md";

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) crate_name: String,
    pub(crate) file: String,
    pub(crate) layer: String,
    pub(crate) line: usize,
}

/// Reads every row of the tables that stand under the heading of one of `crates`; what breaks the form is a finding.
pub(crate) fn read(text: &str, crates: &[&str], findings: &mut Vec<String>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut under: Option<&str> = None;
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(heading) = text.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            under = crates.iter().copied().find(|name| heading == format!("`{name}`"));
        }
        let (Some(crate_name), true) = (under, text.starts_with('|')) else {
            continue;
        };
        let cells: Vec<&str> = text.trim_matches('|').splitn(3, '|').map(str::trim).collect();
        let [file, layer, what] = cells[..] else {
            findings.push(format!(
                "{FILE}:{line}: a row has the columns file | layer | what it is"
            ));
            continue;
        };
        if file == "file" || file.starts_with('-') {
            continue;
        }
        let row = Row {
            crate_name: crate_name.into(),
            file: file.trim_matches('`').into(),
            layer: layer.into(),
            line,
        };
        check(&row, what, &rows, findings);
        rows.push(row);
    }
    rows
}

fn check(row: &Row, what: &str, above: &[Row], findings: &mut Vec<String>) {
    let mut report = |fault: String| findings.push(format!("{FILE}:{}: `{}` {fault}", row.line, row.file));
    let number = row
        .layer
        .strip_prefix(|c: char| c.is_ascii_uppercase())
        .unwrap_or_default();
    if number.parse::<u8>().is_err() {
        report(format!("has the layer `{}`, expected a letter and a number", row.layer));
    }
    if what.is_empty() {
        report("is not described".into());
    }
    let mut same = above.iter().filter(|other| other.crate_name == row.crate_name);
    if same.clone().any(|other| other.file == row.file) {
        report("is mapped twice".into());
    }
    if let Some(other) = same.find(|other| other.layer > row.layer) {
        report(format!(
            "of layer {} stands below `{}` of layer {}",
            row.layer, other.file, other.layer
        ));
    }
}

/// A table of files that have no row yet, for somebody to fill in.
pub(crate) fn draft(crate_name: &str, files: &[&str]) -> String {
    let mut table = format!("### `{crate_name}`\n\n| file | layer | what it is |\n|---|---|---|\n");
    for file in files {
        let _ = writeln!(table, "| `{file}` |  |  |");
    }
    table
}
