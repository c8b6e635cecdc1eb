//! Collections that cannot outgrow their bound: the best few, and counts by name.

use std::collections::{BTreeSet, HashMap};

/// The `max` smallest values seen, in order. What does not fit is counted, never silently lost.
#[derive(Debug)]
pub(crate) struct Best<T> {
    kept: BTreeSet<T>,
    max: usize,
    seen: u64,
}

impl<T: Ord> Best<T> {
    /// Keeps at most `max` values.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            kept: BTreeSet::new(),
            max,
            seen: 0,
        }
    }

    /// Offers a value.
    pub(crate) fn offer(&mut self, value: T) {
        self.seen += 1;
        self.kept.insert(value);
        if self.kept.len() > self.max {
            self.kept.pop_last();
        }
    }

    /// How many values were offered.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// The values kept, smallest first.
    pub(crate) fn into_sorted(self) -> impl Iterator<Item = T> {
        self.kept.into_iter()
    }
}

/// What a [`Tally`] counts: its weight decides who stays when the bound is reached.
pub(crate) trait Weight: Default {
    /// The weight; the heaviest stay.
    fn weight(&self) -> u64;
}

impl Weight for u64 {
    fn weight(&self) -> u64 {
        *self
    }
}

/// Counts by name, for at most `max` names (lossy counting).
///
/// When one more name would not fit, the lighter half is dropped and counted in [`pruned`](Self::pruned); a dropped
/// name that comes back starts again at nothing. So the memory is bounded by `max` names, and a name's count is
/// exact unless it was once among the light half of a full table. Below the bound every count is exact.
#[derive(Debug)]
pub(crate) struct Tally<V> {
    counts: HashMap<Box<[u8]>, V>,
    max: usize,
    pruned: u64,
}

impl<V: Weight> Tally<V> {
    /// Counts at most `max` names.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            counts: HashMap::new(),
            max,
            pruned: 0,
        }
    }

    /// Changes the count of `name`.
    pub(crate) fn change(&mut self, name: &[u8], change: impl FnOnce(&mut V)) {
        // Looked up first: nearly every name is known already, and then nothing is allocated.
        if let Some(value) = self.counts.get_mut(name) {
            return change(value);
        }
        if self.counts.len() >= self.max {
            self.prune();
        }
        change(self.counts.entry(name.into()).or_default());
    }

    /// How many names were dropped at the bound.
    pub(crate) fn pruned(&self) -> u64 {
        self.pruned
    }

    /// How many names are counted.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// The names and their counts, in the order of the names' bytes.
    pub(crate) fn into_sorted(self) -> Vec<(Box<[u8]>, V)> {
        let mut all: Vec<_> = self.counts.into_iter().collect();
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn prune(&mut self) {
        let keep = self.max / 2;
        let mut all: Vec<_> = std::mem::take(&mut self.counts).into_iter().collect();
        // By weight and then by name: a hash map's own order would differ from process to process.
        all.sort_unstable_by(|a, b| b.1.weight().cmp(&a.1.weight()).then_with(|| a.0.cmp(&b.0)));
        self.pruned += u64::try_from(all.len().saturating_sub(keep)).unwrap_or(u64::MAX);
        all.truncate(keep);
        self.counts = all.into_iter().collect();
    }
}

/// `part` of `whole` in thousandths, rounded down; 0 of nothing is 0.
pub(crate) fn permille(part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    let permille = u128::from(part) * 1000 / u128::from(whole);
    u64::try_from(permille).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_smallest_values_stay_and_all_are_counted() {
        let mut best = Best::new(3);
        for value in [5, 1, 9, 3, 7] {
            best.offer(value);
        }
        assert_eq!(best.seen(), 5);
        assert_eq!(best.into_sorted().collect::<Vec<_>>(), [1, 3, 5]);
    }

    #[test]
    fn a_full_tally_keeps_the_heavy_names_and_says_how_many_it_dropped() {
        let mut tally: Tally<u64> = Tally::new(10);
        for round in 0..3 {
            for name in 0..5_u8 {
                tally.change(&[name], |count| *count += 10 + round);
            }
        }
        for name in 100..200_u8 {
            tally.change(&[name], |count| *count += 1);
        }
        assert!(tally.len() <= 10);
        assert!(tally.pruned() > 0);
        let sorted = tally.into_sorted();
        let heavy: Vec<_> = sorted
            .iter()
            .filter(|(_, count)| *count == 33)
            .map(|(name, _)| name[0])
            .collect();
        assert_eq!(heavy, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn thousandths_never_overflow_and_nothing_is_zero() {
        assert_eq!(permille(1, 3), 333);
        assert_eq!(permille(u64::MAX, u64::MAX), 1000);
        assert_eq!(permille(7, 0), 0);
    }
}
