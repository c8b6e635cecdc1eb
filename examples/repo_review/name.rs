//! Names as Git has them, bytes, made fit for a person and for JSON.

use std::fmt::Write as _;

/// The printable form of a name that may be any bytes.
///
/// Valid UTF-8 stays as it is. Bytes that are not UTF-8 become `\xNN`, and so do control characters, so that a
/// name can neither break a line nor a table; the characters that turn the reading direction become `\u{NNNN}`,
/// so that a name cannot look like another one. A backslash is doubled, which keeps the form unambiguous.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            push_printable(&mut out, c);
        }
        for byte in chunk.invalid() {
            push_byte(&mut out, u32::from(*byte));
        }
    }
    out
}

fn push_printable(out: &mut String, c: char) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            out.extend(c.escape_unicode());
        }
        '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => out.extend(c.escape_unicode()),
        _ if c.is_ascii_control() => push_byte(out, u32::from(c)),
        _ => out.push(c),
    }
}

fn push_byte(out: &mut String, byte: u32) {
    // Writing to a `String` cannot fail.
    let _ = write!(out, "\\x{byte:02x}");
}

/// The last segment of a path.
pub(crate) fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The directory of a path; empty for a file at the root.
pub(crate) fn directory(path: &[u8]) -> &[u8] {
    path.iter()
        .rposition(|byte| *byte == b'/')
        .map_or(&[], |slash| &path[..slash])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_stay_as_they_are_and_other_bytes_are_escaped() {
        assert_eq!(printable("straße/é.rs".as_bytes()), "straße/é.rs");
        assert_eq!(printable(b"caf\xe9\n.txt"), "caf\\xe9\\x0a.txt");
        assert_eq!(printable("a\u{202e}b".as_bytes()), "a\\u{202e}b");
    }

    #[test]
    fn two_different_names_never_print_alike() {
        assert_ne!(printable(b"\\xe9"), printable(b"\xe9"));
    }

    #[test]
    fn a_path_is_split_at_its_last_slash() {
        assert_eq!((directory(b"a/b/c"), base(b"a/b/c")), (&b"a/b"[..], &b"c"[..]));
        assert_eq!((directory(b"c"), base(b"c")), (&b""[..], &b"c"[..]));
    }
}
