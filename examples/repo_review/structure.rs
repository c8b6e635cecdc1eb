//! The structure agent's findings: what there is, how large, in which languages.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Best, permille};
use crate::git::{Entry, GitError, Kind, Progress, Reader, Subject};
use crate::language::{Use, is_test, is_vendored, language};
use crate::name::{directory, printable};

/// Files, directories and submodules that are shown.
const SHOWN_MAX: usize = 8;

/// What one pass over the tree gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Listing {
    /// Files, symbolic links not counted.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Directories that hold a file, directly or below.
    pub(crate) directories: u64,
    /// Symbolic links, not followed.
    pub(crate) symlinks: u64,
    /// Submodules, not entered.
    pub(crate) submodules: u64,
    /// The first few submodules by path.
    pub(crate) first_submodules: Vec<Submodule>,
    /// Files and bytes by language.
    pub(crate) languages: BTreeMap<String, Size>,
    /// The largest files.
    pub(crate) largest: Vec<SizedFile>,
    /// The deepest directories that hold files.
    pub(crate) deepest: Vec<Deep>,
}

/// A number of files and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Size {
    /// Files.
    pub(crate) files: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}

/// A submodule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Submodule {
    /// Where it is.
    pub(crate) path: String,
    /// The commit it is fixed at.
    pub(crate) commit: String,
}

/// A file and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SizedFile {
    /// Where it is.
    pub(crate) path: String,
    /// Its bytes.
    pub(crate) bytes: u64,
}

/// A directory and how deep it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Deep {
    /// Where it is.
    pub(crate) path: String,
    /// How many directories one goes down to it.
    pub(crate) depth: u64,
    /// Files directly in it.
    pub(crate) files: u64,
}

/// What one pass over the lines gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LineCounts {
    /// Lines by language.
    pub(crate) languages: BTreeMap<String, u64>,
    /// Lines of code of this project: no prose, no data, nothing copied in.
    pub(crate) code: u64,
    /// Those of them in test files.
    pub(crate) tests: u64,
    /// Files that Git takes for binary; they have no lines.
    pub(crate) binary: u64,
}

/// The findings of the structure agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Structure {
    /// Files, bytes, links, largest and deepest.
    pub(crate) listing: Listing,
    /// Lines of all text files.
    pub(crate) lines: u64,
    /// Files that Git takes for binary.
    pub(crate) binary: u64,
    /// The languages, most lines first.
    pub(crate) languages: Vec<LanguageShare>,
    /// Lines of code of this project.
    pub(crate) code: u64,
    /// Those of them in test files.
    pub(crate) tests: u64,
    /// Test lines in thousandths of the lines of code.
    pub(crate) tests_permille: u64,
}

/// One language's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LanguageShare {
    /// The language.
    pub(crate) name: String,
    /// Files.
    pub(crate) files: u64,
    /// Bytes.
    pub(crate) bytes: u64,
    /// Lines.
    pub(crate) lines: u64,
}

/// Reads the tree.
pub(crate) fn list(reader: &Reader, subject: &Subject, progress: Progress<'_>) -> Result<Listing, GitError> {
    let Some(commit) = &subject.commit else {
        return Ok(Listing::default());
    };
    let mut tree = reader.tree(commit)?;
    let mut lister = Lister::new();
    let mut seen = 0;
    while let Some(entry) = tree.next()? {
        lister.entry(&entry);
        seen += 1;
        progress(seen)?;
    }
    tree.finish()?;
    Ok(lister.into_listing())
}

/// Reads how many lines each file has.
pub(crate) fn count_lines(reader: &Reader, subject: &Subject, progress: Progress<'_>) -> Result<LineCounts, GitError> {
    let Some(commit) = &subject.commit else {
        return Ok(LineCounts::default());
    };
    let mut counts = LineCounts::default();
    let mut files = reader.lines(commit)?;
    let mut seen = 0;
    while let Some((path, lines)) = files.next()? {
        let Some(lines) = lines else {
            counts.binary += 1;
            continue;
        };
        let language = language(path);
        *counts.languages.entry(language.name.to_owned()).or_default() += lines;
        if language.is == Use::Code && !is_vendored(path) {
            counts.code += lines;
            counts.tests += if is_test(path) { lines } else { 0 };
        }
        seen += 1;
        progress(seen)?;
    }
    files.finish()?;
    Ok(counts)
}

/// Puts the parts together.
pub(crate) fn summarise(listing: Listing, counts: &LineCounts) -> Structure {
    let share = |(name, size): (&String, &Size)| LanguageShare {
        name: name.clone(),
        files: size.files,
        bytes: size.bytes,
        lines: counts.languages.get(name).copied().unwrap_or(0),
    };
    let mut languages: Vec<_> = listing.languages.iter().map(share).collect();
    languages.sort_by(|a, b| {
        (b.lines, b.bytes)
            .cmp(&(a.lines, a.bytes))
            .then_with(|| a.name.cmp(&b.name))
    });
    Structure {
        lines: counts.languages.values().sum(),
        binary: counts.binary,
        languages,
        code: counts.code,
        tests: counts.tests,
        tests_permille: permille(counts.tests, counts.code),
        listing,
    }
}

/// The running state of a listing.
struct Lister {
    listing: Listing,
    largest: Best<(Reverse<u64>, Vec<u8>)>,
    deepest: Best<(Reverse<u64>, Vec<u8>, u64)>,
    /// The directory being read, as its path with the ends of its levels and the files directly in each: entries
    /// come grouped, so this is all that is needed.
    path: Vec<u8>,
    levels: Vec<(usize, u64)>,
}

impl Lister {
    fn new() -> Self {
        Self {
            listing: Listing::default(),
            largest: Best::new(SHOWN_MAX),
            deepest: Best::new(SHOWN_MAX),
            path: Vec::new(),
            levels: Vec::new(),
        }
    }

    fn entry(&mut self, entry: &Entry<'_>) {
        self.enter(directory(entry.path));
        match entry.kind {
            Kind::Symlink => self.listing.symlinks += 1,
            Kind::Submodule => self.submodule(entry),
            Kind::File => self.file(entry),
        }
    }

    fn file(&mut self, entry: &Entry<'_>) {
        let listing = &mut self.listing;
        listing.files += 1;
        listing.bytes += entry.size;
        let size = listing
            .languages
            .entry(language(entry.path).name.to_owned())
            .or_default();
        size.files += 1;
        size.bytes += entry.size;
        self.largest.offer((Reverse(entry.size), entry.path.to_vec()));
        if let Some((_, files)) = self.levels.last_mut() {
            *files += 1;
        }
    }

    fn submodule(&mut self, entry: &Entry<'_>) {
        self.listing.submodules += 1;
        if self.listing.first_submodules.len() < SHOWN_MAX {
            let submodule = Submodule {
                path: printable(entry.path),
                commit: entry.id.to_owned(),
            };
            self.listing.first_submodules.push(submodule);
        }
    }

    /// Leaves the directories that `directory` is not in and enters those on the way to it.
    fn enter(&mut self, directory: &[u8]) {
        let within =
            |end: usize| directory.starts_with(&self.path[..end]) && matches!(directory.get(end), None | Some(b'/'));
        let common = self.levels.iter().take_while(|(end, _)| within(*end)).count();
        while self.levels.len() > common {
            self.leave();
        }
        let mut start = self.levels.last().map_or(0, |(end, _)| end + 1);
        self.path.clear();
        self.path.extend_from_slice(directory);
        while start < directory.len() {
            let rest = &directory[start..];
            let end = start + rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            self.levels.push((end, 0));
            self.listing.directories += 1;
            start = end + 1;
        }
    }

    fn leave(&mut self) {
        let depth = u64::try_from(self.levels.len()).unwrap_or(u64::MAX);
        let Some((end, files)) = self.levels.pop() else { return };
        if files > 0 {
            self.deepest.offer((Reverse(depth), self.path[..end].to_vec(), files));
        }
    }

    fn into_listing(mut self) -> Listing {
        self.enter(&[]);
        let Self {
            mut listing,
            largest,
            deepest,
            ..
        } = self;
        listing.largest = largest
            .into_sorted()
            .map(|(Reverse(bytes), path)| SizedFile {
                path: printable(&path),
                bytes,
            })
            .collect();
        listing.deepest = deepest
            .into_sorted()
            .map(|(Reverse(depth), path, files)| Deep {
                path: printable(&path),
                depth,
                files,
            })
            .collect();
        listing
    }
}
