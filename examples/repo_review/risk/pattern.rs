//! The cheap patterns of the risk scan, over bytes.

use super::Marker;
use crate::rust_source::is_name;

const MARKERS: [Marker; 4] = [Marker::Fixme, Marker::Xxx, Marker::Hack, Marker::Todo];

/// The first note of a line: an upper-case word of its own.
pub(super) fn marker(line: &[u8]) -> Option<Marker> {
    MARKERS
        .into_iter()
        .find(|marker| words(line, marker.word().as_bytes()).next().is_some())
}

/// Where `word` stands in `line` with no letter, digit or `_` on either side.
pub(super) fn words<'a>(line: &'a [u8], word: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let at = |start: &usize| {
        let before = start.checked_sub(1).and_then(|at| line.get(at));
        let after = line.get(start + word.len());
        !before.is_some_and(|byte| is_name(*byte)) && !after.is_some_and(|byte| is_name(*byte))
    };
    line.windows(word.len())
        .enumerate()
        .filter(move |(_, window)| *window == word)
        .map(|(start, _)| start)
        .filter(at)
}

/// The part of a merge conflict that a line begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConflictLine {
    /// Seven `<` and a name.
    Ours,
    /// Seven `=` alone.
    Parting,
    /// Seven `>` and a name.
    Theirs,
}

/// Reads a line as part of a conflict.
pub(super) fn conflict(line: &[u8]) -> Option<ConflictLine> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let sign = *line.first()?;
    let (seven, rest) = line.split_at_checked(7)?;
    if seven.iter().any(|byte| *byte != sign) {
        return None;
    }
    match (sign, rest.first()) {
        (b'<', Some(b' ')) => Some(ConflictLine::Ours),
        (b'=', None) => Some(ConflictLine::Parting),
        (b'>', Some(b' ')) => Some(ConflictLine::Theirs),
        _ => None,
    }
}

/// What kind of secret a line shows, if any.
pub(super) fn secret(line: &[u8]) -> Option<&'static str> {
    if is_private_key(line) {
        return Some("private key");
    }
    is_cloud_key(line).then_some("cloud access key")
}

/// A PEM header of a private key. Written in two parts, so that this file shows none.
fn is_private_key(line: &[u8]) -> bool {
    let Some(start) = find(line, b"-----BEGIN ") else {
        return false;
    };
    let rest = &line[start + 11..];
    let Some(end) = find(rest, b"-----") else { return false };
    let label = &rest[..end];
    let named = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    named && label.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b' ')
}

/// The id of an AWS access key: `AKIA` and 16 capitals or digits.
fn is_cloud_key(line: &[u8]) -> bool {
    let key = |window: &[u8]| {
        let (start, rest) = window.split_at(4);
        start == b"AKIA"
            && rest
                .iter()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    let mut at = line
        .windows(20)
        .enumerate()
        .filter(|(_, window)| key(window))
        .map(|(start, _)| start);
    at.any(|start| {
        let before = start.checked_sub(1).and_then(|at| line.get(at));
        !before.is_some_and(|byte| is_name(*byte)) && !line.get(start + 20).is_some_and(|byte| is_name(*byte))
    })
}

fn find(line: &[u8], wanted: &[u8]) -> Option<usize> {
    line.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_an_upper_case_word_of_its_own() {
        assert_eq!(marker(b"// TODO: later"), Some(Marker::Todo));
        assert_eq!(marker(b"// TODO and FIXME"), Some(Marker::Fixme));
        for line in ["// todo", "TODOS", "XXXL", "_HACK", "mktemp XXXXXX"] {
            assert_eq!(marker(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_conflict_line_is_exactly_what_git_writes() {
        let ours = [&b"<"[..]; 7].concat();
        assert_eq!(conflict(&[&ours[..], b" HEAD"].concat()), Some(ConflictLine::Ours));
        assert_eq!(conflict(&[b'='; 7]), Some(ConflictLine::Parting));
        assert_eq!(conflict(&[b'='; 8]), None);
        assert_eq!(conflict(&ours), None);
    }

    #[test]
    fn keys_are_told_by_their_headers_and_public_ones_are_none() {
        let pem = |label: &str| format!("-----BEGIN {label}-----");
        assert_eq!(secret(pem("RSA PRIVATE KEY").as_bytes()), Some("private key"));
        assert_eq!(secret(pem("PGP PRIVATE KEY BLOCK").as_bytes()), Some("private key"));
        assert_eq!(secret(pem("PUBLIC KEY").as_bytes()), None);
        assert_eq!(secret(pem("{label} PRIVATE KEY").as_bytes()), None);
        let id = ["AKIA", "ABCDEFGHIJ234567"].concat();
        assert_eq!(secret(format!("id = \"{id}\"").as_bytes()), Some("cloud access key"));
        assert_eq!(secret(format!("{id}8").as_bytes()), None);
    }
}
