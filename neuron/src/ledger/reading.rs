use std::{collections::VecDeque, sync::Arc};

use futures::{Stream, TryStreamExt as _, stream};

use super::Ledger;
use crate::{
    Envelope, Error, ErrorKind, Fold, Millis, Result,
    fold::Folded,
    limits,
    store::{Page, Range, Row, Select, Store},
};

/// A query: which envelopes, from where to where, in which direction. Memory stays constant however much it yields.
///
/// The four verbs are this with a [`Select`] by topic, by type, by time ([`Reading::since`], [`Reading::until`]) or by
/// causality ([`Ledger::walk`]).
#[derive(Clone, Debug)]
pub struct Reading {
    store: Arc<dyn Store>,
    select: Select,
    range: Range,
    left: Option<u64>,
}

impl Ledger {
    /// Reads what is selected, oldest first unless said otherwise.
    ///
    /// ```
    /// # use neuron::{Ledger, Topic, store::Select};
    /// # fn show(ledger: &Ledger) -> Result<(), neuron::Error> {
    /// let notes = Topic::new("notes.today")?;
    /// for envelope in ledger.read(Select::Topic(notes)).newest_first().limit(10).envelopes() {
    ///     println!("{}", envelope?.id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, select: Select) -> Reading {
        Reading {
            store: self.0.store.clone(),
            select,
            range: Range::ALL,
            left: None,
        }
    }

    /// Folds what the fold selects, up to and with `upto` (a `pos`); `None` = to now. Blocks.
    ///
    /// # Errors
    /// The first unreadable envelope, or what the fold says.
    pub fn fold<F: Fold>(&self, fold: &F, upto: Option<u64>) -> Result<Folded<F::State>, Error> {
        let mut folded = Folded::start(fold);
        self.fold_on(fold, &mut folded, upto)?;
        Ok(folded)
    }

    /// Takes a fold further, from where it stands. Blocks.
    ///
    /// # Errors
    /// As [`Ledger::fold`].
    pub fn fold_on<F: Fold>(&self, fold: &F, folded: &mut Folded<F::State>, upto: Option<u64>) -> Result<(), Error> {
        let reading = self
            .read(fold.select())
            .from(folded.upto + 1)
            .to(upto.unwrap_or(u64::MAX));
        folded.resume(fold, reading.envelopes())
    }

    /// Folds to a moment: the state the store had then. Blocks.
    ///
    /// # Errors
    /// As [`Ledger::fold`].
    pub fn fold_at<F: Fold>(&self, fold: &F, time: Millis) -> Result<Folded<F::State>, Error> {
        let upto = last_by(&*self.0.store, time)?;
        self.fold(fold, Some(upto))
    }
}

impl Reading {
    /// Begins at this `pos`.
    #[must_use]
    pub fn from(mut self, pos: u64) -> Self {
        self.range.from = pos;
        self
    }

    /// Ends with this `pos`.
    #[must_use]
    pub fn to(mut self, pos: u64) -> Self {
        self.range.to = pos;
        self
    }

    /// Begins with the first envelope committed at or after `time`.
    ///
    /// # Errors
    /// A kind of the disk.
    pub fn since(self, time: Millis) -> Result<Self, Error> {
        let before = last_by(&*self.store, Millis(time.0.saturating_sub(1)))?;
        Ok(self.from(before + 1))
    }

    /// Ends with the last envelope committed at or before `time`.
    ///
    /// # Errors
    /// A kind of the disk.
    pub fn until(self, time: Millis) -> Result<Self, Error> {
        let last = last_by(&*self.store, time)?;
        Ok(self.to(last))
    }

    /// Newest first.
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.range.reverse = true;
        self
    }

    /// At most this many.
    #[must_use]
    pub fn limit(mut self, count: u64) -> Self {
        self.left = Some(count);
        self
    }

    /// The next page; empty at the end. Blocks for the length of one page.
    ///
    /// # Errors
    /// A kind of the disk, or [`ErrorKind::Corrupt`].
    pub fn page(&mut self) -> Result<Vec<Row>, Error> {
        loop {
            let left = self.left.unwrap_or(u64::MAX);
            if left == 0 || self.range.from > self.range.to {
                return Ok(Vec::new());
            }
            let limit = usize::try_from(left).unwrap_or(usize::MAX).min(limits::PAGE_MAX);
            let Page { rows, next } = self.store.page(&self.select, Range { limit, ..self.range })?;
            match next {
                Some(next) if self.range.reverse => self.range.to = next,
                Some(next) => self.range.from = next,
                None => self.left = Some(0),
            }
            if next.is_some() {
                self.left = self.left.map(|left| left - rows.len() as u64);
            }
            // A store may pass over many envelopes of others and end a page without a row: that is not the end.
            if next.is_none() || !rows.is_empty() {
                return Ok(rows);
            }
        }
    }

    /// The envelopes, page by page. Blocks for the length of a page now and then.
    pub fn envelopes(mut self) -> impl Iterator<Item = Result<Envelope, Error>> {
        let mut page = VecDeque::new();
        let mut ended = false;
        std::iter::from_fn(move || {
            if page.is_empty() && !ended {
                match self.page() {
                    Ok(rows) => page.extend(rows),
                    Err(error) => {
                        ended = true;
                        return Some(Err(error));
                    }
                }
            }
            page.pop_front().map(|row: Row| row.envelope())
        })
    }

    /// The envelopes as a stream whose pages are read on threads that may block.
    pub fn stream(self) -> impl Stream<Item = Result<Envelope, Error>> {
        let pages = stream::try_unfold(self, |mut reading| async move {
            let read = tokio::task::spawn_blocking(move || reading.page().map(|rows| (rows, reading))).await;
            let (rows, reading) = read.map_err(|error| Error::new(ErrorKind::Io, error))??;
            Ok::<_, Error>((!rows.is_empty()).then_some((rows, reading)))
        });
        pages
            .map_ok(|rows| stream::iter(rows.into_iter().map(|row| row.envelope())))
            .try_flatten()
    }
}

/// The last `pos` whose `at` is not later than `time`: `at` never falls, so a binary search finds it.
fn last_by(store: &dyn Store, time: Millis) -> Result<u64, Error> {
    let (mut low, mut high) = (0, store.last()?.0);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let range = Range {
            from: middle,
            to: middle,
            reverse: false,
            limit: 1,
        };
        let at = store.page(&Select::All, range)?.rows.first().map(|row| row.at);
        if at.is_some_and(|at| at <= time) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(low)
}
