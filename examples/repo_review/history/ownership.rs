//! How many people hold the knowledge: the bus factor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Share, Walk};

/// Authors that are shown.
const OWNERS_MAX: usize = 8;

/// Who made the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Ownership {
    /// People, told apart by their address.
    pub(crate) authors: u64,
    /// The smallest number of people who made half of the changes; programs (`…[bot]`) are not people. 0 if nobody
    /// changed anything.
    pub(crate) bus_factor: u64,
    /// Changes that programs made.
    pub(crate) bot_changes: u64,
    /// The people with the most changes.
    pub(crate) owners: Vec<Owner>,
    /// The most changed directories.
    pub(crate) directories: Vec<DirectoryShare>,
}

/// A person's part of all changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Owner {
    /// The name.
    pub(crate) name: String,
    /// Commits.
    pub(crate) commits: u64,
    /// File changes.
    pub(crate) changes: u64,
}

/// A directory and how many people hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DirectoryShare {
    /// Its path; `.` for the files at the root.
    pub(crate) path: String,
    /// File changes in it.
    pub(crate) changes: u64,
    /// How many people made them.
    pub(crate) authors: u64,
    /// The smallest number of people who made half of them.
    pub(crate) bus_factor: u64,
    /// Who made the most.
    pub(crate) first: String,
}

/// Finds the bus factors of a walk.
pub(crate) fn measure(walk: &Walk) -> Ownership {
    let bot_changes = walk
        .shares
        .iter()
        .filter(|share| is_bot(share))
        .map(|share| share.changes)
        .sum();
    let people = walk.shares.iter().filter(|share| !is_bot(share));
    let owners = people.take(OWNERS_MAX).map(|share| Owner {
        name: share.name.clone(),
        commits: share.commits,
        changes: share.changes,
    });
    let directories = walk.directories.iter().map(|directory| DirectoryShare {
        path: directory.path.clone(),
        changes: directory.changes,
        authors: directory.authors,
        bus_factor: bus_factor(&directory.shares, directory.changes),
        first: directory
            .shares
            .first()
            .map_or_else(String::new, |share| share.name.clone()),
    });
    Ownership {
        authors: walk.authors,
        bus_factor: bus_factor(&walk.shares, walk.changes),
        bot_changes,
        owners: owners.collect(),
        directories: directories.collect(),
    }
}

/// The smallest number of people who made half of `changes`; `shares` are sorted, largest first. A list that ends
/// before the half gives one more than its length: "more than that".
fn bus_factor(shares: &[Share], changes: u64) -> u64 {
    let bots: u64 = shares
        .iter()
        .filter(|share| is_bot(share))
        .map(|share| share.changes)
        .sum();
    let half = (changes - bots.min(changes)).div_ceil(2);
    let mut held = 0;
    let mut people = 0;
    for share in shares.iter().filter(|share| !is_bot(share)) {
        if held >= half {
            return people;
        }
        held += share.changes;
        people += 1;
    }
    if held >= half { people } else { people + 1 }
}

fn is_bot(share: &Share) -> bool {
    share.name.ends_with("[bot]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(changes: &[u64]) -> Vec<Share> {
        let share = |(at, changes): (usize, &u64)| Share {
            name: format!("p{at}"),
            commits: 1,
            changes: *changes,
        };
        changes.iter().enumerate().map(share).collect()
    }

    #[test]
    fn the_bus_factor_is_the_fewest_people_with_half_of_the_changes() {
        assert_eq!(bus_factor(&shares(&[50, 30, 20]), 100), 1);
        assert_eq!(bus_factor(&shares(&[40, 30, 30]), 100), 2);
        assert_eq!(bus_factor(&shares(&[1, 1, 1, 1, 1]), 5), 3);
        assert_eq!(bus_factor(&[], 0), 0);
    }

    #[test]
    fn programs_are_not_people() {
        let mut all = shares(&[90, 6, 4]);
        all[0].name = "renovate[bot]".into();
        assert_eq!(bus_factor(&all, 100), 1);
    }

    #[test]
    fn a_cut_list_never_claims_fewer_people_than_there_are() {
        assert_eq!(bus_factor(&shares(&[1, 1]), 1000), 3);
    }
}
