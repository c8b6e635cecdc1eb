//! The manifests, side by side.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{AtOdds, Dependencies, Format, Manifest, ManifestRow, Manifests, long};

/// Manifests that are shown.
const SHOWN_MAX: usize = 20;
/// Names of dependencies that are shown in one place.
const NAMES_MAX: usize = 8;

/// Lays the manifests side by side.
pub(crate) fn compare(manifests: &Manifests, read: &[Manifest]) -> Dependencies {
    let mut required: BTreeMap<(Format, &str), BTreeSet<&str>> = BTreeMap::new();
    for manifest in read {
        for (name, requirement) in &manifest.requirements {
            required
                .entry((manifest.file.format, name))
                .or_default()
                .insert(requirement);
        }
    }
    let at_odds: Vec<_> = required.iter().filter(|(_, all)| all.len() > 1).collect();
    let first = at_odds.iter().take(NAMES_MAX).map(|((_, name), all)| AtOdds {
        name: (*name).to_owned(),
        requirements: all.iter().take(NAMES_MAX).map(|one| (*one).to_owned()).collect(),
    });
    let total = |count: fn(&Manifest) -> usize| read.iter().map(|manifest| long(count(manifest))).sum();
    Dependencies {
        manifests: long(read.len()),
        more: manifests.more,
        vendored: manifests.vendored,
        direct: long(required.len()),
        shown: rows(read),
        malformed: long(read.iter().filter(|manifest| manifest.malformed.is_some()).count()),
        unlocked: long(read.iter().filter(|manifest| manifest.is_unlocked()).count()),
        unpinned: total(|manifest| manifest.unpinned.len()),
        twice: total(|manifest| manifest.twice.len()),
        at_odds: long(at_odds.len()),
        first_at_odds: first.collect(),
    }
}

impl Manifest {
    fn is_unlocked(&self) -> bool {
        self.direct > 0 && self.file.lock.is_none() && !self.file.format.locks().is_empty()
    }
}

fn rows(read: &[Manifest]) -> Vec<ManifestRow> {
    let mut sorted: Vec<_> = read.iter().collect();
    sorted.sort_by_key(|manifest| {
        let wrong = manifest.malformed.is_some() || !manifest.twice.is_empty();
        (!wrong, Reverse(manifest.direct), &manifest.file.path)
    });
    let row = |manifest: &Manifest| ManifestRow {
        path: manifest.file.path.clone(),
        malformed: manifest.malformed.clone(),
        direct: manifest.direct,
        development: manifest.development,
        lock: manifest.file.lock.clone(),
        lockable: !manifest.file.format.locks().is_empty(),
        unpinned: manifest.unpinned.iter().take(NAMES_MAX).cloned().collect(),
        twice: manifest.twice.iter().take(NAMES_MAX).cloned().collect(),
    };
    sorted.into_iter().take(SHOWN_MAX).map(row).collect()
}
