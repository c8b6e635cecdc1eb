//! Strings: how RFC 8785 escapes them, and in which order it puts keys.

use std::{cmp::Ordering, fmt};

/// Appends `text` as a JSON string.
pub(crate) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Appends the inside of a JSON string. Runs that need no escape are copied whole.
pub(super) fn push_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(needs_escape) {
        out.push_str(&rest[..at]);
        push_escape(out, rest.as_bytes()[at]);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

pub(super) fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn push_escape(out: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        0x08 => out.push_str("\\b"),
        b'\t' => out.push_str("\\t"),
        b'\n' => out.push_str("\\n"),
        0x0c => out.push_str("\\f"),
        b'\r' => out.push_str("\\r"),
        _ => {
            out.push_str("\\u00");
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// Escapes what is formatted into it, so that a `Display` reaches the output without a string between.
pub(super) struct Escaping<'a>(pub(super) &'a mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        push_escaped(self.0, text);
        Ok(())
    }
}

/// The order of two keys by UTF-16 code units, read off their UTF-8 bytes.
///
/// Both orders agree except that characters beyond U+FFFF (lead byte F0 and up) are surrogates in UTF-16 and so come
/// before U+E000..=U+FFFF (lead bytes EE and EF).
pub(super) fn utf16_order(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let Some((&x, &y)) = a.iter().zip(b).find(|(x, y)| x != y) else {
        return a.len().cmp(&b.len());
    };
    match (x >= 0xf0, y >= 0xf0) {
        (true, false) if y >= 0xee => Ordering::Less,
        (false, true) if x >= 0xee => Ordering::Greater,
        _ => x.cmp(&y),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::utf16_order;

    proptest! {
        #[test]
        fn keys_are_ordered_as_their_utf16_code_units_are(
            a in "[a-c\u{7ff}\u{d7ff}\u{e000}-\u{e003}\u{ffff}\u{10000}-\u{10003}\u{10ffff}]{0,3}",
            b in "[a-c\u{7ff}\u{d7ff}\u{e000}-\u{e003}\u{ffff}\u{10000}-\u{10003}\u{10ffff}]{0,3}",
        ) {
            prop_assert_eq!(utf16_order(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }
    }
}
