//! The section of the docs agent.

use super::line;
use super::words::{Table, code, counted, number, per_cent};
use crate::docs::{Docs, Purpose};

pub(super) fn section(out: &mut String, docs: &Docs) {
    line(out, "## Docs");
    let mut table = Table::new(&["What a newcomer looks for", "Found", "#Bytes"]);
    for purpose in Purpose::ALL {
        let mut there = docs
            .customs
            .iter()
            .filter(|custom| custom.purpose == purpose)
            .peekable();
        if there.peek().is_none() {
            table.row(&[purpose.name().into(), "none".into(), String::new()]);
        }
        for custom in there {
            table.row(&[purpose.name().into(), code(&custom.path), number(custom.bytes)]);
        }
    }
    table.show(out);
    let links = counted(docs.links, "relative link", "relative links");
    line(
        out,
        &format!(
            "{links} in {}; {} nowhere.",
            counted(docs.markdown, "Markdown file", "Markdown files"),
            counted(docs.broken.count, "leads", "lead")
        ),
    );
    let mut table = Table::new(&["Broken link", "At"]);
    for broken in &docs.broken.first {
        table.row(&[
            code(&broken.written),
            code(&format!("{}:{}", broken.place.path, broken.place.line)),
        ]);
    }
    table.show(out);
    if docs.items > 0 {
        let share = per_cent(docs.documented_permille);
        line(
            out,
            &format!(
                "{} of {} ({share}) have a doc comment.",
                number(docs.documented),
                counted(docs.items, "public Rust item", "public Rust items")
            ),
        );
    }
    let mut table = Table::new(&["Least documented", "#Public items", "#Without a doc comment"]);
    for one in &docs.undocumented {
        table.row(&[code(&one.path), number(one.items), number(one.bare)]);
    }
    table.show(out);
}
