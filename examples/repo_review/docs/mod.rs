//! The docs agent's findings: what a newcomer would read, and whether its links lead anywhere.

mod links;
mod resolve;
mod rust;

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::{Best, permille};
use crate::git::{GitError, Progress, Reader, Subject, is_binary};
use crate::language::{is_test, is_vendored, language};
use crate::name::printable;
use crate::risk::{Coverage, Found, Place};

pub(crate) use resolve::check;

/// Relative links that are remembered to be looked up; the rest is counted.
const LINKS_MAX: usize = 20_000;
/// Rows of a table that are shown.
const SHOWN_MAX: usize = 10;

/// What one pass over the files gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reading {
    /// How much was read.
    pub(crate) coverage: Coverage,
    /// The files at the root that a project is expected to have.
    pub(crate) customs: Vec<Custom>,
    /// Markdown files.
    pub(crate) markdown: u64,
    /// Relative links in them, in the order of the files; those past [`LINKS_MAX`] are only counted.
    pub(crate) links: Vec<Link>,
    /// Relative links that were only counted.
    pub(crate) more_links: u64,
    /// Public items of Rust files, outside tests.
    pub(crate) items: u64,
    /// Those with a doc comment.
    pub(crate) documented: u64,
    /// The Rust files with the most public items without a doc comment.
    pub(crate) undocumented: Vec<Undocumented>,
}

/// A file at the root that a project is expected to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Custom {
    /// What it is for.
    pub(crate) purpose: Purpose,
    /// Its path.
    pub(crate) path: String,
    /// Its bytes.
    pub(crate) bytes: u64,
}

/// What a file at the root is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Purpose {
    /// What this is.
    Readme,
    /// What one may do with it.
    Licence,
    /// What changed.
    Changelog,
    /// How to take part.
    Contributing,
    /// Whom to tell about a hole.
    Security,
}

impl Purpose {
    /// All, in the order of a review.
    pub(crate) const ALL: [Self; 5] = [
        Self::Readme,
        Self::Licence,
        Self::Changelog,
        Self::Contributing,
        Self::Security,
    ];

    /// Its name in a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Readme => "README",
            Self::Licence => "licence",
            Self::Changelog => "changelog",
            Self::Contributing => "contributing guide",
            Self::Security => "security policy",
        }
    }

    /// The purpose of a file at the root, or in `.github/` or `docs/` for the last two.
    fn of(path: &[u8]) -> Option<Self> {
        let path = path.to_ascii_uppercase();
        let (directory, name) = (crate::name::directory(&path), crate::name::base(&path));
        let purpose = match name.split(|byte| matches!(byte, b'.' | b'-')).next()? {
            b"README" => Self::Readme,
            b"LICENSE" | b"LICENCE" | b"COPYING" | b"UNLICENSE" => Self::Licence,
            b"CHANGELOG" | b"CHANGES" | b"HISTORY" | b"NEWS" | b"RELEASES" => Self::Changelog,
            b"CONTRIBUTING" => Self::Contributing,
            b"SECURITY" => Self::Security,
            _ => return None,
        };
        let elsewhere =
            matches!(purpose, Self::Contributing | Self::Security) && matches!(directory, b".GITHUB" | b"DOCS");
        (directory.is_empty() || elsewhere).then_some(purpose)
    }
}

/// A relative link of a Markdown file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Link {
    /// Where it stands.
    pub(crate) place: Place,
    /// What it says.
    pub(crate) written: String,
    /// The path in the repository that it means, printable; empty for the root.
    pub(crate) target: String,
}

/// A Rust file with public items that have no doc comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Undocumented {
    /// The file.
    pub(crate) path: String,
    /// Its public items.
    pub(crate) items: u64,
    /// Those without a doc comment.
    pub(crate) bare: u64,
}

/// A link that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Broken {
    /// Where it stands.
    pub(crate) place: Place,
    /// What it says.
    pub(crate) written: String,
}

/// The findings of the docs agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Docs {
    /// How much was read.
    pub(crate) coverage: Coverage,
    /// The files at the root that a project is expected to have, those that are there.
    pub(crate) customs: Vec<Custom>,
    /// Markdown files.
    pub(crate) markdown: u64,
    /// Relative links that were looked up.
    pub(crate) links: u64,
    /// Relative links that were not, at the bound.
    pub(crate) more_links: u64,
    /// Links that lead nowhere.
    pub(crate) broken: Found<Broken>,
    /// Public items of Rust files, outside tests.
    pub(crate) items: u64,
    /// Those with a doc comment.
    pub(crate) documented: u64,
    /// Documented items in thousandths of all.
    pub(crate) documented_permille: u64,
    /// The Rust files with the most public items without a doc comment.
    pub(crate) undocumented: Vec<Undocumented>,
}

/// Reads the Markdown and Rust files, and notes the customary files at the root.
pub(crate) fn read(reader: &Reader, subject: &Subject, progress: Progress<'_>) -> Result<Reading, GitError> {
    let Some(commit) = &subject.commit else {
        return Ok(Reading::default());
    };
    let mut reading = Reading::default();
    let mut undocumented = Best::new(SHOWN_MAX);
    let wanted = |path: &[u8]| !is_vendored(path) && matches!(language(path).name, "Markdown" | "Rust");
    let read = reader.contents(
        commit,
        progress,
        |entry| wanted(entry.path) || Purpose::of(entry.path).is_some(),
        |file| {
            if let Some(purpose) = Purpose::of(file.path) {
                reading.customs.push(Custom {
                    purpose,
                    path: printable(file.path),
                    bytes: file.size,
                });
            }
            if is_binary(file.bytes) {
                return;
            }
            match language(file.path).name {
                "Markdown" => markdown(&mut reading, file.path, file.bytes),
                "Rust" if !is_test(file.path) => {
                    let (items, documented) = rust::count_items(file.bytes);
                    reading.items += items;
                    reading.documented += documented;
                    if documented < items {
                        undocumented.offer((Reverse(items - documented), file.path.to_vec(), items));
                    }
                }
                _ => {}
            }
        },
    )?;
    reading
        .customs
        .sort_by(|a, b| (a.purpose, &a.path).cmp(&(b.purpose, &b.path)));
    reading.coverage = Coverage {
        files: read.files,
        cut: read.cut,
        unread: read.unread,
    };
    let row = |(Reverse(bare), path, items): (_, Vec<u8>, _)| Undocumented {
        path: printable(&path),
        items,
        bare,
    };
    reading.undocumented = undocumented.into_sorted().map(row).collect();
    Ok(reading)
}

/// Puts the parts together.
pub(crate) fn summarise(reading: Reading, broken: Found<Broken>) -> Docs {
    Docs {
        coverage: reading.coverage,
        customs: reading.customs,
        markdown: reading.markdown,
        links: u64::try_from(reading.links.len()).unwrap_or(u64::MAX),
        more_links: reading.more_links,
        broken,
        items: reading.items,
        documented: reading.documented,
        documented_permille: permille(reading.documented, reading.items),
        undocumented: reading.undocumented,
    }
}

fn markdown(reading: &mut Reading, path: &[u8], bytes: &[u8]) {
    reading.markdown += 1;
    links::links(bytes, |line, written| {
        let Some(target) = resolve::target(path, written) else {
            return;
        };
        if reading.links.len() >= LINKS_MAX {
            reading.more_links += 1;
            return;
        }
        let place = Place {
            path: printable(path),
            line,
        };
        reading.links.push(Link {
            place,
            written: printable(written),
            target: printable(&target),
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_customary_files_are_told_by_name_and_place() {
        assert_eq!(Purpose::of(b"readme.md"), Some(Purpose::Readme));
        assert_eq!(Purpose::of(b"LICENSE-MIT"), Some(Purpose::Licence));
        assert_eq!(Purpose::of(b".github/SECURITY.md"), Some(Purpose::Security));
        assert_eq!(Purpose::of(b"sub/README.md"), None);
        assert_eq!(Purpose::of(b"newsroom.txt"), None);
    }
}
