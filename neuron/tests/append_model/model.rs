//! The naive list that the stores are held to.

use std::collections::HashMap;

use crate::history::{Batch, Cause, Draft, Expectation, Kind, Parent, Step};

/// The sentences a store may say to an append.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// `pos`, `seq` and `at` of each envelope, and whether they were there already.
    Stands(Vec<(u64, u64, i64)>, bool),
    Malformed,
    Conflict,
    Fenced,
    IdempotencyConflict,
    /// The commit failed.
    Full,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) topic: String,
    pub(crate) seq: u64,
    pub(crate) at: i64,
    pub(crate) kind: &'static str,
    pub(crate) payload: String,
    pub(crate) key: Option<String>,
    pub(crate) parent: Option<u64>,
    /// `pos` of the cause.
    pub(crate) cause: Option<u64>,
    pub(crate) idempotency: Option<String>,
    pub(crate) first: bool,
    pub(crate) epoch: Option<u64>,
}

/// A batch that stands under an idempotency key: where, and what was given.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) batch: Batch,
    first: usize,
}

/// By owned name, with the epoch of the refused append.
type Unheard = HashMap<u8, (u64, Outcome)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// Both handles are one.
    pub(crate) one_handle: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) standing: Vec<Standing>,
    pub(crate) now: i64,
    /// What the owner of a refused deferred append has still to hear, by handle.
    unheard: [Unheard; 2],
    /// How many rows stood when the present group was made: what a cause may name by its id.
    base: usize,
    /// The batch that an `Again` step gave, for the store to give too.
    pub(crate) again: Option<Batch>,
}

pub(crate) fn topic_of(draft: &Draft) -> String {
    match draft {
        Draft::Said(said) => format!("topic.{}", said.topic),
        Draft::Lease { .. } => "$leases".to_owned(),
    }
}

pub(crate) fn payload_of(draft: &Draft) -> String {
    match draft {
        Draft::Said(said) => said.text.to_string(),
        Draft::Lease { name, epoch } => format!(r#"{{"epoch":{epoch},"name":"{name}"}}"#),
    }
}

impl Model {
    /// What the store must say to a step, batch by batch.
    pub(crate) fn step(&mut self, step: &Step) -> Vec<Outcome> {
        self.base = self.rows.len();
        let own = |handle: &usize| if self.one_handle { 0 } else { *handle };
        match step {
            Step::Append { handle, batch, broken } => {
                self.group(own(handle), std::slice::from_ref(batch), *broken, false)
            }
            Step::Group {
                handle,
                batches,
                broken,
            } => {
                // The group comes after a marker, which is how the test gets it into one commit.
                self.rows.push(self.marker());
                self.group(own(handle), batches, *broken, true)
            }
            Step::Again { handle, which, change } => {
                self.again = None;
                if self.standing.is_empty() {
                    return Vec::new();
                }
                let standing = &self.standing[which % self.standing.len()].batch;
                let batch = change.map_or_else(|| standing.clone(), |change| change.of(standing));
                self.again = Some(batch.clone());
                self.group(own(handle), &[batch], false, false)
            }
            Step::Reopen { handle } => {
                if !self.one_handle {
                    self.unheard[*handle].clear();
                }
                Vec::new()
            }
            Step::Clock { at } => {
                self.now = *at;
                Vec::new()
            }
        }
    }

    fn marker(&self) -> Row {
        Row {
            topic: "marker".to_owned(),
            seq: self.head("marker") + 1,
            at: self.at(),
            kind: "plain",
            payload: "0".to_owned(),
            key: None,
            parent: None,
            cause: None,
            idempotency: None,
            first: false,
            epoch: Some(0),
        }
    }

    fn group(&mut self, handle: usize, batches: &[Batch], broken: bool, deferred: bool) -> Vec<Outcome> {
        let before = self.clone();
        let mut outcomes: Vec<Outcome> = Vec::new();
        for batch in batches {
            let unheard = self.hear(handle, batch);
            let outcome = unheard.unwrap_or_else(|| self.batch(batch));
            if deferred && !matches!(outcome, Outcome::Stands(..)) {
                self.refuse(handle, batch, &outcome);
            }
            outcomes.push(outcome);
        }
        if broken && self.rows.len() > before.rows.len() {
            let unheard = std::mem::take(&mut self.unheard);
            *self = Self {
                unheard,
                again: self.again.take(),
                ..before
            };
            outcomes.fill(Outcome::Full);
            for batch in batches.iter().filter(|_| deferred) {
                self.refuse(handle, batch, &Outcome::Full);
            }
        }
        outcomes
    }

    /// What the owner has still to hear; who owns the name under another epoch hears nothing of it.
    fn hear(&mut self, handle: usize, batch: &Batch) -> Option<Outcome> {
        let (name, epoch) = batch.owner?;
        let (since, outcome) = self.unheard[handle].remove(&name)?;
        (since == epoch).then_some(outcome)
    }

    fn refuse(&mut self, handle: usize, batch: &Batch, outcome: &Outcome) {
        // Without an owner only the handle tells.
        if let Some((name, epoch)) = batch.owner {
            self.unheard[handle].insert(name, (epoch, outcome.clone()));
        }
    }

    fn batch(&mut self, batch: &Batch) -> Outcome {
        if let Some(key) = batch.idempotency {
            let standing = self
                .standing
                .iter()
                .find(|standing| standing.batch.idempotency == Some(key));
            if let Some(standing) = standing {
                return self.repeated(standing, batch);
            }
        }
        if let Some((name, epoch)) = batch.owner
            && self.epoch(name) != epoch
        {
            return Outcome::Fenced;
        }
        let holds = |expectation: &Expectation| match expectation {
            Expectation::Head(topic, seq) => self.head(&format!("topic.{topic}")) == *seq,
            Expectation::Key(topic, key, seq) => self.keyed(&format!("topic.{topic}"), &key.to_string()) == *seq,
            Expectation::Epoch(name, epoch) => self.epoch(*name) == *epoch,
        };
        if !batch.expectations.iter().all(holds) {
            return Outcome::Conflict;
        }
        let first = self.rows.len();
        for (index, draft) in batch.drafts.iter().enumerate() {
            let Some(row) = self.row(batch, draft, first, index) else {
                self.rows.truncate(first);
                return Outcome::Malformed;
            };
            self.rows.push(row);
        }
        if batch.idempotency.is_some() {
            self.standing.push(Standing {
                batch: self.settled(batch),
                first,
            });
        }
        self.stands(first, batch.drafts.len(), false)
    }

    /// A batch whose causes keep naming the rows that they name now.
    fn settled(&self, batch: &Batch) -> Batch {
        let mut batch = batch.clone();
        for draft in &mut batch.drafts {
            if let Draft::Said(said) = draft {
                said.cause = said.cause.map(|cause| match cause {
                    Cause::Row(back) => self.named(back).map_or(cause, Cause::At),
                    other => other,
                });
            }
        }
        batch
    }

    /// The row of a draft, unless what it names does not stand before it.
    fn row(&self, batch: &Batch, draft: &Draft, first: usize, index: usize) -> Option<Row> {
        let topic = topic_of(draft);
        let mut row = Row {
            seq: self.head(&topic) + 1,
            at: self.at(),
            kind: "lease.claimed",
            payload: payload_of(draft),
            key: None,
            parent: None,
            cause: None,
            idempotency: batch.idempotency.map(|key| key.to_string()),
            first: batch.idempotency.is_some() && index == 0,
            epoch: batch.owner.map(|(_, epoch)| epoch),
            topic,
        };
        let said = match draft {
            Draft::Lease { name, .. } => {
                row.key = Some(name.to_string());
                return Some(row);
            }
            Draft::Said(said) => said,
        };
        row.kind = match said.kind {
            Kind::Plain => "plain",
            Kind::Other => "other",
            Kind::Injection => "header.injected",
        };
        row.key = said.key.map(|key| key.to_string());
        if let Some(parent) = said.parent {
            row.parent = Some(self.parent(&row, parent, first)?);
        }
        if let Some(cause) = said.cause {
            row.cause = Some(self.cause(cause, first)?);
        }
        Some(row)
    }

    fn parent(&self, row: &Row, parent: Parent, first: usize) -> Option<u64> {
        let seq = match parent {
            Parent::Seq(seq) => (1..row.seq).contains(&seq).then_some(seq)?,
            Parent::Index(index) => {
                self.rows[first..]
                    .get(index)
                    .filter(|other| other.topic == row.topic)?
                    .seq
            }
        };
        let target = self
            .rows
            .iter()
            .find(|other| other.topic == row.topic && other.seq == seq)?;
        let chained = row.kind == "header.injected" && target.kind == "header.injected";
        (!chained).then_some(seq)
    }

    fn cause(&self, cause: Cause, first: usize) -> Option<u64> {
        match cause {
            Cause::Row(back) => self.named(back).map(|row| row as u64 + 1),
            Cause::At(row) => Some(row as u64 + 1),
            Cause::Forged(_) | Cause::Missing => None,
            Cause::Index(index) => (first + index < self.rows.len()).then_some((first + index) as u64 + 1),
        }
    }

    /// Which row a cause means that is counted back from the last one.
    pub(crate) fn named(&self, back: usize) -> Option<usize> {
        self.base.checked_sub(back + 1)
    }

    fn repeated(&self, standing: &Standing, batch: &Batch) -> Outcome {
        let (was, first) = (&standing.batch, standing.first);
        let same = was.drafts.len() == batch.drafts.len()
            && batch
                .drafts
                .iter()
                .enumerate()
                .all(|(index, draft)| self.says(draft, first, index));
        if same {
            self.stands(first, was.drafts.len(), true)
        } else {
            Outcome::IdempotencyConflict
        }
    }

    /// Whether a draft says what the row at its place in a standing batch says.
    fn says(&self, draft: &Draft, first: usize, index: usize) -> bool {
        let row = &self.rows[first + index];
        let (kind, key, parent, cause) = match draft {
            Draft::Lease { name, .. } => ("lease.claimed", Some(name.to_string()), None, None),
            Draft::Said(said) => {
                let kind = match said.kind {
                    Kind::Plain => "plain",
                    Kind::Other => "other",
                    Kind::Injection => "header.injected",
                };
                (kind, said.key.map(|key| key.to_string()), said.parent, said.cause)
            }
        };
        let parent = parent.map(|parent| match parent {
            Parent::Seq(seq) => Some(seq),
            Parent::Index(index) => self.rows.get(first + index).map(|row| row.seq),
        });
        let cause = cause.map(|cause| match cause {
            Cause::Row(back) => self.named(back).map(|row| row as u64 + 1),
            Cause::At(row) => Some(row as u64 + 1),
            Cause::Forged(_) | Cause::Missing => None,
            Cause::Index(index) => Some((first + index) as u64 + 1),
        });
        let same_place = |given: Option<Option<u64>>, stands: Option<u64>| match given {
            None => stands.is_none(),
            Some(place) => place.is_some() && place == stands,
        };
        row.topic == topic_of(draft)
            && row.kind == kind
            && row.payload == payload_of(draft)
            && row.key == key
            && same_place(parent, row.parent)
            && same_place(cause, row.cause)
    }

    fn stands(&self, first: usize, count: usize, again: bool) -> Outcome {
        let rows = self.rows[first..first + count].iter().enumerate();
        Outcome::Stands(
            rows.map(|(index, row)| ((first + index) as u64 + 1, row.seq, row.at))
                .collect(),
            again,
        )
    }

    fn at(&self) -> i64 {
        self.rows.last().map_or(self.now, |row| row.at.max(self.now))
    }

    pub(crate) fn head(&self, topic: &str) -> u64 {
        self.rows.iter().filter(|row| row.topic == topic).count() as u64
    }

    pub(crate) fn keyed(&self, topic: &str, key: &str) -> Option<u64> {
        let found = self
            .rows
            .iter()
            .rfind(|row| row.topic == topic && row.key.as_deref() == Some(key));
        found.map(|row| row.seq)
    }

    pub(crate) fn epoch(&self, name: u8) -> u64 {
        let name = name.to_string();
        let mut leases = self.rows.iter().filter(|row| row.topic == "$leases");
        let newest = leases.rfind(|row| row.key.as_ref() == Some(&name));
        let epoch = newest.and_then(|row| row.payload.split([':', ',']).nth(1)?.parse().ok());
        epoch.unwrap_or(0)
    }
}
