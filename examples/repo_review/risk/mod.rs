//! The risk agent's findings: what is likely to hurt, with the places.
//!
//! Every file is read once through one pipe. All tables are bounded; what they leave out is in their counts.

mod pattern;
mod scan;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::permille;

pub(crate) use scan::{LONG_FILE_LINES, LONG_LINE_BYTES, scan};

/// Rows of a table that are shown.
const SHOWN_MAX: usize = 10;
/// Uses of panicking calls outside tests below which a file is not named for their density.
const DENSE_MIN: u64 = 5;

/// What one pass over the files gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Scan {
    /// How much was read.
    pub(crate) coverage: Coverage,
    /// Notes left in the code, by kind.
    pub(crate) markers: BTreeMap<Marker, u64>,
    /// Their first places: the urgent kinds first, then by path and line.
    pub(crate) marked: Vec<Marked>,
    /// Rust outside of tests.
    pub(crate) rust: RustUse,
    /// Rust in tests, where a panic is how a test fails.
    pub(crate) rust_tests: RustUse,
    /// The Rust files with the most panicking calls and unsafe blocks outside tests.
    pub(crate) rust_files: Vec<RustFile>,
    /// Source files of more than [`LONG_FILE_LINES`](scan::LONG_FILE_LINES) lines.
    pub(crate) long_files: Found<LongFile>,
    /// Source files with a line of more than [`LONG_LINE_BYTES`](scan::LONG_LINE_BYTES) bytes.
    pub(crate) long_lines: Found<LongLine>,
    /// Binary files.
    pub(crate) binaries: Found<Binary>,
    /// Conflicts that were committed.
    pub(crate) conflicts: Found<Place>,
    /// What looks like a secret. Never its value.
    pub(crate) secrets: Found<Secret>,
}

/// How much of the tree a pass has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Coverage {
    /// Files read, at least in part.
    pub(crate) files: u64,
    /// Of those, files of which only the first part was read.
    pub(crate) cut: u64,
    /// Files too large to open, or missing in this clone.
    pub(crate) unread: u64,
}

/// How many there are, and the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Found<T> {
    /// How many there are.
    pub(crate) count: u64,
    /// Those that are shown.
    pub(crate) first: Vec<T>,
}

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self {
            count: 0,
            first: Vec::new(),
        }
    }
}

/// A word by which people leave themselves a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Marker {
    /// Known to be wrong.
    Fixme,
    /// Known to be dangerous.
    Xxx,
    /// Known to be ugly.
    Hack,
    /// Not yet done.
    Todo,
}

impl Marker {
    /// The word itself.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fixme => "FIXME",
            Self::Xxx => "XXX",
            Self::Hack => "HACK",
            Self::Todo => "TODO",
        }
    }
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Place {
    /// The file.
    pub(crate) path: String,
    /// The line, from 1.
    pub(crate) line: u64,
}

/// A note and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Marked {
    /// Its word.
    pub(crate) marker: Marker,
    /// Where it stands.
    pub(crate) place: Place,
}

/// Calls that panic, and unsafe code, in Rust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RustUse {
    /// Lines that hold code.
    pub(crate) lines: u64,
    /// `.unwrap()`.
    pub(crate) unwrap: u64,
    /// `.expect(…)`.
    pub(crate) expect: u64,
    /// `panic!`, `todo!`, `unimplemented!`, `unreachable!`.
    pub(crate) panic: u64,
    /// `unsafe`.
    pub(crate) unsafe_code: u64,
}

impl RustUse {
    /// Everything that can end the program.
    pub(crate) fn panicking(&self) -> u64 {
        self.unwrap + self.expect + self.panic
    }

    fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.unwrap += other.unwrap;
        self.expect += other.expect;
        self.panic += other.panic;
        self.unsafe_code += other.unsafe_code;
    }
}

/// A Rust file and what it uses outside tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RustFile {
    /// The file.
    pub(crate) path: String,
    /// What it uses.
    pub(crate) uses: RustUse,
}

/// A long source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LongFile {
    /// The file.
    pub(crate) path: String,
    /// Its lines, as far as it was read.
    pub(crate) lines: u64,
}

/// A source file with a very long line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LongLine {
    /// The file and its longest line.
    pub(crate) place: Place,
    /// Bytes of that line, as far as it was read.
    pub(crate) bytes: u64,
}

/// A binary file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Binary {
    /// The file.
    pub(crate) path: String,
    /// Its bytes.
    pub(crate) bytes: u64,
}

/// What looks like a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Secret {
    /// Where it stands.
    pub(crate) place: Place,
    /// What it looks like.
    pub(crate) kind: String,
    /// Whether it stands in a test file, where it is most likely made up.
    pub(crate) test: bool,
}

/// The findings of the risk agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Risk {
    /// What the pass over the files gave, cut to what is shown.
    pub(crate) scan: Scan,
    /// Panicking calls outside tests for a thousand lines of Rust.
    pub(crate) panicking_permille: u64,
    /// The Rust files with the most panicking calls for their length, densest first.
    pub(crate) dense: Vec<DenseFile>,
}

/// A Rust file with many panicking calls for its length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DenseFile {
    /// The file and what it uses.
    pub(crate) file: RustFile,
    /// Panicking calls for a thousand lines of code.
    pub(crate) permille: u64,
}

/// Ranks what was found.
pub(crate) fn rank(mut scan: Scan) -> Risk {
    let files = std::mem::take(&mut scan.rust_files);
    let dense = files.into_iter().filter(|file| file.uses.panicking() >= DENSE_MIN);
    let mut dense: Vec<_> = dense
        .map(|file| DenseFile {
            permille: permille(file.uses.panicking(), file.uses.lines),
            file,
        })
        .collect();
    dense.sort_by(|a, b| b.permille.cmp(&a.permille).then_with(|| a.file.path.cmp(&b.file.path)));
    dense.truncate(SHOWN_MAX);
    Risk {
        panicking_permille: permille(scan.rust.panicking(), scan.rust.lines),
        dense,
        scan,
    }
}
