use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{limits, store::Row};

/// The most recent rows that this process committed, without gaps, so that live subscriptions need not read the file.
#[derive(Debug)]
pub(crate) struct Ring(Mutex<State>);

#[derive(Debug)]
struct State {
    rows: VecDeque<Arc<Row>>,
    last: u64,
}

impl Ring {
    /// A ring of a store whose last row stands at `last`.
    pub(crate) fn new(last: u64) -> Self {
        Self(Mutex::new(State {
            rows: VecDeque::new(),
            last,
        }))
    }

    pub(crate) fn push(&self, rows: &[Arc<Row>]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            if row.pos != state.last + 1 {
                // Another process committed in between: what is older no longer joins on.
                state.rows.clear();
            }
            state.last = row.pos;
            state.rows.push_back(row.clone());
        }
        let surplus = state.rows.len().saturating_sub(limits::RING_MAX);
        state.rows.drain(..surplus);
    }

    /// The rows from `from` to `to`, at most a page; `None` if the ring does not hold all of them.
    pub(crate) fn rows(&self, from: u64, to: u64) -> Option<Vec<Arc<Row>>> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = state.rows.front()?.pos;
        if from < first || to > state.last {
            return None;
        }
        let skipped = usize::try_from(from - first).ok()?;
        let count = usize::try_from(to + 1 - from)
            .unwrap_or(usize::MAX)
            .min(limits::PAGE_MAX);
        Some(state.rows.iter().skip(skipped).take(count).cloned().collect())
    }
}
