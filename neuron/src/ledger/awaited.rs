//! Who waits for an envelope, and what becomes of one that comes.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::used::{Hold, Used};
use crate::{Envelope, Error, ErrorKind, Filter, Millis, Pattern, Result};

/// What one wait is for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Which envelopes.
    pub filter: Arc<Filter>,
    /// Only those after this `pos`.
    pub after: u64,
    /// Those that have answered other waits of the scope.
    pub used: Used,
    /// What was committed later than this comes too late.
    pub deadline: Option<Millis>,
}

/// An envelope that answers a wait. It is held for that wait as long as this lives.
#[derive(Debug)]
pub struct Found {
    envelope: Envelope,
    hold: Hold,
}

impl Found {
    /// An envelope that was read from the log, if it is nobody else's.
    pub(super) fn hold(envelope: Envelope, used: &Used) -> Option<Self> {
        let hold = used.hold(&envelope)?;
        Some(Self { envelope, hold })
    }

    /// The envelope.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The envelope, once the answer that names it stands: it answers no other wait of the scope.
    pub fn keep(self) -> Envelope {
        self.hold.keep();
        self.envelope
    }
}

/// All who wait, by pattern.
#[derive(Debug, Default)]
pub(super) struct Awaited(Mutex<Groups>);

#[derive(Debug, Default)]
struct Groups {
    by_pattern: HashMap<Pattern, Group>,
    /// Numbers waits and groups.
    count: u64,
}

/// Those who wait for something of one pattern.
#[derive(Debug)]
struct Group {
    id: u64,
    /// Everything up to this `pos` was offered to those who listen.
    position: u64,
    /// By the order in which they came; `None` of those who still look at what stands already.
    waits: BTreeMap<u64, Option<Listening>>,
    /// Dropped with the group, so that its listener lets go of the log.
    _alive: oneshot::Sender<()>,
}

/// What comes to one who listens.
pub(super) type Coming = oneshot::Receiver<Result<Found, Error>>;

#[derive(Debug)]
struct Listening {
    wanted: Wanted,
    came: oneshot::Sender<Result<Found, Error>>,
}

impl Awaited {
    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more who waits for something of a pattern, if somebody does already; its number.
    pub(super) fn join(&self, pattern: &Pattern) -> Option<u64> {
        let mut groups = self.groups();
        let number = groups.count + 1;
        let group = groups.by_pattern.get_mut(pattern)?;
        group.waits.insert(number, None);
        groups.count = number;
        Some(number)
    }

    /// As [`join`](Self::join), where nobody may wait yet. Whoever is the first gets the number of the group besides, and
    /// what ends once nobody waits: it has to offer all that comes after `position`.
    pub(super) fn open(&self, pattern: &Pattern, position: u64) -> (u64, Option<(u64, oneshot::Receiver<()>)>) {
        let mut groups = self.groups();
        let (id, number) = (groups.count + 1, groups.count + 2);
        groups.count = number;
        if let Some(group) = groups.by_pattern.get_mut(pattern) {
            group.waits.insert(number, None);
            return (number, None);
        }
        let (alive, gone) = oneshot::channel();
        let group = Group {
            id,
            position,
            waits: BTreeMap::from([(number, None)]),
            _alive: alive,
        };
        groups.by_pattern.insert(pattern.clone(), group);
        (number, Some((id, gone)))
    }

    /// Up to where those who listen have been offered everything; `None` if the log could not be read on.
    pub(super) fn position(&self, pattern: &Pattern) -> Option<u64> {
        self.groups().by_pattern.get(pattern).map(|group| group.position)
    }

    /// One listens from `position` on, unless that is not where the group stands any more.
    pub(super) fn listen(&self, wanted: &Wanted, number: u64, position: u64) -> Option<Coming> {
        let mut groups = self.groups();
        let group = groups.by_pattern.get_mut(wanted.filter.pattern())?;
        let place = group.waits.get_mut(&number).filter(|_| group.position == position)?;
        let (came, coming) = oneshot::channel();
        *place = Some(Listening {
            wanted: wanted.clone(),
            came,
        });
        Some(coming)
    }

    /// One listens no more; up to where it was offered everything.
    pub(super) fn leave(&self, pattern: &Pattern, number: u64) -> Option<u64> {
        let mut groups = self.groups();
        let group = groups.by_pattern.get_mut(pattern)?;
        *group.waits.get_mut(&number)? = None;
        Some(group.position)
    }

    /// One waits no more. With the last, the group ends.
    pub(super) fn quit(&self, pattern: &Pattern, number: u64) {
        let mut groups = self.groups();
        let Some(group) = groups.by_pattern.get_mut(pattern) else {
            return;
        };
        group.waits.remove(&number);
        if group.waits.is_empty() {
            groups.by_pattern.remove(pattern);
        }
    }

    /// Hands an envelope to the first whom it answers in each scope.
    pub(super) fn offer(&self, pattern: &Pattern, id: u64, next: Result<Envelope, Error>) {
        let mut groups = self.groups();
        let Some(group) = groups.by_pattern.get_mut(pattern).filter(|group| group.id == id) else {
            return;
        };
        let envelope = match next {
            Ok(envelope) => envelope,
            Err(error) => {
                // Nobody can be told what stands there: all are told so, and whoever comes later begins anew.
                for listening in group.waits.values_mut().filter_map(Option::take) {
                    let _gone = listening.came.send(Err(error.clone()));
                }
                groups.by_pattern.remove(pattern);
                return;
            }
        };
        group.position = envelope.pos;
        let payload = OnceCell::new();
        for wait in group.waits.values_mut() {
            let answers = |listening: &mut Listening| {
                let Wanted {
                    filter,
                    after,
                    used,
                    deadline,
                } = &listening.wanted;
                // The machine may have slept over the deadline.
                let in_time = deadline.is_none_or(|deadline| envelope.at <= deadline);
                let meant = in_time && envelope.pos > *after && filter.selects(&envelope, &payload);
                meant.then(|| used.hold(&envelope)).flatten()
            };
            let Some(hold) = wait.as_mut().and_then(answers) else {
                continue;
            };
            if let Some(listening) = wait.take() {
                // One that is just leaving does not take it, and it is free for the next.
                let found = intact(&envelope).map(|envelope| Found { envelope, hold });
                let _gone = listening.came.send(found);
            }
        }
    }
}

/// Whoever acts on an envelope wants the one that was written.
pub(super) fn intact(envelope: &Envelope) -> Result<Envelope, Error> {
    if envelope.is_intact()? {
        return Ok(envelope.clone());
    }
    let Envelope { topic, seq, pos, .. } = envelope;
    let why = format!("{topic} seq {seq} (pos {pos}) is damaged; `verify` looks at the whole store");
    Err(Error::new(ErrorKind::Corrupt, why))
}
