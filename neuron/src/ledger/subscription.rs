use std::{collections::VecDeque, sync::Arc};

use tokio::sync::watch;

use super::Ledger;
use crate::{
    Envelope, Error, ErrorKind, Pattern, Result,
    store::{Range, Row, Select},
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
}

/// A durable subscription: a cursor over the log. It catches up, then goes on live, without gap and without an unbounded
/// buffer; commits of other processes are seen within 50 ms.
pub struct Subscription {
    ledger: Ledger,
    pattern: Pattern,
    select: Select,
    next: u64,
    tail: watch::Receiver<u64>,
    page: VecDeque<Arc<Row>>,
}

impl Ledger {
    /// Subscribes to the durable topics that match.
    ///
    /// # Errors
    /// A kind of the disk.
    pub fn subscribe(&self, pattern: Pattern, from: From) -> Result<Subscription, Error> {
        let next = match from {
            From::Start => 1,
            From::Now => self.0.store.last()?.0 + 1,
            From::After(pos) => pos.saturating_add(1),
        };
        let select = pattern
            .literal()
            .map_or_else(|| Select::Pattern(pattern.clone()), Select::Topic);
        let tail = self.0.store.tail();
        Ok(Subscription {
            ledger: self.clone(),
            pattern,
            select,
            next,
            tail,
            page: VecDeque::new(),
        })
    }
}

impl Subscription {
    /// The next envelope. Dropping the future loses nothing.
    ///
    /// # Errors
    /// A kind of the disk, or [`ErrorKind::Corrupt`].
    pub async fn next(&mut self) -> Result<Envelope, Error> {
        loop {
            if let Some(row) = self.page.pop_front() {
                return row.envelope();
            }
            let tail = *self.tail.borrow_and_update();
            if self.next <= tail {
                self.read(tail)?;
            } else if self.tail.changed().await.is_err() {
                return Err(Error::new(ErrorKind::Io, "the store is closed"));
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
            let tail = *self.tail.borrow_and_update();
            if self.next > tail {
                return Ok(None);
            }
            self.read(tail)?;
        }
    }

    /// The `pos` before which everything that matches has been delivered or waits in this cursor's page.
    pub fn position(&self) -> u64 {
        self.page.front().map_or(self.next, |row| row.pos) - 1
    }

    fn read(&mut self, tail: u64) -> Result<(), Error> {
        if let Some(rows) = self.ledger.0.ring.rows(self.next, tail) {
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
        let page = self.ledger.0.store.page(&self.select, range)?;
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
