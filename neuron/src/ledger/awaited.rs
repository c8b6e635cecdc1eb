//! Bodies that wait for an envelope: one listener for each pattern, however many wait for something of it.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::{
    Ledger,
    subscription::{From, Subscription},
    used::{Hold, Used},
};
use crate::{Envelope, EnvelopeRef, Error, ErrorKind, Filter, Millis, Pattern, Result, Topic, store::Select};

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

#[derive(Debug)]
struct Listening {
    wanted: Wanted,
    came: oneshot::Sender<Result<Found, Error>>,
}

impl Awaited {
    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an envelope to the first whom it answers in each scope.
    fn offer(&self, pattern: &Pattern, id: u64, next: Result<Envelope, Error>) {
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
                    filter, after, used, ..
                } = &listening.wanted;
                let meant = envelope.pos > *after && filter.selects(&envelope, &payload);
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
fn intact(envelope: &Envelope) -> Result<Envelope, Error> {
    if envelope.is_intact()? {
        return Ok(envelope.clone());
    }
    let Envelope { topic, seq, pos, .. } = envelope;
    let why = format!("{topic} seq {seq} (pos {pos}) is damaged; `verify` looks at the whole store");
    Err(Error::new(ErrorKind::Corrupt, why))
}

/// Offers what comes to those who wait for something of the pattern, until nobody does.
async fn listen(mut log: Subscription, ledger: Ledger, pattern: Pattern, id: u64, mut gone: oneshot::Receiver<()>) {
    loop {
        let next = tokio::select! {
            biased;
            _ = &mut gone => return,
            next = log.next() => next,
        };
        ledger.0.awaited.offer(&pattern, id, next);
    }
}

/// One who waits. Dropped, it waits no longer.
struct Member<'a> {
    ledger: &'a Ledger,
    pattern: &'a Pattern,
    id: u64,
}

impl<'a> Member<'a> {
    fn join(ledger: &'a Ledger, pattern: &'a Pattern) -> Result<Self, Error> {
        let mut groups = ledger.0.awaited.groups();
        if !groups.by_pattern.contains_key(pattern) {
            drop(groups);
            let position = ledger.position(From::Now)?;
            let log = ledger.subscribe(pattern.clone(), From::After(position))?;
            groups = ledger.0.awaited.groups();
            groups.begin(ledger, pattern, position, log);
        }
        groups.count += 1;
        let id = groups.count;
        if let Some(group) = groups.by_pattern.get_mut(pattern) {
            group.waits.insert(id, None);
        }
        drop(groups);
        Ok(Self { ledger, pattern, id })
    }

    /// Up to where those who listen have been offered everything; `None` if the log could not be read on.
    fn position(&self) -> Option<u64> {
        let groups = self.ledger.0.awaited.groups();
        groups.by_pattern.get(self.pattern).map(|group| group.position)
    }

    /// Listens from `position` on, unless that is not where the group stands any more.
    fn listen(&self, wanted: &Wanted, position: u64) -> Option<oneshot::Receiver<Result<Found, Error>>> {
        let mut groups = self.ledger.0.awaited.groups();
        let group = groups.by_pattern.get_mut(self.pattern)?;
        let place = group.waits.get_mut(&self.id).filter(|_| group.position == position)?;
        let (came, coming) = oneshot::channel();
        *place = Some(Listening {
            wanted: wanted.clone(),
            came,
        });
        Some(coming)
    }

    /// Listens no more; up to where it was offered everything.
    fn leave(&self) -> Option<u64> {
        let mut groups = self.ledger.0.awaited.groups();
        let group = groups.by_pattern.get_mut(self.pattern)?;
        *group.waits.get_mut(&self.id)? = None;
        Some(group.position)
    }
}

impl Groups {
    fn begin(&mut self, ledger: &Ledger, pattern: &Pattern, position: u64, log: Subscription) {
        if self.by_pattern.contains_key(pattern) {
            return;
        }
        self.count += 1;
        let (alive, gone) = oneshot::channel();
        let group = Group {
            id: self.count,
            position,
            waits: BTreeMap::new(),
            _alive: alive,
        };
        self.by_pattern.insert(pattern.clone(), group);
        tokio::spawn(listen(log, ledger.clone(), pattern.clone(), self.count, gone));
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let mut groups = self.ledger.0.awaited.groups();
        let Some(group) = groups.by_pattern.get_mut(self.pattern) else {
            return;
        };
        group.waits.remove(&self.id);
        if group.waits.is_empty() {
            groups.by_pattern.remove(self.pattern);
        }
    }
}

impl Ledger {
    /// Waits for the envelope with the lowest `pos` that is wanted and answers no other wait of the scope; `None` if
    /// `timer` ends first and none was committed by the deadline. It costs memory alone while nothing comes.
    ///
    /// The inner error says why none can come; the outer one is that of the log.
    pub(crate) async fn wait(
        &self,
        wanted: &Wanted,
        timer: BoxFuture<'static, ()>,
    ) -> Result<Result<Option<Found>, Error>, Error> {
        match wanted.filter.pattern().literal().map(|topic| self.may_come(&topic)) {
            Some(Err(never)) => Ok(Err(never)),
            None | Some(Ok(())) => self.first(wanted, timer).await.map(Ok),
        }
    }

    fn may_come(&self, topic: &Topic) -> Result<(), Error> {
        if self.contract(topic)?.is_durable() {
            return Ok(());
        }
        let why =
            format!("topic {topic} is ephemeral: what passes there is never on the log, so nobody can wait for it");
        Err(Error::new(ErrorKind::Contract, why))
    }

    async fn first(&self, wanted: &Wanted, mut timer: BoxFuture<'static, ()>) -> Result<Option<Found>, Error> {
        let mut freed = wanted.used.freed();
        'anew: loop {
            freed.borrow_and_update();
            let member = Member::join(self, wanted.filter.pattern())?;
            let mut from = wanted.after.saturating_add(1);
            let mut coming = loop {
                // What stands by the deadline came in time, whenever it is looked at.
                let late = wanted.deadline.filter(|deadline| *deadline <= self.clock().now());
                let Some(position) = member.position() else {
                    continue 'anew;
                };
                let upto = if late.is_some() { u64::MAX } else { position };
                let found = self.look(wanted, from, upto, late).await?;
                if found.is_some() || late.is_some() {
                    return Ok(found);
                }
                from = from.max(upto.saturating_add(1));
                if let Some(coming) = member.listen(wanted, upto) {
                    break coming;
                }
            };
            tokio::select! {
                biased;
                came = &mut coming => if let Ok(came) = came {
                    return came.map(Some);
                },
                () = &mut timer => {
                    let upto = member.leave();
                    if let Ok(came) = coming.try_recv() {
                        return came.map(Some);
                    }
                    // What another process has committed by now was perhaps not offered yet.
                    let from = upto.map_or(from, |upto| from.max(upto.saturating_add(1)));
                    return self.look(wanted, from, u64::MAX, wanted.deadline).await;
                }
                _ = freed.changed() => {}
            }
        }
    }

    /// The envelope that a recorded answer names: it is there, and it is the one that was written.
    ///
    /// # Errors
    /// A kind of the disk; [`ErrorKind::Corrupt`] if it is not so.
    pub(crate) fn written(&self, reference: &EnvelopeRef) -> Result<Envelope, Error> {
        let resolved = self.resolve(reference).and_then(|envelope| intact(&envelope));
        resolved.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::new(ErrorKind::Corrupt, error),
            _ => error,
        })
    }

    /// The first that is wanted from one `pos` to another, and was committed by `until`.
    async fn look(&self, wanted: &Wanted, from: u64, to: u64, until: Option<Millis>) -> Result<Option<Found>, Error> {
        if from > to {
            return Ok(None);
        }
        let (ledger, Wanted { filter, used, .. }) = (self.clone(), wanted.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let pattern = filter.pattern();
            let select = pattern
                .literal()
                .map_or_else(|| Select::Pattern(pattern.clone()), Select::Topic);
            for envelope in ledger.read(select).from(from).to(to).checked().envelopes() {
                let envelope = envelope?;
                if until.is_some_and(|until| envelope.at > until) {
                    break;
                }
                let meant = filter.selects(&envelope, &OnceCell::new());
                if let Some(hold) = meant.then(|| used.hold(&envelope)).flatten() {
                    return Ok(Some(Found { envelope, hold }));
                }
            }
            Ok(None)
        });
        looked.await.map_err(|error| Error::new(ErrorKind::Io, error))?
    }
}
