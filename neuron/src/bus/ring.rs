use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{limits, store::Row};

/// The most recent rows, so that live subscriptions need not read the file. Where other processes commit too it has
/// holes, until their rows are read.
#[derive(Debug)]
pub(crate) struct Ring(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    rows: VecDeque<Option<Arc<Row>>>,
    /// The `pos` of the first place.
    first: u64,
    bytes: usize,
}

impl State {
    /// One past the last place.
    fn end(&self) -> u64 {
        self.first + self.rows.len() as u64
    }

    fn put(&mut self, row: &Arc<Row>) {
        if self.rows.is_empty() || row.pos >= self.end() + limits::RING_MAX as u64 {
            self.rows.clear();
            (self.first, self.bytes) = (row.pos, 0);
        }
        let Some(place) = row.pos.checked_sub(self.first) else {
            return;
        };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if place >= self.rows.len() {
            self.rows.resize(place + 1, None);
        }
        if self.rows[place].replace(row.clone()).is_none() {
            self.bytes += row.record.len();
        }
        while self.rows.len() > limits::RING_MAX || self.bytes > limits::RING_BYTES_MAX {
            let gone = self.rows.pop_front().flatten();
            self.bytes -= gone.map_or(0, |row| row.record.len());
            self.first += 1;
        }
    }
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Takes rows in, in any order.
    pub(crate) fn put(&self, rows: &[Arc<Row>]) {
        let mut state = self.state();
        for row in rows {
            state.put(row);
        }
    }

    /// The rows from `from` on, at most to `to` and at most a page; `None` if it does not hold the first.
    pub(crate) fn rows(&self, from: u64, to: u64) -> Option<Vec<Arc<Row>>> {
        let state = self.state();
        let skipped = usize::try_from(from.checked_sub(state.first)?).ok()?;
        let count = usize::try_from(to + 1 - from).unwrap_or(usize::MAX);
        let rows = state.rows.iter().skip(skipped).take(count.min(limits::PAGE_MAX));
        let rows: Vec<_> = rows.map_while(Clone::clone).collect();
        (!rows.is_empty()).then_some(rows)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::{collection::vec, prelude::*};

    use super::Ring;
    use crate::{Digest, Millis, Topic, envelope::Kind, limits, store::Row};

    fn row(pos: u64, bytes: usize) -> Arc<Row> {
        Arc::new(Row {
            pos,
            topic: Topic::new("ring.x").unwrap(),
            seq: pos,
            kind: Kind::new("said").unwrap(),
            at: Millis(0),
            cause: None,
            key: None,
            idempotency: None,
            id: Digest::content(b""),
            record: "x".repeat(bytes).into(),
        })
    }

    proptest! {
        #[test]
        fn it_gives_only_what_it_was_given_without_gaps_and_from_where_it_was_asked(
            given in vec(1_u64..60, 0..80), from in 1_u64..60, more in 0_u64..60,
        ) {
            let ring = Ring::new();
            for pos in &given {
                ring.put(&[row(*pos, 10)]);
            }
            let rows = ring.rows(from, from + more).unwrap_or_default();
            let places: Vec<u64> = rows.iter().map(|row| row.pos).collect();
            prop_assert_eq!(&places, &(from..from + rows.len() as u64).collect::<Vec<_>>());
            prop_assert!(places.iter().all(|pos| given.contains(pos) && *pos <= from + more));
            // What it was given after its first place it still has.
            let reaches = given.first().is_some_and(|first| from >= *first) && given.contains(&from);
            prop_assert_eq!(!rows.is_empty(), reaches);
        }
    }

    #[test]
    fn it_holds_so_many_rows_and_so_many_bytes_and_lets_the_oldest_go() {
        let ring = Ring::new();
        let last = limits::RING_MAX as u64 + 10;
        (1..=last).for_each(|pos| ring.put(&[row(pos, 1)]));
        assert!(ring.rows(10, last).is_none() && ring.rows(11, last).is_some());
        let large = limits::RING_BYTES_MAX / 4;
        (last + 1..last + 10).for_each(|pos| ring.put(&[row(pos, large)]));
        assert!(ring.rows(last + 5, last + 10).is_none());
        assert_eq!(ring.rows(last + 6, last + 10).unwrap().len(), 4);
        // Far ahead it begins anew.
        ring.put(&[row(last * 3, 1)]);
        assert_eq!(ring.rows(last * 3, last * 3).unwrap().len(), 1);
        assert!(ring.rows(last + 7, last * 3).is_none());
    }
}
