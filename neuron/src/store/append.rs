use std::{fmt, sync::Arc};

use super::tables::{Transaction, Work};
use crate::{
    Cause, Deferred, Draft, Error, ErrorKind, Json, Millis, Parent, Receipt, Result, Schema, Topic,
    envelope::{Prepared, bounded},
    limits,
};

/// What must hold for a batch to be written; checked in the write transaction before its first insert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The last `seq` of a topic; 0 = it holds nothing.
    Head(Topic, u64),
    /// The `seq` of the last envelope of a topic with this birth header `key`; `None` = there is none.
    Key(Topic, String, Option<u64>),
    /// The newest epoch of an owned name; 0 = never owned.
    Epoch(String, u64),
}

/// A batch across topics: all of it is written, or nothing.
///
/// ```
/// # use neuron::{Append, Author, Draft, Expectation, Topic};
/// let topic = Topic::new("notes.today")?;
/// let note = Draft::new(topic.clone(), Author::human("ada")?, "note.taken")?.payload(&"buy bread")?;
/// let append = Append::of([note]).expect(Expectation::Head(topic, 0)).idempotency_key("note-1")?;
/// # Ok::<(), neuron::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Append {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) idempotency: Option<String>,
    pub(crate) owner: Option<(String, u64)>,
    pub(crate) then: Then,
    pub(crate) work: Option<Box<Told>>,
}

impl Append {
    /// A batch of these drafts, in this order.
    pub fn of(drafts: impl IntoIterator<Item = Draft>) -> Self {
        Self {
            drafts: drafts.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Adds an expectation.
    #[must_use]
    pub fn expect(mut self, expectation: Expectation) -> Self {
        self.expectations.push(expectation);
        self
    }

    /// Names the batch, for the whole store: a second batch of this name and content gets the first one's receipts.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] unless the key has 1 to 256 bytes.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Result<Self, Error> {
        let key = key.into();
        bounded("idempotency key", &key)?;
        self.idempotency = Some(key);
        Ok(self)
    }

    /// Writes as the owner of `name` under `epoch`: refused as [`ErrorKind::Fenced`] once a newer epoch exists.
    #[must_use]
    pub fn owner(mut self, name: impl Into<String>, epoch: u64) -> Self {
        self.owner = Some((name.into(), epoch));
        self
    }

    /// Calls back in commit order, after the commit and before any later batch's call; also when refused.
    #[must_use]
    pub fn then(mut self, then: impl FnOnce(&Result<Vec<Receipt>, Error>) + Send + 'static) -> Self {
        self.then = Then(Some(Box::new(then)));
        self
    }

    /// Runs work of the program on its own tables in the commit, and appends this draft with the payload that it gives as
    /// the last of the batch. If it fails, nothing of the batch is written. Only a store with a file can.
    #[must_use]
    pub(crate) fn work(mut self, draft: Draft, payload: Payload) -> Self {
        self.work = Some(Box::new(Told { draft, payload }));
        self
    }

    /// The drafts that are known before the commit, to be held to what the ledger knows of their topics and schemas.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Draft> {
        self.drafts.iter().chain(self.work.iter().map(|told| &told.draft))
    }

    /// Brings the batch into the form the writer takes.
    pub(crate) fn prepare(self, schemas: Vec<Arc<Schema>>, now: Millis) -> Result<Batch, Error> {
        let (count, max) = (self.known().count(), limits::BATCH_MAX);
        if count == 0 {
            return Err(Error::new(
                ErrorKind::Malformed,
                "a batch without drafts: append at least one",
            ));
        }
        if count > max {
            let why = format!("a batch of {count} drafts, more than {max}: split it");
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        let epoch = self.owner.as_ref().map(|(_, epoch)| *epoch);
        let key = self.idempotency.as_deref();
        let work = self.work.map(|told| {
            let Told { mut draft, payload } = *told;
            let key = self.idempotency.clone();
            Work::new(move |tx| {
                draft.payload = Some(payload(tx)?);
                Prepared::new(draft, key.as_deref(), epoch, now)
            })
        });
        let drafts = self
            .drafts
            .into_iter()
            .map(|draft| Prepared::new(draft, key, epoch, now));
        Ok(Batch {
            drafts: drafts.collect::<Result<_, _>>()?,
            expectations: self.expectations,
            idempotency: self.idempotency.map(Into::into),
            owner: self.owner,
            schemas,
            then: self.then,
            work,
        })
    }
}

/// Gives the payload of a draft from what it does on the tables of the program.
pub(crate) type Payload = Box<dyn FnOnce(&Transaction<'_>) -> Result<Json, Error> + Send>;

/// A draft whose payload is what work of the program gives.
pub(crate) struct Told {
    draft: Draft,
    payload: Payload,
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Told").field(&self.draft).finish()
    }
}

pub(crate) type Callback = Box<dyn FnOnce(&Result<Vec<Receipt>, Error>) + Send>;

#[derive(Default)]
pub(crate) struct Then(pub(crate) Option<Callback>);

impl fmt::Debug for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Then" } else { "-" })
    }
}

/// A batch in canonical parts, as stores take it. Made by the [`Ledger`](crate::Ledger).
#[derive(Debug)]
pub struct Batch {
    pub(crate) drafts: Vec<Prepared>,
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) idempotency: Option<Arc<str>>,
    pub(crate) owner: Option<(String, u64)>,
    pub(crate) schemas: Vec<Arc<Schema>>,
    pub(crate) then: Then,
    pub(crate) work: Option<Work>,
}

impl Batch {
    /// Refuses the handles of another store, whose places mean nothing here.
    pub(crate) fn deferred_in(&self, store: u64) -> Result<(), Error> {
        let foreign = |deferred: &Deferred| deferred.store() != store;
        for draft in &self.drafts {
            let parent = matches!(&draft.parent, Some(Parent::Deferred(deferred)) if foreign(deferred));
            let cause = matches!(&draft.cause, Some(Cause::Deferred(deferred)) if foreign(deferred));
            if parent || cause {
                let (what, kind, topic) = (if parent { "parent" } else { "cause" }, &draft.kind, &draft.topic);
                let why = format!(
                    "draft `{kind}` for topic {topic}: its deferred {what} was not deferred in this store: name what \
                     stands in it, or was deferred since it was opened"
                );
                return Err(Error::new(ErrorKind::Malformed, why));
            }
        }
        Ok(())
    }
}
