//! What may happen to a store.

use proptest::{collection::vec, option, prelude::*};

pub(crate) type History = Vec<Step>;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One of the two handles appends.
    Append { handle: usize, batch: Batch, broken: bool },
    /// One of them commits several batches in one group.
    Group {
        handle: usize,
        batches: Vec<Batch>,
        broken: bool,
    },
    /// A batch that stands is given again, as it was or with one thing changed.
    Again {
        handle: usize,
        which: usize,
        change: Option<Change>,
    },
    /// One of the handles is closed and opened again.
    Reopen { handle: usize },
    /// The clock is set, forwards or back.
    Clock { at: i64 },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Batch {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) idempotency: Option<u8>,
    pub(crate) owner: Option<(u8, u64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Draft {
    Said(Said),
    /// The name is claimed under this epoch.
    Lease {
        name: u8,
        epoch: u64,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) topic: u8,
    pub(crate) kind: Kind,
    pub(crate) text: u8,
    pub(crate) key: Option<u8>,
    pub(crate) parent: Option<Parent>,
    pub(crate) cause: Option<Cause>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Plain,
    Other,
    Injection,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Parent {
    Seq(u64),
    Index(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cause {
    /// An envelope that stands, counted from the last.
    Row(usize),
    /// The same, by its place from 0.
    At(usize),
    /// Its place, under another id.
    Forged(usize),
    /// A place where nothing stands.
    Missing,
    Index(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expectation {
    Head(u8, u64),
    Key(u8, u8, Option<u64>),
    Epoch(u8, u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Text,
    Key,
    Drop,
    Swap,
}

pub(crate) fn histories() -> impl Strategy<Value = History> {
    vec(step(), 1..24)
}

fn step() -> impl Strategy<Value = Step> {
    let broken = || prop::bool::weighted(0.1);
    prop_oneof![
        12 => (0..2usize, batch(), broken()).prop_map(|(handle, batch, broken)| Step::Append { handle, batch, broken }),
        4 => (0..2usize, vec(batch(), 1..5), broken())
            .prop_map(|(handle, batches, broken)| Step::Group { handle, batches, broken }),
        6 => (0..2usize, 0..8usize, option::of(change()))
            .prop_map(|(handle, which, change)| Step::Again { handle, which, change }),
        1 => (0..2usize).prop_map(|handle| Step::Reopen { handle }),
        2 => (0..2_000i64).prop_map(|at| Step::Clock { at }),
    ]
}

fn batch() -> impl Strategy<Value = Batch> {
    let parts = (
        vec(draft(), 1..5),
        prop_oneof![3 => Just(Vec::new()), 1 => vec(expectation(), 1..3)],
        option::weighted(0.5, 0..8u8),
        option::weighted(0.1, (0..2u8, 0..3u64)),
    );
    parts.prop_map(|(drafts, expectations, idempotency, owner)| Batch {
        drafts,
        expectations,
        idempotency,
        owner,
    })
}

fn draft() -> impl Strategy<Value = Draft> {
    let kind = prop_oneof![6 => Just(Kind::Plain), 2 => Just(Kind::Other), 1 => Just(Kind::Injection)];
    let said = (
        0..2u8,
        kind,
        any::<u8>(),
        option::weighted(0.4, 0..2u8),
        option::weighted(0.3, parent()),
        option::weighted(0.3, cause()),
    );
    let said = said.prop_map(|(topic, kind, text, key, parent, cause)| Said {
        topic,
        kind,
        text,
        key,
        parent,
        cause,
    });
    prop_oneof![
        10 => said.prop_map(Draft::Said),
        1 => (0..2u8, 0..4u64).prop_map(|(name, epoch)| Draft::Lease { name, epoch }),
    ]
}

fn parent() -> impl Strategy<Value = Parent> {
    prop_oneof![3 => (0..4u64).prop_map(Parent::Seq), 2 => (0..3usize).prop_map(Parent::Index)]
}

fn cause() -> impl Strategy<Value = Cause> {
    prop_oneof![
        4 => (0..12usize).prop_map(Cause::Row),
        1 => (0..12usize).prop_map(Cause::Forged),
        1 => Just(Cause::Missing),
        3 => (0..3usize).prop_map(Cause::Index),
    ]
}

fn expectation() -> impl Strategy<Value = Expectation> {
    prop_oneof![
        (0..3u8, 0..4u64).prop_map(|(topic, seq)| Expectation::Head(topic, seq)),
        (0..3u8, 0..2u8, option::of(1..4u64)).prop_map(|(topic, key, seq)| Expectation::Key(topic, key, seq)),
        (0..2u8, 0..3u64).prop_map(|(name, epoch)| Expectation::Epoch(name, epoch)),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Text),
        Just(Change::Key),
        Just(Change::Drop),
        Just(Change::Swap)
    ]
}

impl Change {
    /// The batch with one thing changed.
    pub(crate) fn of(self, batch: &Batch) -> Batch {
        let mut changed = batch.clone();
        let last = changed.drafts.len() - 1;
        match (self, &mut changed.drafts[last]) {
            (Self::Text, Draft::Said(said)) => said.text = said.text.wrapping_add(1),
            (Self::Text, Draft::Lease { epoch, .. }) => *epoch += 1,
            (Self::Key, Draft::Said(said)) => said.key = said.key.map_or(Some(0), |_| None),
            (Self::Key, Draft::Lease { name, .. }) => *name += 1,
            (Self::Drop, _) if last > 0 => drop(changed.drafts.pop()),
            (Self::Drop, draft) => {
                let draft = draft.clone();
                changed.drafts.push(draft);
            }
            (Self::Swap, _) => changed.drafts.swap(0, last),
        }
        changed
    }
}
