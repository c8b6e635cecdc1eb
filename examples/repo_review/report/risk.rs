//! The section of the risk agent.

use super::line;
use super::words::{Table, code, number};
use crate::risk::{LONG_FILE_LINES, LONG_LINE_BYTES, Risk, RustUse};

pub(super) fn section(out: &mut String, risk: &Risk) {
    line(out, "## Risk");
    let scan = &risk.scan;
    let mut table = Table::new(&["What", "#Count", "First places"]);
    table.row(&[
        "looks like a secret".into(),
        number(scan.secrets.count),
        places(scan.secrets.first.iter().map(|one| (&one.place.path, one.place.line))),
    ]);
    table.row(&[
        "unresolved merge conflict".into(),
        number(scan.conflicts.count),
        places(scan.conflicts.first.iter().map(|one| (&one.path, one.line))),
    ]);
    table.row(&[
        format!("source file over {} lines", number(LONG_FILE_LINES)),
        number(scan.long_files.count),
        places(scan.long_files.first.iter().map(|one| (&one.path, one.lines))),
    ]);
    table.row(&[
        format!("source file with a line over {LONG_LINE_BYTES} bytes"),
        number(scan.long_lines.count),
        places(
            scan.long_lines
                .first
                .iter()
                .map(|one| (&one.place.path, one.place.line)),
        ),
    ]);
    let binaries: Vec<_> = scan
        .binaries
        .first
        .iter()
        .take(3)
        .map(|one| format!("{} ({} bytes)", code(&one.path), number(one.bytes)))
        .collect();
    table.row(&["binary file".into(), number(scan.binaries.count), binaries.join(", ")]);
    for (marker, count) in &scan.markers {
        let marked = scan
            .marked
            .iter()
            .filter(|one| one.marker == *marker)
            .map(|one| (&one.place.path, one.place.line));
        table.row(&[format!("`{}`", marker.word()), number(*count), places(marked)]);
    }
    table.show(out);
    rust(out, risk);
}

fn rust(out: &mut String, risk: &Risk) {
    let (code_, tests) = (&risk.scan.rust, &risk.scan.rust_tests);
    if code_.lines + tests.lines == 0 {
        return;
    }
    let mut table = Table::new(&[
        "Rust",
        "#Lines with code",
        "#`unwrap`",
        "#`expect`",
        "#`panic!` and kin",
        "#`unsafe`",
    ]);
    let row = |name: &str, uses: &RustUse| {
        [
            name.to_owned(),
            number(uses.lines),
            number(uses.unwrap),
            number(uses.expect),
            number(uses.panic),
            number(uses.unsafe_code),
        ]
    };
    table.row(&row("outside tests", code_));
    table.row(&row("tests", tests));
    table.show(out);
    line(
        out,
        &format!(
            "Outside tests, {} calls in a thousand lines can panic.",
            number(risk.panicking_permille)
        ),
    );
    let mut table = Table::new(&["Densest file", "#Can panic", "#Lines with code", "#In a thousand lines"]);
    for one in &risk.dense {
        table.row(&[
            code(&one.file.path),
            number(one.file.uses.panicking()),
            number(one.file.uses.lines),
            number(one.permille),
        ]);
    }
    table.show(out);
}

fn places<'a>(places: impl Iterator<Item = (&'a String, u64)>) -> String {
    let shown: Vec<_> = places
        .take(3)
        .map(|(path, line)| code(&format!("{path}:{line}")))
        .collect();
    shown.join(", ")
}
