//! The fold behind `verify`: each row against the chain of those before it.

use std::{
    collections::{BTreeSet, HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use super::{
    bad::{Bad, told},
    examine::{Examined, Fault, Shown, TopicKey, says},
    head::Head,
};
use crate::{
    Digest, Error, Millis, Result, SchemaRef,
    store::{Archive, Row, Store},
};

/// What is known of the log up to a row.
pub(super) struct Audit<'a> {
    store: &'a dyn Store,
    archive: Option<&'a Archive>,
    /// What stands up to here is taken as it is; topics are met anew after it.
    base: u64,
    last: u64,
    head: Head,
    at: Millis,
    /// The last `seq` of each topic that was met.
    topics: HashMap<TopicKey, u64>,
    /// The idempotency key that the last row stood under.
    batch: Option<Arc<str>>,
    schemas: HashSet<SchemaRef>,
    /// Artifacts that the rows name; kept only where not all of the store are looked at anyway.
    named: Option<BTreeSet<Digest>>,
}

/// What came of it.
pub(super) struct Found {
    pub(super) head: Head,
    pub(super) topics: u64,
    pub(super) named: BTreeSet<Digest>,
}

impl<'a> Audit<'a> {
    pub(super) fn new(store: &'a dyn Store, archive: Option<&'a Archive>, schemas: HashSet<SchemaRef>) -> Self {
        Self {
            store,
            archive,
            base: 0,
            last: archive.map_or(0, |archive| archive.part.from.saturating_sub(1)),
            head: Head::default(),
            at: Millis(i64::MIN),
            topics: HashMap::new(),
            batch: None,
            schemas,
            named: None,
        }
    }

    /// Goes on after a row that is taken as it is.
    pub(super) fn after(mut self, head: Head, row: &Row) -> Result<Self, Error> {
        self.base = head.pos;
        self.last = head.pos;
        self.head = head;
        self.at = row.at;
        let key: Option<String> = row.envelope()?.headers.decode("idempotency-key");
        self.batch = key.map(Into::into);
        self.named = Some(BTreeSet::new());
        Ok(self)
    }

    /// The `pos` of the row that comes next, where there are no holes.
    pub(super) fn next(&self) -> u64 {
        self.last + 1
    }

    /// Whether a row may stand at this `pos`.
    pub(super) fn admits(&self, pos: u64) -> bool {
        let holes = self.archive.is_some_and(|archive| archive.part.topics.is_some());
        if holes { pos > self.last } else { pos == self.next() }
    }

    /// Whether every topic was met from its first envelope on.
    pub(super) fn is_whole(&self) -> bool {
        self.base == 0 && self.archive.is_none_or(|archive| archive.part.from == 1)
    }

    /// The last `seq` of each topic.
    pub(super) fn seqs(&self) -> HashMap<TopicKey, u64> {
        self.topics.clone()
    }

    pub(super) fn found(self) -> Found {
        Found {
            head: self.head,
            topics: self.topics.len() as u64,
            named: self.named.unwrap_or_default(),
        }
    }

    /// Takes the next row, or says what is wrong with it.
    pub(super) fn take(&mut self, row: Examined) -> Result<(), Error> {
        let Examined {
            pos, seq, id, at, key, ..
        } = row;
        match self.judge(&row) {
            Ok(()) => {
                self.last = pos;
                self.head = self.head.then(id);
                self.at = at;
                self.topics.insert(key, seq);
                self.batch = row.idempotency.1;
                if let Some(named) = &mut self.named {
                    named.extend(row.artifacts);
                }
                Ok(())
            }
            Err(Fault::Unread(error)) => Err(error),
            Err(Fault::Bad(why)) => Err(told(&Bad {
                pos,
                topic: Some(row.topic),
                seq: Some(seq),
                id: Some(id),
                why,
            })),
        }
    }

    fn judge(&mut self, row: &Examined) -> Result<(), Fault> {
        if let Some(fault) = &row.itself {
            return Err(fault.clone());
        }
        self.place(row)?;
        self.batch(row)?;
        if let Some(fault) = &row.named {
            return Err(fault.clone());
        }
        self.schemas(row)
    }

    fn place(&mut self, row: &Examined) -> Result<(), Fault> {
        if let Some(archive) = self.archive
            && !archive.part.holds(&row.topic)
        {
            return Err(Fault::Bad("its topic is none that was exported".to_owned()));
        }
        let last = match self.topics.entry(row.key) {
            Entry::Occupied(last) => *last.get(),
            Entry::Vacant(_) => self.before(row)?,
        };
        says("the next seq of its topic", &(last + 1), &row.seq)?;
        if row.at < self.at {
            let (before, at) = (self.at, row.at);
            return Err(Fault::Bad(format!(
                "its at {at} is earlier than {before}, that of the envelope before it"
            )));
        }
        Ok(())
    }

    /// The last `seq` of a topic that is met for the first time.
    fn before(&self, row: &Examined) -> Result<u64, Fault> {
        let before = row.seq.saturating_sub(1);
        if self.archive.is_some_and(|archive| archive.part.from > 1) {
            // What stood before the part is not here.
            return Ok(before);
        }
        if self.base == 0 || before == 0 {
            return Ok(0);
        }
        let stands = self
            .store
            .row(&row.topic, before)?
            .is_some_and(|row| row.pos <= self.base);
        if stands {
            return Ok(before);
        }
        Err(Fault::Bad(format!(
            "the envelope before it in its topic, seq {before}, is missing"
        )))
    }

    /// The key of a batch stands on each envelope of it, and in the column of the first.
    fn batch(&self, row: &Examined) -> Result<(), Fault> {
        let (column, key) = &row.idempotency;
        let goes_on = key.is_some() && *key == self.batch;
        let wanted = key.as_deref().filter(|_| !goes_on);
        says("the column `idempotency`", &Shown(wanted), &Shown(column.as_deref()))
    }

    fn schemas(&self, row: &Examined) -> Result<(), Fault> {
        for schema in &row.schemas {
            if !self.schemas.contains(schema) {
                return Err(Fault::Bad(format!(
                    "it names schema {}, which is not in the registry",
                    schema.0
                )));
            }
        }
        Ok(())
    }
}
