use std::{collections::VecDeque, sync::Arc};

use futures::{Stream, TryStreamExt as _, stream};

use super::Ledger;
use crate::{
    Envelope, Error, ErrorKind, Millis, Result, limits,
    pipeline::Pipeline,
    store::{AsOf, Page, Range, Row, Select, Store, gapless},
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
    checked: bool,
}

impl Ledger {
    /// Reads what is selected, oldest first unless said otherwise.
    ///
    /// ```
    /// # use neuron::{Ledger, Topic, store::Select};
    /// # fn show(ledger: &Ledger) -> Result<(), neuron::Error> {
    /// let notes = Topic::new("notes.today")?;
    /// for envelope in ledger.read(Select::Topic(notes)).newest_first().limit(10).envelopes() {
    ///     println!("{}", envelope?.id());
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
            checked: false,
        }
    }
}

/// Time travel.
impl Ledger {
    /// The ledger as it stood when `pos` was its last envelope: every verb and every fold answers as it did then, nothing
    /// can be appended, nothing ever comes.
    ///
    /// ```
    /// # use neuron::{Append, Author, Contract, Draft, Ledger, Pattern, Topic, store::{Options, Select}};
    /// # let folder = tempfile::tempdir()?;
    /// # let ledger = Ledger::open(folder.path().join("notes.db"), Options::default())?;
    /// # let topic = Topic::new("notes")?;
    /// # futures::executor::block_on(ledger.declare(&Pattern::exactly(&topic), Contract::Durable, &Author::cli()))?;
    /// # let note = || Draft::new(topic.clone(), Author::cli(), "note.taken");
    /// let first = ledger.append_blocking(Append::of([note()?]))?.remove(0);
    /// ledger.append_blocking(Append::of([note()?]))?;
    /// let then = ledger.as_of(first.pos)?;
    /// assert_eq!(then.read(Select::Topic(topic.clone())).envelopes().count(), 1);
    /// # Ok::<(), neuron::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// As [`AsOf::new`].
    pub fn as_of(&self, pos: u64) -> Result<Self, Error> {
        let then = Arc::new(AsOf::new(self.0.store.clone(), pos)?);
        Self::over(then, self.0.clock.clone(), Pipeline::default())
    }

    /// As [`Ledger::as_of`], by time: what was committed at or before it.
    ///
    /// # Errors
    /// A kind of the disk.
    pub fn as_of_time(&self, time: Millis) -> Result<Self, Error> {
        self.as_of(last_by(&*self.0.store, time)?)
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

    /// Compares each envelope with its id, and with the place at which it was found. Whoever acts on what the log says
    /// reads it so; damage is then [`ErrorKind::Corrupt`], naming topic and seq.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.checked = true;
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
            let Page { rows, next } = gapless::page(&*self.store, &self.select, Range { limit, ..self.range })?;
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
        let open = opener(self.checked);
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
            page.pop_front().map(|row| open(&row))
        })
    }

    /// The envelopes as a stream whose pages are read on threads that may block.
    pub fn stream(self) -> impl Stream<Item = Result<Envelope, Error>> {
        let open = opener(self.checked);
        let pages = stream::try_unfold(self, |mut reading| async move {
            let read = tokio::task::spawn_blocking(move || reading.page().map(|rows| (rows, reading))).await;
            let (rows, reading) = read.map_err(|error| Error::new(ErrorKind::Io, error))??;
            Ok::<_, Error>((!rows.is_empty()).then_some((rows, reading)))
        });
        pages
            .map_ok(move |rows| stream::iter(rows.into_iter().map(move |row| open(&row))))
            .try_flatten()
    }
}

fn opener(checked: bool) -> fn(&Row) -> Result<Envelope, Error> {
    if checked { Row::checked } else { Row::envelope }
}

/// The last `pos` whose `at` is not later than `time`: `at` never falls, so a binary search finds it.
pub(super) fn last_by(store: &dyn Store, time: Millis) -> Result<u64, Error> {
    let (mut low, mut high) = (0, store.last()?.0);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        // The last that stands there or before it: an archive has holes.
        let range = Range {
            from: 1,
            to: middle,
            reverse: true,
            limit: 1,
        };
        let at = store.page(&Select::All, range)?.rows.first().map(|row| row.at);
        if at.is_none_or(|at| at <= time) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(low)
}
