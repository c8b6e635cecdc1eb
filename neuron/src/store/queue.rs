//! What waits for a commit.

use std::collections::{HashMap, VecDeque};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Batch;
use crate::{Deferred, Error, ErrorKind, Receipt, Result, limits};

pub(super) type Outcome = Result<Vec<Receipt>, Error>;

/// A batch, and who is told what became of it.
pub(super) struct Waiting {
    pub(super) batch: Batch,
    pub(super) reply: Reply,
    /// Its place in the queue, given back once its commit is over, whether or not somebody still waits for that.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

pub(super) enum Reply {
    Now(oneshot::Sender<Outcome>),
    Deferred(Vec<Deferred>),
}

/// How a deferred append was queued.
#[derive(PartialEq, Eq)]
pub(super) enum Put {
    /// It waits for an append that takes it along.
    Waits,
    /// A whole group waits, which is committed without further delay.
    Full,
}

/// The batches of a process, in the order in which they will be committed.
#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    /// An owner whose deferred append was refused hears of it with its next append. By owned name, with the epoch: who
    /// owns the name anew has lost nothing. Of one without an owner the handle tells: the next to append may be anybody.
    refused: HashMap<String, (u64, Error)>,
    /// Something is deferred that no append may take along.
    unflushed: bool,
    /// How often that has begun to be so.
    begun: u64,
    /// Whoever led gave the lead to the thread that stands by.
    pub(super) handed_over: bool,
    pub(super) closed: bool,
}

impl Queue {
    pub(super) fn push(&mut self, waiting: Waiting) -> Result<(), Error> {
        if self.closed {
            return Err(closed());
        }
        self.waiting.push_back(waiting);
        Ok(())
    }

    /// Queues a deferred append, which cannot wait for room.
    pub(super) fn defer(&mut self, waiting: Waiting) -> Result<Put, Error> {
        if self.waiting.len() >= limits::QUEUE_MAX {
            let (count, max) = (self.waiting.len(), limits::QUEUE_MAX);
            let why = format!("{count} batches wait for a commit and at most {max} may: commits do not keep up");
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        self.push(waiting)?;
        if !std::mem::replace(&mut self.unflushed, true) {
            self.begun += 1;
        }
        Ok(match self.waiting.len() {
            limits::GROUP_MAX.. => Put::Full,
            _ => Put::Waits,
        })
    }

    /// The number of the time that something is deferred now; `None` if nothing is.
    pub(super) fn unflushed(&self) -> Option<u64> {
        self.unflushed.then_some(self.begun)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether what is committed next runs work of the program, which a task must not wait for.
    pub(super) fn takes_long(&self) -> bool {
        self.waiting.front().is_some_and(|next| next.batch.work.is_some())
    }

    /// What one commit takes along.
    pub(super) fn take_group(&mut self) -> Vec<Waiting> {
        let mut envelopes = 0;
        let mut group = Vec::new();
        while let Some(next) = self.waiting.front() {
            envelopes += next.batch.drafts.len();
            // What undoes the whole transaction if it fails has one of its own.
            let alone = next.batch.work.is_some();
            if (envelopes > limits::GROUP_MAX || alone) && !group.is_empty() {
                break;
            }
            group.extend(self.waiting.pop_front());
            if alone {
                break;
            }
        }
        self.unflushed &= !self.waiting.is_empty();
        group
    }

    /// The error an owner has still to hear.
    pub(super) fn refusal(&mut self, waiting: &Waiting) -> Option<Error> {
        if self.refused.is_empty() {
            return None;
        }
        let (name, epoch) = waiting.batch.owner.as_ref()?;
        self.refused
            .remove(name)
            .filter(|(since, _)| since == epoch)
            .map(|(_, error)| error)
    }

    /// Remembers the refusal of a deferred append. An appender that waits hears of its own at once.
    pub(super) fn refuse(&mut self, waiting: &Waiting, error: &Error) {
        if !matches!(waiting.reply, Reply::Deferred(_)) {
            return;
        }
        if let Some((name, epoch)) = &waiting.batch.owner {
            self.refused.insert(name.clone(), (*epoch, error.clone()));
        } else {
            tracing::warn!(%error, "a deferred append without an owner was refused");
        }
    }
}

impl Waiting {
    /// Whether somebody waits for its commit.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.reply, Reply::Now(_))
    }

    /// The places of a deferred append are there for all to see, once its commit has succeeded or failed.
    pub(super) fn confirm(&self) {
        if let Reply::Deferred(handles) = &self.reply {
            handles.iter().for_each(Deferred::confirm);
        }
    }

    /// Fills in the handles of a deferred append.
    pub(super) fn place(&self, outcome: &Outcome) {
        let Reply::Deferred(handles) = &self.reply else { return };
        for (index, handle) in handles.iter().enumerate() {
            handle.settle(
                outcome
                    .as_ref()
                    .map(|receipts| receipts[index].clone())
                    .map_err(Clone::clone),
            );
        }
    }
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Io, "the store is closed")
}
