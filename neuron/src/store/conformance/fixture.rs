use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::{
    Append, Author, Clock as _, Draft, Envelope, Error, ErrorKind, Json, ManualClock, Millis, Receipt, Result, Topic,
    store::{Batch, Fault, Observer, Point, Range, Row, Select, Store},
};

/// What a store under test is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The clock of its envelopes.
    pub clock: Arc<ManualClock>,
    /// What breaks its commits.
    pub fault: Arc<Breaker>,
}

/// Makes the next commit fail when it is asked to, and counts the others.
#[derive(Debug, Default)]
pub struct Breaker {
    armed: AtomicBool,
    commits: AtomicUsize,
}

impl Breaker {
    /// The next commit fails.
    pub fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// No commit fails any more.
    pub fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }

    /// How many commits were made.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }
}

impl Fault for Breaker {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == Point::BeforeCommit && self.armed.swap(false, Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Full, "the disk is full, says the test"));
        }
        if point == Point::AfterCommit {
            self.commits.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// Brings an append into the form that a store takes, without a ledger: topics and payloads are not checked.
///
/// # Errors
/// As the ledger's append, for what can be seen in the drafts.
pub fn batch(append: Append, now: Millis) -> Result<Batch, Error> {
    append.prepare(Vec::new(), now)
}

/// Shows `see` every row that this process commits to `store`, before the appender is told.
///
/// Dropping what it gives ends that.
#[must_use]
pub fn observe(store: &dyn Store, see: impl Fn(&Row) + Send + Sync + 'static) -> Arc<dyn Observer> {
    let observer: Arc<dyn Observer> = Arc::new(move |rows: &[Arc<Row>]| rows.iter().for_each(|row| see(row)));
    store.observe(Arc::downgrade(&observer));
    observer
}

pub(super) type Case = (&'static str, fn(&Fixture) -> Result<(), Error>);

/// A store, and what it was made with.
pub(super) struct Fixture {
    pub(super) store: Arc<dyn Store>,
    pub(super) setup: Setup,
}

impl Fixture {
    pub(super) fn new<S: Store>(make: impl Fn(Setup) -> Result<S, Error>) -> Result<Self, Error> {
        let setup = Setup {
            clock: Arc::new(ManualClock::at(Millis(1_790_000_000_000))),
            fault: Arc::default(),
        };
        Ok(Self {
            store: Arc::new(make(setup.clone())?),
            setup,
        })
    }

    pub(super) fn batch(&self, append: Append) -> Result<Batch, Error> {
        batch(append, self.setup.clock.now())
    }

    pub(super) fn append(&self, append: Append) -> Result<Vec<Receipt>, Error> {
        self.store.append_blocking(self.batch(append)?)
    }

    pub(super) fn one(&self, draft: Draft) -> Result<Receipt, Error> {
        let mut receipts = self.append(Append::of([draft]))?;
        receipts.pop().ok_or_else(|| wrong("there is no receipt"))
    }

    /// Every row, page by page.
    pub(super) fn rows(&self) -> Result<Vec<Row>, Error> {
        let (mut rows, mut range) = (Vec::new(), Range::ALL);
        loop {
            let page = self.store.page(&Select::All, range)?;
            rows.extend(page.rows);
            match page.next {
                Some(next) => range.from = next,
                None => return Ok(rows),
            }
        }
    }

    pub(super) fn envelope(&self, receipt: &Receipt) -> Result<Envelope, Error> {
        let row = self.store.row(&receipt.topic, receipt.seq)?;
        row.ok_or_else(|| wrong("an envelope with a receipt is not in the store"))?
            .envelope()
    }
}

/// What is seen by callbacks, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub(super) fn push(&self, what: impl fmt::Display) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(what.to_string());
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) fn topic(name: &str) -> Result<Topic, Error> {
    Topic::new(name)
}

pub(super) fn draft(name: &str, kind: &str, text: &str) -> Result<Draft, Error> {
    Ok(Draft::new(Topic::new(name)?, Author::cli(), kind)?.json(Json::of(text)?, None))
}

pub(super) fn wrong(what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Failed, what)
}

/// Two things that must be the same.
pub(super) fn same<T: fmt::Debug + PartialEq>(what: &str, found: &T, wanted: &T) -> Result<(), Error> {
    if found == wanted {
        return Ok(());
    }
    Err(wrong(format!("{what}: found {found:?}, wanted {wanted:?}")))
}

/// A refusal of one kind.
pub(super) fn refused<T: fmt::Debug>(outcome: Result<T, Error>, kind: ErrorKind) -> Result<Error, Error> {
    match outcome {
        Err(error) if error.kind() == kind => Ok(error),
        other => Err(wrong(format!("wanted a refusal of kind {kind:?}, found {other:?}"))),
    }
}
