//! Where the manifests are, and which lock file holds for each.

use std::collections::BTreeSet;

use super::{Format, MANIFESTS_MAX, ManifestFile, Manifests};
use crate::git::{GitError, Kind, Progress, Reader, Subject};
use crate::language::{is_lock, is_vendored};
use crate::name::{base, directory, printable};

/// Lock files that are remembered; no repository has more that matter.
const LOCKS_MAX: usize = 4 * MANIFESTS_MAX;

/// Finds the manifests of a commit.
pub(crate) fn find(reader: &Reader, subject: &Subject, progress: Progress<'_>) -> Result<Manifests, GitError> {
    let Some(commit) = &subject.commit else {
        return Ok(Manifests::default());
    };
    let mut tree = reader.tree(commit)?;
    let mut manifests = Manifests::default();
    let mut locks = BTreeSet::new();
    let mut passed = 0;
    while let Some(entry) = tree.next()? {
        passed += 1;
        progress(passed)?;
        if entry.kind != Kind::File {
            continue;
        }
        if is_lock(entry.path) && locks.len() < LOCKS_MAX {
            locks.insert(printable(entry.path));
        }
        let Some(format) = format(base(entry.path)) else {
            continue;
        };
        if is_vendored(entry.path) {
            manifests.vendored += 1;
        } else if manifests.found.len() >= MANIFESTS_MAX {
            manifests.more += 1;
        } else {
            let (path, blob) = (printable(entry.path), entry.id.to_owned());
            manifests.found.push(ManifestFile {
                path,
                blob,
                format,
                lock: None,
            });
        }
    }
    tree.finish()?;
    // Only now: a lock file may come after its manifest.
    for file in &mut manifests.found {
        file.lock = nearest_lock(file, &locks);
    }
    Ok(manifests)
}

fn format(name: &[u8]) -> Option<Format> {
    Some(match name {
        b"Cargo.toml" => Format::Cargo,
        b"package.json" => Format::Npm,
        b"pyproject.toml" => Format::Pyproject,
        b"Pipfile" => Format::Pipfile,
        b"go.mod" => Format::Go,
        b"pom.xml" => Format::Maven,
        b"Gemfile" => Format::Bundler,
        b"composer.json" => Format::Composer,
        _ if name.starts_with(b"requirements") && name.ends_with(b".txt") => Format::Requirements,
        _ => return None,
    })
}

/// The lock file beside a manifest, or the nearest above it: a workspace has one for all its members.
fn nearest_lock(file: &ManifestFile, locks: &BTreeSet<String>) -> Option<String> {
    let mut within = directory(file.path.as_bytes());
    loop {
        let at = String::from_utf8_lossy(within);
        let slash = if within.is_empty() { "" } else { "/" };
        let beside = file.format.locks().iter().map(|lock| format!("{at}{slash}{lock}"));
        if let Some(lock) = beside.into_iter().find(|lock| locks.contains(lock)) {
            return Some(lock);
        }
        if within.is_empty() {
            return None;
        }
        within = directory(within);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_lock_beside_or_above_holds() {
        let file = |path: &str| ManifestFile {
            path: path.into(),
            blob: String::new(),
            format: Format::Npm,
            lock: None,
        };
        let locks = ["yarn.lock", "a/b/package-lock.json", "x/Cargo.lock"]
            .map(String::from)
            .into();
        assert_eq!(
            nearest_lock(&file("a/b/c/package.json"), &locks).as_deref(),
            Some("a/b/package-lock.json")
        );
        assert_eq!(
            nearest_lock(&file("a/package.json"), &locks).as_deref(),
            Some("yarn.lock")
        );
        assert_eq!(
            nearest_lock(&file("x/package.json"), &BTreeSet::from(["x/Cargo.lock".into()])),
            None
        );
    }
}
