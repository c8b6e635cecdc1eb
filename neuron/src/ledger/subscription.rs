use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{Ledger, live::Wait, reading::last_by};
use crate::{
    Envelope, Error, Millis, Pattern, Result,
    store::{Range, Row, Select, gapless},
};

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// With the first envelope of the store.
    Start,
    /// After the last envelope that stands now.
    Now,
    /// After this `pos`.
    After(u64),
    /// With the first envelope committed so long ago or later, by the clock that stamps envelopes.
    Ago(Duration),
}

/// A durable subscription: a cursor over the log. It catches up, then goes on live, without gap and without an unbounded
/// buffer; commits of other processes are seen within 50 ms. A commit wakes it only if it may hold something for it.
pub struct Subscription {
    ledger: Ledger,
    pattern: Pattern,
    select: Select,
    next: u64,
    tail: watch::Receiver<u64>,
    wait: Wait,
    page: VecDeque<Arc<Row>>,
}

impl Ledger {
    /// Subscribes to the durable topics that match.
    ///
    /// # Errors
    /// A kind of the disk.
    pub fn subscribe(&self, pattern: Pattern, from: From) -> Result<Subscription, Error> {
        let tail = self.0.store.tail();
        let wait = self.0.live.wait_for(&pattern, *tail.borrow());
        let next = self.position(from)?.saturating_add(1);
        let select = pattern
            .literal()
            .map_or_else(|| Select::Pattern(pattern.clone()), Select::Topic);
        Ok(Subscription {
            ledger: self.clone(),
            pattern,
            select,
            next,
            tail,
            wait,
            page: VecDeque::new(),
        })
    }

    /// The `pos` after which something begins that begins there now.
    ///
    /// # Errors
    /// A kind of the disk.
    pub fn position(&self, from: From) -> Result<u64, Error> {
        match from {
            From::Start => Ok(0),
            From::Now => Ok(self.0.store.last()?.0),
            From::After(pos) => Ok(pos),
            From::Ago(span) => {
                let ago = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
                let before = self.0.clock.now().0.saturating_sub(ago).saturating_sub(1);
                last_by(&*self.0.store, Millis(before))
            }
        }
    }
}

impl Subscription {
    /// The next envelope. Dropping the future loses nothing.
    ///
    /// # Errors
    /// A kind of the disk, or [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt).
    pub async fn next(&mut self) -> Result<Envelope, Error> {
        loop {
            if let Some(row) = self.page.pop_front() {
                return row.envelope();
            }
            let due = self.wait.due();
            if self.next <= due {
                // What is due is committed, also where the tail does not say so yet.
                let tail = due.max(*self.tail.borrow());
                self.read(tail)?;
            } else {
                self.wait.changed().await;
            }
        }
    }

    /// The next envelope that stands already; `None` once the cursor is at the end.
    ///
    /// # Errors
    /// As [`Subscription::next`].
    pub fn try_next(&mut self) -> Result<Option<Envelope>, Error> {
        loop {
            if let Some(row) = self.page.pop_front() {
                return row.envelope().map(Some);
            }
            // First the tail: what is due by then is not passed over.
            let tail = *self.tail.borrow();
            if let Some(passed) = self.wait.passed(self.next) {
                self.next = self.next.max(passed + 1);
            }
            let tail = tail.max(self.wait.due());
            if self.next > tail {
                return Ok(None);
            }
            self.read(tail)?;
        }
    }

    /// The `pos` up to which everything that matches has been delivered. It moves on while nothing comes that matches,
    /// although nothing wakes the subscription then.
    pub fn position(&self) -> u64 {
        match self.page.front() {
            Some(row) => row.pos - 1,
            None => self.wait.passed(self.next).unwrap_or(0).max(self.next - 1),
        }
    }

    fn read(&mut self, tail: u64) -> Result<(), Error> {
        if let Some(rows) = self.ledger.0.live.ring.rows(self.next, tail) {
            self.next = rows.last().map_or(self.next, |row| row.pos + 1);
            self.page
                .extend(rows.into_iter().filter(|row| self.pattern.matches(&row.topic)));
            return Ok(());
        }
        let range = Range {
            from: self.next,
            to: tail,
            ..Range::ALL
        };
        let page = gapless::page(&*self.ledger.0.store, &self.select, range)?;
        self.next = page.next.unwrap_or(tail + 1);
        self.page.extend(page.rows.into_iter().map(Arc::new));
        Ok(())
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pattern, next, .. } = self;
        f.debug_struct("Subscription")
            .field("pattern", pattern)
            .field("next", next)
            .finish_non_exhaustive()
    }
}
