use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::{Inbox, Link, Lost, Queue, Transport};
use crate::{Envelope, Error, Result};

/// The transport inside of one process: the buses that were given clones of it hear each other. One of its own, the
/// default, is alone and costs nothing.
///
/// Envelopes are handed over on the thread of whoever publishes.
///
/// ```
/// use std::sync::Arc;
/// use neuron::{Ledger, SystemClock, pipeline::Pipeline, store::Memory, transport::Local};
///
/// let local = Local::default();
/// let open = || {
///     let store = Arc::new(Memory::new()?);
///     Ledger::with_transport(store, Arc::new(SystemClock), Pipeline::default(), Arc::new(local.clone()))
/// };
/// let (one, other) = (open()?, open()?);
/// # use neuron::{Author, Draft, Pattern, RunId, topic::catalog};
/// let run = RunId::new("digest")?;
/// let mut heard = other.bus().listen(Pattern::exactly(&catalog::progress(&run)));
/// one.bus().publish(Draft::new(catalog::progress(&run), Author::cli(), "gauge")?)?;
/// assert!(heard.try_next()?.is_some());
/// # Ok::<(), neuron::BoxError>(())
/// ```
#[derive(Clone, Default)]
pub struct Local(Arc<Mutex<Members>>);

#[derive(Default)]
struct Members {
    list: Vec<Member>,
    /// Who is sent what by whom: the sender's key, then the receiver's.
    admitted: HashSet<(u64, u64)>,
    next_key: u64,
    /// Some thread hands over what waits, and looks again before it stops.
    is_handing_over: bool,
}

struct Member {
    key: u64,
    inbox: Weak<dyn Inbox>,
    queue: Queue<Parcel, Lost>,
}

struct Parcel {
    envelope: Arc<Envelope>,
    is_retained: bool,
}

impl AsRef<Envelope> for Parcel {
    fn as_ref(&self) -> &Envelope {
        &self.envelope
    }
}

impl Members {
    fn next(&mut self) -> Option<(Weak<dyn Inbox>, Result<Parcel, Lost>)> {
        let waiting = self.list.iter_mut().find(|member| !member.queue.is_empty())?;
        let entry = waiting.queue.pop()?;
        Some((waiting.inbox.clone(), entry))
    }
}

impl Local {
    fn members(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over what waits, without any lock, as its receivers take their own.
    fn hand_over(&self) {
        let mut members = self.members();
        if std::mem::replace(&mut members.is_handing_over, true) {
            return;
        }
        while let Some((inbox, entry)) = members.next() {
            drop(members);
            if let Some(inbox) = inbox.upgrade() {
                deliver(&*inbox, entry);
            }
            members = self.members();
        }
        members.is_handing_over = false;
    }
}

fn deliver(inbox: &dyn Inbox, entry: Result<Parcel, Lost>) {
    let delivered = match entry {
        Err(lost) => {
            inbox.lost(&lost);
            Ok(())
        }
        Ok(parcel) if parcel.is_retained => inbox.receive_retained(parcel.envelope),
        Ok(parcel) => inbox.receive(parcel.envelope),
    };
    if let Err(error) = delivered {
        tracing::warn!(%error, "a bus of this process sent what may not be sent");
    }
}

impl Transport for Local {
    fn join(&self, inbox: Weak<dyn Inbox>) -> Result<Box<dyn Link>, Error> {
        let (key, others) = {
            let mut members = self.members();
            let key = members.next_key;
            members.next_key += 1;
            let others: Vec<_> = members
                .list
                .iter()
                .map(|other| (other.key, other.inbox.clone()))
                .collect();
            // They hear it from its first word.
            members.admitted.extend(others.iter().map(|(other, _)| (key, *other)));
            members.list.push(Member {
                key,
                inbox,
                queue: Queue::default(),
            });
            (key, others)
        };
        let link = Box::new(Joined {
            local: self.clone(),
            key,
        });
        for (other, inbox) in others {
            let Some(inbox) = inbox.upgrade() else { continue };
            inbox.welcome(&mut |retained| {
                let mut members = self.members();
                members.admitted.insert((other, key));
                if let Some(newcomer) = members.list.iter_mut().find(|member| member.key == key) {
                    for envelope in retained {
                        let parcel = Parcel {
                            envelope,
                            is_retained: true,
                        };
                        newcomer.queue.push(parcel, 0);
                    }
                }
            });
        }
        self.hand_over();
        Ok(link)
    }
}

#[derive(Debug)]
struct Joined {
    local: Local,
    key: u64,
}

impl Link for Joined {
    fn send(&self, envelope: &Arc<Envelope>, bytes: usize) {
        let mut members = self.local.members();
        let Members { list, admitted, .. } = &mut *members;
        for member in list
            .iter_mut()
            .filter(|member| admitted.contains(&(self.key, member.key)))
        {
            let parcel = Parcel {
                envelope: envelope.clone(),
                is_retained: false,
            };
            member.queue.push(parcel, bytes);
        }
    }

    fn sent(&self) {
        self.local.hand_over();
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut members = self.local.members();
        members.list.retain(|member| member.key != self.key);
        members
            .admitted
            .retain(|(from, to)| *from != self.key && *to != self.key);
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local")
            .field("members", &self.members().list.len())
            .finish()
    }
}
