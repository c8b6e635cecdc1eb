//! The one pass over all files.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::pattern::{ConflictLine, conflict, marker, secret, words};
use super::{
    Binary, Coverage, Found, LongFile, LongLine, Marked, Marker, Place, RustFile, RustUse, SHOWN_MAX, Scan, Secret,
};
use crate::bounded::Best;
use crate::git::{File, GitError, Progress, Reader, Subject, is_binary};
use crate::language::{Language, Use, is_test, is_vendored, language};
use crate::name::printable;
use crate::rust_source::{self, Line};

/// Lines above which a source file is called long.
pub(crate) const LONG_FILE_LINES: u64 = 1000;
/// Bytes above which a line of a source file is called long.
pub(crate) const LONG_LINE_BYTES: usize = 500;
/// Rust files that a scan hands on.
const RUST_FILES_MAX: usize = 100;

/// Reads every file.
pub(crate) fn scan(reader: &Reader, subject: &Subject, progress: Progress<'_>) -> Result<Scan, GitError> {
    let Some(commit) = &subject.commit else {
        return Ok(Scan::default());
    };
    let mut scanner = Scanner::new();
    let read = reader.contents(
        commit,
        progress,
        |entry| !is_vendored(entry.path),
        |file| scanner.file(file),
    )?;
    Ok(scanner.into_scan(Coverage {
        files: read.files,
        cut: read.cut,
        unread: read.unread,
    }))
}

/// Keeps paths as bytes until the end, so that the order is that of the bytes.
struct Scanner {
    markers: BTreeMap<Marker, u64>,
    marked: Best<(Marker, Vec<u8>, u64)>,
    rust: RustUse,
    rust_tests: RustUse,
    rust_files: Best<(Reverse<u64>, Vec<u8>, Uses)>,
    long_files: Best<(Reverse<u64>, Vec<u8>)>,
    long_lines: Best<(Reverse<u64>, Vec<u8>, u64)>,
    binaries: Best<(Reverse<u64>, Vec<u8>)>,
    conflicts: Best<(Vec<u8>, u64)>,
    secrets: Best<(bool, Vec<u8>, u64, &'static str)>,
}

/// [`RustUse`], in an order: what the set needs to hold it.
type Uses = [u64; 5];

impl Scanner {
    fn new() -> Self {
        Self {
            markers: BTreeMap::new(),
            marked: Best::new(SHOWN_MAX),
            rust: RustUse::default(),
            rust_tests: RustUse::default(),
            rust_files: Best::new(RUST_FILES_MAX),
            long_files: Best::new(SHOWN_MAX),
            long_lines: Best::new(SHOWN_MAX),
            binaries: Best::new(SHOWN_MAX),
            conflicts: Best::new(SHOWN_MAX),
            secrets: Best::new(SHOWN_MAX),
        }
    }

    fn file(&mut self, file: File<'_>) {
        if is_binary(file.bytes) {
            self.binaries.offer((Reverse(file.size), file.path.to_vec()));
            return;
        }
        let language = language(file.path);
        self.text(&file, language);
        if language.name == "Rust" {
            self.rust(&file);
        }
    }

    fn text(&mut self, file: &File<'_>, language: Language) {
        let notes = matches!(language.is, Use::Code | Use::Config);
        let mut conflict_at = None;
        let mut longest = (0, 0);
        let mut count = 0;
        for line in file.bytes.split(|byte| *byte == b'\n') {
            count += 1;
            longest = longest.max((line.len(), count));
            if let Some(kind) = secret(line) {
                self.secrets
                    .offer((is_test(file.path), file.path.to_vec(), count, kind));
            }
            if let Some(marker) = marker(line).filter(|_| notes) {
                *self.markers.entry(marker).or_default() += 1;
                self.marked.offer((marker, file.path.to_vec(), count));
            }
            conflict_at = self.conflict_line(line, count, conflict_at, file.path);
        }
        count -= u64::from(file.bytes.is_empty() || file.bytes.ends_with(b"\n"));
        if language.is != Use::Code {
            return;
        }
        if count > LONG_FILE_LINES {
            self.long_files.offer((Reverse(count), file.path.to_vec()));
        }
        if longest.0 > LONG_LINE_BYTES {
            let bytes = u64::try_from(longest.0).unwrap_or(u64::MAX);
            self.long_lines.offer((Reverse(bytes), file.path.to_vec(), longest.1));
        }
    }

    /// Follows a conflict through its three lines in their order; one alone is a heading or an ornament.
    fn conflict_line(&mut self, line: &[u8], at: u64, open: Option<(u64, bool)>, path: &[u8]) -> Option<(u64, bool)> {
        match (conflict(line), open) {
            (Some(ConflictLine::Ours), _) => Some((at, false)),
            (Some(ConflictLine::Parting), Some((start, false))) => Some((start, true)),
            (Some(ConflictLine::Theirs), Some((start, true))) => {
                self.conflicts.offer((path.to_vec(), start));
                None
            }
            _ => open,
        }
    }

    fn rust(&mut self, file: &File<'_>) {
        let in_tests = is_test(file.path);
        let (mut uses, mut tests) = (RustUse::default(), RustUse::default());
        rust_source::lines(file.bytes, |line| {
            let kept = if in_tests || line.test { &mut tests } else { &mut uses };
            count_uses(line, kept);
        });
        self.rust.add(&uses);
        self.rust_tests.add(&tests);
        let heavy = uses.panicking() + uses.unsafe_code;
        if heavy > 0 {
            let row = [uses.lines, uses.unwrap, uses.expect, uses.panic, uses.unsafe_code];
            self.rust_files.offer((Reverse(heavy), file.path.to_vec(), row));
        }
    }

    fn into_scan(self, coverage: Coverage) -> Scan {
        let rust_files = self
            .rust_files
            .into_sorted()
            .map(|(_, path, [lines, unwrap, expect, panic, unsafe_code])| RustFile {
                path: printable(&path),
                uses: RustUse {
                    lines,
                    unwrap,
                    expect,
                    panic,
                    unsafe_code,
                },
            });
        Scan {
            coverage,
            markers: self.markers,
            marked: self
                .marked
                .into_sorted()
                .map(|(marker, path, line)| Marked {
                    marker,
                    place: place(&path, line),
                })
                .collect(),
            rust: self.rust,
            rust_tests: self.rust_tests,
            rust_files: rust_files.collect(),
            long_files: found(self.long_files, |(Reverse(lines), path)| LongFile {
                path: printable(&path),
                lines,
            }),
            long_lines: found(self.long_lines, |(Reverse(bytes), path, line)| LongLine {
                place: place(&path, line),
                bytes,
            }),
            binaries: found(self.binaries, |(Reverse(bytes), path)| Binary {
                path: printable(&path),
                bytes,
            }),
            conflicts: found(self.conflicts, |(path, line)| place(&path, line)),
            secrets: found(self.secrets, |(test, path, line, kind)| Secret {
                place: place(&path, line),
                kind: kind.to_owned(),
                test,
            }),
        }
    }
}

fn found<K: Ord, T>(best: Best<K>, make: impl FnMut(K) -> T) -> Found<T> {
    Found {
        count: best.seen(),
        first: best.into_sorted().map(make).collect(),
    }
}

fn place(path: &[u8], line: u64) -> Place {
    Place {
        path: printable(path),
        line,
    }
}

fn count_uses(line: Line<'_>, uses: &mut RustUse) {
    let code = line.code.trim_ascii();
    if code.is_empty() {
        return;
    }
    uses.lines += 1;
    uses.unwrap += calls(code, b"unwrap", b"()");
    uses.expect += calls(code, b"expect", b"(");
    for word in [&b"panic"[..], b"todo", b"unimplemented", b"unreachable"] {
        uses.panic += followed(code, word, b"!");
    }
    uses.unsafe_code += followed(code, b"unsafe", b"");
}

/// Method calls of `name`: a dot before it and `after` behind it.
fn calls(code: &[u8], name: &[u8], after: &[u8]) -> u64 {
    let method = |start: &usize| start.checked_sub(1).is_some_and(|dot| code[dot] == b'.');
    count(
        words(code, name)
            .filter(method)
            .filter(|start| code[start + name.len()..].starts_with(after)),
    )
}

fn followed(code: &[u8], word: &[u8], after: &[u8]) -> u64 {
    count(words(code, word).filter(|start| code[start + word.len()..].starts_with(after)))
}

fn count(found: impl Iterator) -> u64 {
    u64::try_from(found.count()).unwrap_or(u64::MAX)
}
