//! The history agent's findings: how much changed, where, and by how many people.
//!
//! The log is read once, as it comes. Memory is bounded by the number of names that [`counts`] keeps (about
//! 80 MB at the most), whatever the number of commits.

mod counts;
mod ownership;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded::Best;
use crate::git::{GitError, Progress, Reader, Subject};
use crate::name::printable;

use counts::Counts;
pub(crate) use ownership::{Ownership, measure};

/// Hot files that are shown.
pub(crate) const HOT_MAX: usize = 12;

/// What one pass over the log gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Walk {
    /// Commits that lead to the one reviewed, itself included.
    pub(crate) commits: u64,
    /// Those with more than one parent; their changes are counted where they were made.
    pub(crate) merges: u64,
    /// When the oldest was committed, in seconds since 1970.
    pub(crate) first: Option<i64>,
    /// When the newest was committed.
    pub(crate) last: Option<i64>,
    /// File changes: one file in one commit is one.
    pub(crate) changes: u64,
    /// Lines added.
    pub(crate) added: u64,
    /// Lines removed.
    pub(crate) removed: u64,
    /// People, told apart by their address after the commit's `.mailmap`.
    pub(crate) authors: u64,
    /// The authors with the most changes.
    pub(crate) shares: Vec<Share>,
    /// The most changed directories, two levels deep.
    pub(crate) directories: Vec<Directory>,
    /// The hottest files, those deleted since included.
    pub(crate) candidates: Vec<HotFile>,
    /// Names that were dropped at a bound; 0 means that every number is exact.
    pub(crate) dropped: u64,
}

/// An author's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Share {
    /// The name.
    pub(crate) name: String,
    /// Commits.
    pub(crate) commits: u64,
    /// File changes.
    pub(crate) changes: u64,
}

/// A directory and who changed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Directory {
    /// Its path; `.` for the files at the root.
    pub(crate) path: String,
    /// File changes in it.
    pub(crate) changes: u64,
    /// How many people made them.
    pub(crate) authors: u64,
    /// The authors with the most changes in it. Their commits are not counted here.
    pub(crate) shares: Vec<Share>,
}

/// A file that changes often and much.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HotFile {
    /// Its path.
    pub(crate) path: String,
    /// Commits that changed it.
    pub(crate) commits: u64,
    /// Lines added to it.
    pub(crate) added: u64,
    /// Lines removed from it.
    pub(crate) removed: u64,
}

impl HotFile {
    /// Commits × churn, what the files are ranked by.
    pub(crate) fn heat(&self) -> u64 {
        self.commits.saturating_mul(self.added.saturating_add(self.removed))
    }
}

/// The findings of the history agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct History {
    /// Commits that lead to the one reviewed, itself included.
    pub(crate) commits: u64,
    /// Those with more than one parent.
    pub(crate) merges: u64,
    /// When the oldest was committed, in seconds since 1970.
    pub(crate) first: Option<i64>,
    /// When the newest was committed.
    pub(crate) last: Option<i64>,
    /// File changes.
    pub(crate) changes: u64,
    /// Lines added.
    pub(crate) added: u64,
    /// Lines removed.
    pub(crate) removed: u64,
    /// Who made the changes.
    pub(crate) ownership: Ownership,
    /// The hottest files that the commit still has, hottest first.
    pub(crate) hot: Vec<HotFile>,
    /// Names that were dropped at a bound; 0 means that every number is exact.
    pub(crate) dropped: u64,
}

/// Reads the log.
pub(crate) fn walk(reader: &Reader, subject: &Subject, progress: Progress<'_>) -> Result<Walk, GitError> {
    let Some(commit) = &subject.commit else {
        return Ok(Walk::default());
    };
    let mut log = reader.log(commit)?;
    let mut counts = Counts::new();
    let mut changed = Vec::new();
    let mut places = Vec::new();
    loop {
        changed.clear();
        places.clear();
        let next = log.next(|path, lines| {
            changed.push((places.len(), lines));
            places.extend_from_slice(path);
        })?;
        let Some(commit) = next else { break };
        counts.commit(&commit, u64::try_from(changed.len()).unwrap_or(u64::MAX));
        for (at, (start, lines)) in changed.iter().enumerate() {
            let end = changed.get(at + 1).map_or(places.len(), |(next, _)| *next);
            counts.change(&commit, &places[*start..end], *lines);
        }
        progress(counts.commits())?;
    }
    log.finish()?;
    Ok(counts.into_walk())
}

/// Those of the candidates that the commit still has, hottest first.
pub(crate) fn present(
    reader: &Reader,
    subject: &Subject,
    candidates: Vec<HotFile>,
    progress: Progress<'_>,
) -> Result<Vec<HotFile>, GitError> {
    let Some(commit) = &subject.commit else {
        return Ok(Vec::new());
    };
    let mut wanted: BTreeMap<String, HotFile> = candidates.into_iter().map(|file| (file.path.clone(), file)).collect();
    let mut hot = Best::new(HOT_MAX);
    let mut tree = reader.tree(commit)?;
    let mut files = 0;
    while let Some(entry) = tree.next()? {
        if let Some(file) = wanted.remove(&printable(entry.path)) {
            hot.offer((Reverse(file.heat()), file));
        }
        files += 1;
        progress(files)?;
    }
    tree.finish()?;
    Ok(hot.into_sorted().map(|(_, file)| file).collect())
}

/// Puts the parts together.
pub(crate) fn summarise(walk: &Walk, ownership: Ownership, hot: Vec<HotFile>) -> History {
    History {
        commits: walk.commits,
        merges: walk.merges,
        first: walk.first,
        last: walk.last,
        changes: walk.changes,
        added: walk.added,
        removed: walk.removed,
        ownership,
        hot,
        dropped: walk.dropped,
    }
}
