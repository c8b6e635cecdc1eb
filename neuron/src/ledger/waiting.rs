//! Bodies that wait for an envelope: one listener for each pattern, however many wait for something of it.

use std::cell::OnceCell;

use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::{
    Ledger,
    awaited::{Coming, Found, Wanted, intact},
    subscription::{From, Subscription},
};
use crate::{Envelope, EnvelopeRef, Error, ErrorKind, Millis, Pattern, Result, Topic, store::Select};

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
    number: u64,
}

impl<'a> Member<'a> {
    fn join(ledger: &'a Ledger, pattern: &'a Pattern) -> Result<Self, Error> {
        let awaited = &ledger.0.awaited;
        let number = if let Some(number) = awaited.join(pattern) {
            number
        } else {
            let position = ledger.position(From::Now)?;
            let log = ledger.subscribe(pattern.clone(), From::After(position))?;
            let (number, first) = awaited.open(pattern, position);
            if let Some((id, gone)) = first {
                tokio::spawn(listen(log, ledger.clone(), pattern.clone(), id, gone));
            }
            number
        };
        Ok(Self {
            ledger,
            pattern,
            number,
        })
    }

    fn position(&self) -> Option<u64> {
        self.ledger.0.awaited.position(self.pattern)
    }

    fn listen(&self, wanted: &Wanted, position: u64) -> Option<Coming> {
        self.ledger.0.awaited.listen(wanted, self.number, position)
    }

    fn leave(&self) -> Option<u64> {
        self.ledger.0.awaited.leave(self.pattern, self.number)
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.ledger.0.awaited.quit(self.pattern, self.number);
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
                let meant = filter.selects(&envelope, &OnceCell::new()).then_some(envelope);
                if let Some(found) = meant.and_then(|envelope| Found::hold(envelope, &used)) {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        });
        looked.await.map_err(|error| Error::new(ErrorKind::Io, error))?
    }
}
