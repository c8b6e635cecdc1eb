//! The running counts of a walk over the log, and their bounds.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Directory, HotFile, Share, Walk};
use crate::bounded::{Best, Tally, Weight};
use crate::git::{Changed, Commit};
use crate::language::{is_lock, is_vendored};
use crate::name::{directory, printable};

/// Paths counted at once; at about 150 bytes each.
const PATHS_MAX: usize = 200_000;
/// Pairs of directory and author counted at once; at about 120 bytes each.
const PAIRS_MAX: usize = 200_000;
/// Authors counted at once; at about 150 bytes each.
const AUTHORS_MAX: usize = 50_000;
/// Authors that a walk hands on, those with the most changes.
const SHARES_MAX: usize = 500;
/// Directories that a walk hands on, the most changed.
const DIRECTORIES_MAX: usize = 8;
/// Authors of one directory that a walk hands on.
const DIRECTORY_SHARES_MAX: usize = 50;
/// Hot files that a walk hands on; some of them no longer exist.
const CANDIDATES_MAX: usize = 200;

#[derive(Debug, Default)]
struct Churn {
    commits: u64,
    added: u64,
    removed: u64,
}

impl Weight for Churn {
    fn weight(&self) -> u64 {
        self.commits.saturating_mul(self.added.saturating_add(self.removed))
    }
}

#[derive(Debug, Default)]
struct Person {
    name: Vec<u8>,
    commits: u64,
    changes: u64,
}

impl Weight for Person {
    fn weight(&self) -> u64 {
        self.changes
    }
}

/// The running counts of a walk.
pub(super) struct Counts {
    walk: Walk,
    files: Tally<Churn>,
    people: Tally<Person>,
    /// Directory, NUL, address: neither holds a NUL.
    pairs: Tally<u64>,
    pair: Vec<u8>,
}

impl Counts {
    pub(super) fn new() -> Self {
        Self {
            walk: Walk::default(),
            files: Tally::new(PATHS_MAX),
            people: Tally::new(AUTHORS_MAX),
            pairs: Tally::new(PAIRS_MAX),
            pair: Vec::new(),
        }
    }

    /// Commits so far.
    pub(super) fn commits(&self) -> u64 {
        self.walk.commits
    }

    /// Counts a commit and how many files it changed.
    pub(super) fn commit(&mut self, commit: &Commit, changes: u64) {
        let walk = &mut self.walk;
        walk.commits += 1;
        walk.merges += u64::from(commit.parents > 1);
        walk.first = Some(walk.first.map_or(commit.at, |first| first.min(commit.at)));
        walk.last = Some(walk.last.map_or(commit.at, |last| last.max(commit.at)));
        walk.changes += changes;
        self.people.change(&commit.email, |person| {
            if person.commits == 0 {
                person.name.clone_from(&commit.name); // the newest name, since the log begins with the newest
            }
            person.commits += 1;
            person.changes += changes;
        });
    }

    /// Counts one file that a commit changed.
    pub(super) fn change(&mut self, commit: &Commit, path: &[u8], lines: Changed) {
        let (added, removed) = lines.unwrap_or_default();
        self.walk.added += added;
        self.walk.removed += removed;
        if !is_lock(path) && !is_vendored(path) {
            self.files.change(path, |churn| {
                churn.commits += 1;
                churn.added += added;
                churn.removed += removed;
            });
        }
        self.pair.clear();
        self.pair.extend_from_slice(two_levels(path));
        self.pair.push(0);
        self.pair.extend_from_slice(&commit.email);
        self.pairs.change(&self.pair, |changes| *changes += 1);
    }

    /// The counts, ranked and cut.
    pub(super) fn into_walk(self) -> Walk {
        let Self {
            mut walk,
            files,
            people,
            pairs,
            ..
        } = self;
        walk.dropped = files.pruned() + people.pruned() + pairs.pruned();
        walk.authors = u64::try_from(people.len()).unwrap_or(u64::MAX);
        walk.candidates = candidates(files);
        let people = people.into_sorted();
        walk.directories = directories(pairs, &people);
        walk.shares = shares(people.iter().map(|(_, person)| (person.changes, person)), SHARES_MAX);
        walk
    }
}

fn candidates(files: Tally<Churn>) -> Vec<HotFile> {
    let mut best = Best::new(CANDIDATES_MAX);
    for (path, churn) in files.into_sorted() {
        let Churn {
            commits,
            added,
            removed,
        } = churn;
        best.offer((Reverse(churn.weight()), path, commits, added, removed));
    }
    let hot = best.into_sorted().map(|(_, path, commits, added, removed)| HotFile {
        path: printable(&path),
        commits,
        added,
        removed,
    });
    hot.collect()
}

fn directories(pairs: Tally<u64>, people: &[(Box<[u8]>, Person)]) -> Vec<Directory> {
    let mut by_path: BTreeMap<Vec<u8>, Vec<(u64, &Person)>> = BTreeMap::new();
    for (pair, changes) in pairs.into_sorted() {
        let Some(nul) = pair.iter().position(|byte| *byte == 0) else {
            continue;
        };
        let (path, email) = (&pair[..nul], &pair[nul + 1..]);
        // A person dropped at the bound has no name any more; the drop itself is counted.
        let Ok(found) = people.binary_search_by(|(known, _)| known.as_ref().cmp(email)) else {
            continue;
        };
        by_path
            .entry(path.to_vec())
            .or_default()
            .push((changes, &people[found].1));
    }
    let mut best = Best::new(DIRECTORIES_MAX);
    for (path, owners) in &by_path {
        let changes: u64 = owners.iter().map(|(changes, _)| changes).sum();
        best.offer((Reverse(changes), path));
    }
    let directories = best.into_sorted().map(|(Reverse(changes), path)| {
        let owners = by_path.get(path).map_or(&[][..], Vec::as_slice);
        Directory {
            path: if path.is_empty() {
                ".".to_owned()
            } else {
                printable(path)
            },
            changes,
            authors: u64::try_from(owners.len()).unwrap_or(u64::MAX),
            shares: shares(owners.iter().copied(), DIRECTORY_SHARES_MAX),
        }
    });
    directories.collect()
}

fn shares<'a>(people: impl Iterator<Item = (u64, &'a Person)>, max: usize) -> Vec<Share> {
    let mut best = Best::new(max);
    for (at, (changes, person)) in people.enumerate() {
        best.offer((Reverse(changes), &person.name, at, person.commits));
    }
    let shares = best.into_sorted().map(|(Reverse(changes), name, _, commits)| Share {
        name: printable(name),
        commits,
        changes,
    });
    shares.collect()
}

/// The directory of a path, at most two levels deep.
fn two_levels(path: &[u8]) -> &[u8] {
    let directory = directory(path);
    let second = directory.iter().enumerate().filter(|(_, byte)| **byte == b'/').nth(1);
    second.map_or(directory, |(slash, _)| &directory[..slash])
}
