//! Public items of a Rust file and whether they carry a doc comment.

use crate::rust_source::{self, Line, is_name};

/// Words that may stand between `pub` and what kind of item it is.
const QUALIFIERS: &[&[u8]] = &[b"async", b"const", b"default", b"extern", b"unsafe", b"\"\""];

/// The number of public items outside tests, and of those with a doc comment. Cheap: an item is a line that begins
/// with `pub` and its kind; `pub(crate)` is not public, fields and re-exports are no items, and a module in its own
/// file says in that file what it is.
pub(super) fn count_items(source: &[u8]) -> (u64, u64) {
    let mut counter = Counter::default();
    rust_source::lines(source, |line| counter.line(line));
    (counter.items, counter.documented)
}

#[derive(Debug, Default)]
struct Counter {
    items: u64,
    documented: u64,
    /// A doc comment was seen, and since then only attributes.
    doc: bool,
    /// Brackets of an attribute that are still open.
    open: u64,
}

impl Counter {
    fn line(&mut self, line: Line<'_>) {
        let code = line.code.trim_ascii();
        if line.doc {
            self.doc = true;
        } else if self.open > 0 || code.starts_with(b"#[") {
            self.doc |= code.starts_with(b"#[doc");
            self.attribute(code);
        } else if !code.is_empty() {
            if is_public_item(code) && !line.test {
                self.items += 1;
                self.documented += u64::from(self.doc);
            }
            self.doc = false;
        }
    }

    fn attribute(&mut self, code: &[u8]) {
        for byte in code {
            match byte {
                b'[' => self.open += 1,
                b']' => self.open = self.open.saturating_sub(1),
                _ => {}
            }
        }
    }
}

fn is_public_item(code: &[u8]) -> bool {
    let Some(rest) = code.strip_prefix(b"pub ") else {
        return false;
    };
    let mut words = rest
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .peekable();
    let mut constant = false;
    while let Some(word) = words.next_if(|word| QUALIFIERS.contains(word)) {
        constant |= word == b"const";
    }
    let Some(word) = words.next() else { return false };
    match word {
        b"fn" | b"struct" | b"enum" | b"trait" | b"type" | b"static" | b"union" | b"macro" => true,
        b"mod" => !code.ends_with(b";"),
        // `pub const NAME: …`, after the qualifier was taken.
        _ => constant && word.iter().all(|byte| is_name(*byte) || *byte == b':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_items_count_and_attributes_may_stand_between() {
        let source = "/// doc\n#[derive(\n  Debug,\n)]\npub struct A {\n  pub field: u8,\n}\npub(crate) fn b() {}\npub const C: u8 = 1;\n\
                      pub mod d;\npub use e;\n/// doc\npub const unsafe fn f() {}\n/// for x\nlet x = 1;\npub async fn g() {}\n\
                      #[cfg(test)]\nmod tests {\n pub fn h() {}\n}\n";
        assert_eq!(count_items(source.as_bytes()), (4, 2));
    }
}
