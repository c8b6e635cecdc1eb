//! What a relative link means, and whether the commit has it.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Broken, Link, SHOWN_MAX};
use crate::git::{GitError, Kind, Progress, Reader, Subject};
use crate::name::{directory, printable};
use crate::risk::Found;

/// The path that a link in the file `from` means, in the bytes of the repository. `None` for what is no link into
/// the repository: an address, a place within the file, or a path that leads out of it (a host shows `../../issues`
/// as a page of its own).
pub(super) fn target(from: &[u8], written: &[u8]) -> Option<Vec<u8>> {
    let end = written
        .iter()
        .position(|byte| matches!(byte, b'#' | b'?'))
        .unwrap_or(written.len());
    let path = &written[..end];
    if path.is_empty() || has_scheme(path) || path.starts_with(b"//") || path.contains(&b'{') {
        return None;
    }
    let path = decode(path);
    let (start, path) = match path.strip_prefix(b"/") {
        Some(path) => (&b""[..], path),
        None => (directory(from), &path[..]),
    };
    let mut segments: Vec<&[u8]> = start
        .split(|byte| *byte == b'/')
        .filter(|one| !one.is_empty())
        .collect();
    for segment in path.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                segments.pop()?;
            }
            _ => segments.push(segment),
        }
    }
    Some(segments.join(&b'/'))
}

/// Looks the links up in the tree. Memory is bounded by the links, not by the tree.
pub(crate) fn check(
    reader: &Reader,
    subject: &Subject,
    links: &[Link],
    progress: Progress<'_>,
) -> Result<Found<Broken>, GitError> {
    let Some(commit) = subject.commit.as_ref().filter(|_| !links.is_empty()) else {
        return Ok(Found::default());
    };
    let mut wanted: BTreeMap<&str, bool> = links
        .iter()
        .map(|link| (link.target.as_str(), link.target.is_empty()))
        .collect();
    let mut tree = reader.tree(commit)?;
    let mut passed = 0;
    while let Some(entry) = tree.next()? {
        let path = printable(entry.path);
        mark(&mut wanted, &path);
        if entry.kind != Kind::File {
            mark_below(&mut wanted, &path);
        }
        passed += 1;
        progress(passed)?;
    }
    tree.finish()?;
    let mut broken = Found::default();
    for link in links
        .iter()
        .filter(|link| wanted.get(link.target.as_str()) != Some(&true))
    {
        broken.count += 1;
        if broken.first.len() < SHOWN_MAX {
            broken.first.push(Broken {
                place: link.place.clone(),
                written: link.written.clone(),
            });
        }
    }
    Ok(broken)
}

/// Marks a path and the directories it lies in as there.
fn mark(wanted: &mut BTreeMap<&str, bool>, path: &str) {
    let slashes = path
        .bytes()
        .enumerate()
        .filter(|(_, byte)| *byte == b'/')
        .map(|(at, _)| at);
    for end in slashes.chain([path.len()]) {
        if let Some(there) = wanted.get_mut(&path[..end]) {
            *there = true;
        }
    }
}

/// Marks everything below a symbolic link or a submodule as there: what it holds is not known here, so nothing bad
/// is said of it.
fn mark_below(wanted: &mut BTreeMap<&str, bool>, path: &str) {
    let below = format!("{path}/");
    for (target, there) in wanted.range_mut::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded)) {
        if !target.starts_with(&below) {
            break;
        }
        *there = true;
    }
}

fn has_scheme(path: &[u8]) -> bool {
    let scheme = path
        .split(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'+' | b'-' | b'.'))
        .next();
    scheme.is_some_and(|scheme| scheme.len() > 1 && path.get(scheme.len()) == Some(&b':'))
}

/// `%20` and the like; what is no such code stays as it is.
fn decode(path: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut at = 0;
    while at < path.len() {
        let code = (path[at] == b'%').then(|| path.get(at + 1..at + 3)).flatten();
        let byte = code
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        decoded.push(byte.unwrap_or(path[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_link_is_read_from_its_file_s_directory() {
        let of =
            |written: &str| target(b"docs/a/b.md", written.as_bytes()).map(|path| String::from_utf8(path).unwrap());
        assert_eq!(of("c.md#part").as_deref(), Some("docs/a/c.md"));
        assert_eq!(of("../x%20y.md").as_deref(), Some("docs/x y.md"));
        assert_eq!(of("/src/./lib.rs").as_deref(), Some("src/lib.rs"));
        assert_eq!(of("../..").as_deref(), Some(""));
        for no_path in [
            "#part",
            "https://example.org",
            "mailto:a@b",
            "//host/x",
            "../../../issues",
            "?x",
        ] {
            assert_eq!(of(no_path), None, "{no_path}");
        }
    }

    #[test]
    fn what_lies_behind_a_symbolic_link_or_submodule_is_not_called_broken() {
        let mut wanted = BTreeMap::from([("sub/x", false), ("sub", false), ("sub-y", false), ("a/b", false)]);
        mark(&mut wanted, "sub");
        mark_below(&mut wanted, "sub");
        mark(&mut wanted, "a/b/c");
        assert_eq!(
            wanted,
            BTreeMap::from([("sub/x", true), ("sub", true), ("sub-y", false), ("a/b", true)])
        );
    }
}
