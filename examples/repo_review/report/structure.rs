//! The section of the structure agent.

use super::line;
use super::words::{Table, code, counted, number, per_cent, text};
use crate::structure::Structure;

pub(super) fn section(out: &mut String, structure: &Structure) {
    line(out, "## Structure");
    let listing = &structure.listing;
    let (files, directories) = (
        counted(listing.files, "file", "files"),
        counted(listing.directories, "directory", "directories"),
    );
    let mut sentence = format!("{files} in {directories}, {} bytes", number(listing.bytes));
    for (count, one, many) in [
        (structure.binary, "binary file", "binary files"),
        (
            listing.symlinks,
            "symbolic link (not followed)",
            "symbolic links (not followed)",
        ),
        (
            listing.submodules,
            "submodule (not entered)",
            "submodules (not entered)",
        ),
    ] {
        if count > 0 {
            sentence.push_str("; ");
            sentence.push_str(&counted(count, one, many));
        }
    }
    line(out, &format!("{sentence}."));
    let (tests, share) = (number(structure.tests), per_cent(structure.tests_permille));
    line(
        out,
        &format!(
            "{} of code, {tests} of them in test files ({share}).",
            counted(structure.code, "line", "lines")
        ),
    );
    let mut table = Table::new(&["Language", "#Files", "#Lines", "#Bytes"]);
    for language in structure.languages.iter().take(12) {
        table.row(&[
            text(&language.name),
            number(language.files),
            number(language.lines),
            number(language.bytes),
        ]);
    }
    table.show(out);
    let mut table = Table::new(&["Largest file", "#Bytes"]);
    for file in &listing.largest {
        table.row(&[code(&file.path), number(file.bytes)]);
    }
    table.show(out);
    let mut table = Table::new(&["Deepest directory", "#Depth", "#Files"]);
    for one in &listing.deepest {
        table.row(&[code(&one.path), number(one.depth), number(one.files)]);
    }
    table.show(out);
    let mut table = Table::new(&["Submodule", "Commit"]);
    for one in &listing.first_submodules {
        table.row(&[code(&one.path), code(&one.commit)]);
    }
    table.show(out);
}
