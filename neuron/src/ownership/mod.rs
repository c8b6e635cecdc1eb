//! Who may write for a run: one owner per name, fenced by an epoch.
//!
//! A process incarnation holds one slot beside the store, locked by the kernel until it dies, and a heartbeat in it.
//! Claims, hand-overs and releases are envelopes on `$leases`; renewals never are. A dead holder is taken over at once, a
//! hung one (lock held, heartbeat standing still) after three polls. No wall clock is compared: the log decides.
//!
//! What is measured is measured by clocks that stand still while the machine is suspended, and a claimant that was stopped
//! itself, alone or with everybody, begins to count anew: nobody is taken for hung because all slept.

mod lease;
mod slot;
mod stale;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    Append, Author, Draft, Error, ErrorKind, Expectation, Ledger, Result, limits, store::Select, topic::catalog,
};

pub use lease::{Claimed, LeaseClaimed, LeaseReleased, Takeover};
pub use slot::Peer;
pub(crate) use slot::folder;
use slot::{Liveness, Slots};
pub(crate) use stale::{remove_if_stale, stale};

/// The claims of one process on one store. Cheap to clone.
#[derive(Clone)]
pub struct Ownership(Arc<Inner>);

struct Inner {
    ledger: Ledger,
    slots: Slots,
    ttl: Duration,
    held: Mutex<HashMap<String, u64>>,
    /// Given back, by their epochs, while the log still says that they are held: their release could not be written.
    left: Mutex<HashMap<String, u64>>,
}

/// What stands on `$leases` about a name.
enum Standing {
    Free {
        seq: Option<u64>,
        epoch: u64,
    },
    Held {
        seq: u64,
        epoch: u64,
        incarnation: String,
        from: Takeover,
    },
}

impl Ownership {
    /// Takes a slot for this process. `ttl` / 3 is the distance of the three polls after which a hung holder is taken
    /// over; the heartbeat beats three times in that distance.
    ///
    /// # Errors
    /// A kind of the disk if the slot cannot be made.
    pub fn join(ledger: Ledger, ttl: Duration) -> Result<Self, Error> {
        let slots = Slots::join(ledger.store().path(), ttl / 9)?;
        Ok(Self(Arc::new(Inner {
            ledger,
            slots,
            ttl,
            held: Mutex::default(),
            left: Mutex::default(),
        })))
    }

    /// The ledger on which this process claims.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// The incarnation under which this process claims.
    pub fn incarnation(&self) -> &str {
        self.0.slots.incarnation()
    }

    /// The incarnations that live on this store, this one included: those to which a name can be handed over.
    ///
    /// ```
    /// use neuron::{Ledger, ownership::Ownership, store::Options};
    /// # let folder = tempfile::tempdir()?;
    /// let ledger = Ledger::open(folder.path().join("owned.db"), Options::default())?;
    /// let own = Ownership::join(ledger, std::time::Duration::from_secs(9))?;
    /// assert_eq!(own.peers()[0].incarnation, own.incarnation());
    /// # Ok::<(), neuron::BoxError>(())
    /// ```
    pub fn peers(&self) -> Vec<Peer> {
        self.0.slots.living()
    }

    /// As if this process were dead: what it owns is free to be taken over at once, while whatever of it still runs is
    /// fenced. For a process that a test crashes and whose tasks nobody can end. Feature `testing`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use neuron::{Ledger, ownership::{Ownership, Takeover}, store::Options};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), neuron::BoxError> {
    /// # let folder = tempfile::tempdir()?;
    /// let ledger = Ledger::open(folder.path().join("owned.db"), Options::default())?;
    /// let crashed = Ownership::join(ledger.clone(), Duration::from_secs(9))?;
    /// crashed.claim("run:a").await?;
    /// crashed.die();
    /// let next = Ownership::join(ledger, Duration::from_secs(9))?;
    /// assert_eq!(next.claim("run:a").await?.from, Takeover::Dead);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "testing")]
    pub fn die(&self) {
        self.0.slots.leave();
    }

    /// Claims a name, if it is free or its holder is dead. Gives the epoch under which to write.
    ///
    /// # Errors
    /// [`ErrorKind::Owned`] naming the holder if it is alive, or hung but not yet polled long enough: see
    /// [`Ownership::claim_when_free`].
    pub async fn claim(&self, name: &str) -> Result<Claimed, Error> {
        loop {
            match self.standing(name)? {
                Standing::Free { seq, epoch } => {
                    if let Some(claimed) = self.take(name, seq, epoch, Takeover::Free).await? {
                        return Ok(claimed);
                    }
                }
                Standing::Held {
                    seq,
                    epoch,
                    incarnation,
                    from,
                } if incarnation == self.incarnation() => {
                    if self.left().get(name) != Some(&epoch) {
                        let known = self.held().insert(name.into(), epoch) == Some(epoch);
                        let is_news = !known && from == Takeover::HandedOver;
                        return Ok(Claimed {
                            name: name.into(),
                            epoch,
                            from: if is_news { Takeover::HandedOver } else { Takeover::Own },
                        });
                    }
                    // It was given back and that did not get onto the log: what still writes under it is fenced.
                    if let Some(claimed) = self.take(name, Some(seq), epoch, Takeover::Own).await? {
                        return Ok(claimed);
                    }
                }
                Standing::Held {
                    seq,
                    epoch,
                    incarnation,
                    ..
                } => match self.0.slots.liveness(&incarnation)? {
                    Liveness::Dead => {
                        if let Some(claimed) = self.take(name, Some(seq), epoch, Takeover::Dead).await? {
                            return Ok(claimed);
                        }
                    }
                    Liveness::Alive { pid, .. } => return Err(held_by(name, &incarnation, pid)),
                },
            }
        }
    }

    /// Claims a name, waiting for its holder to release it, to die, or to prove hung: three polls, a third of the ttl
    /// apart by this process's monotonic clock, in which its heartbeat stands still.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn claim_when_free(&self, name: &str) -> Result<Claimed, Error> {
        let (mut watched, mut still) = (None, 0);
        let poll = self.0.ttl / 3;
        loop {
            let began = Instant::now();
            if let Some(claimed) = self.look_for(name, poll).await? {
                return Ok(claimed);
            }
            if began.elapsed() > poll * 2 {
                // This process was stopped itself, perhaps with the whole machine: nobody could beat, so nothing was seen.
                (watched, still) = (None, 0);
                continue;
            }
            let Standing::Held {
                seq,
                epoch,
                incarnation,
                ..
            } = self.standing(name)?
            else {
                continue;
            };
            match self.0.slots.liveness(&incarnation)? {
                // Whoever asks runs in the same process, so it does not hang.
                Liveness::Alive { pid, .. } if pid == std::process::id() => {}
                Liveness::Alive { beat, .. } => {
                    let sight = Some((incarnation, epoch, beat));
                    still = if sight == watched { still + 1 } else { 0 };
                    watched = sight;
                }
                Liveness::Dead => continue,
            }
            if still >= 3 {
                if let Some(claimed) = self.take(name, Some(seq), epoch, Takeover::Hung).await? {
                    return Ok(claimed);
                }
                (watched, still) = (None, 0);
            }
        }
    }

    /// Claims a name as soon as it is free or its holder dead, for as long as one poll lasts.
    async fn look_for(&self, name: &str, poll: Duration) -> Result<Option<Claimed>, Error> {
        let mut left = poll;
        loop {
            match self.claim(name).await {
                Err(error) if error.kind() == ErrorKind::Owned => {}
                settled => return settled.map(Some),
            }
            let pause = left.min(limits::OWNER_LOOK);
            if pause.is_zero() {
                return Ok(None);
            }
            tokio::time::sleep(pause).await;
            left -= pause;
        }
    }

    /// Lets go of a name that will never be owned again, without a word on the log: what it stood for has ended.
    pub fn forget(&self, name: &str) {
        self.held().remove(name);
    }

    /// Lets go of a name without a word on the log, as whoever worked under it may still write: the next claim of this
    /// process gets a new epoch, which fences that. Others wait for the end of this process.
    pub fn abandon(&self, name: &str) {
        let held = self.held().remove(name);
        if let Some(epoch) = held {
            self.left().insert(name.into(), epoch);
        }
    }

    /// Gives a name back. If that cannot be written, others wait for the end of this process, while a new claim of this
    /// one gets a new epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] if somebody has taken it over meanwhile; a kind of the disk.
    pub async fn release(&self, name: &str) -> Result<(), Error> {
        let held = self.held().remove(name);
        let Some(epoch) = held else { return Ok(()) };
        let message = LeaseReleased {
            name: name.into(),
            incarnation: self.incarnation().into(),
            epoch,
        };
        let draft = Draft::message(catalog::leases(), Author::engine(), &message)?.key(name)?;
        let released = self.0.ledger.append(Append::of([draft]).owner(name, epoch)).await;
        if released.as_ref().is_err_and(|error| error.kind() != ErrorKind::Fenced) {
            self.left().insert(name.into(), epoch);
        }
        released.map(|_| ())
    }

    /// Hands a name that this process owns over to another living incarnation: in one envelope the old epoch ends and the
    /// new one, which is the other's, begins. From then on every append under the old one is refused, and nobody can come
    /// between. The other finds the name its own when it claims it; until it does, or dies, the name is not worked on.
    /// Gives the new epoch.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if this process does not own the name; [`ErrorKind::NotFound`] if the other does not live;
    /// [`ErrorKind::Fenced`] if somebody has taken the name over meanwhile; a kind of the disk.
    pub async fn hand_over(&self, name: &str, to: &str) -> Result<u64, Error> {
        let Some(epoch) = self.held().get(name).copied() else {
            let why = format!("`{name}` is not owned by this process, so it cannot hand it over: claim it first");
            return Err(Error::new(ErrorKind::Misuse, why));
        };
        if to == self.incarnation() {
            return Ok(epoch);
        }
        if matches!(self.0.slots.liveness(to)?, Liveness::Dead) {
            let why = format!("there is no living incarnation `{to}` to hand `{name}` over to");
            return Err(Error::new(ErrorKind::NotFound, why));
        }
        let message = LeaseClaimed {
            name: name.into(),
            incarnation: to.into(),
            epoch: epoch + 1,
            from: Takeover::HandedOver,
        };
        let draft = Draft::message(catalog::leases(), Author::engine(), &message)?.key(name)?;
        let handed = self.0.ledger.append(Append::of([draft]).owner(name, epoch)).await;
        if handed.is_ok() || handed.as_ref().is_err_and(|error| error.kind() == ErrorKind::Fenced) {
            let mut held = self.held();
            if held.get(name) == Some(&epoch) {
                held.remove(name);
            }
        }
        handed.map(|_| epoch + 1)
    }

    async fn take(&self, name: &str, seq: Option<u64>, epoch: u64, from: Takeover) -> Result<Option<Claimed>, Error> {
        let epoch = epoch + 1;
        let message = LeaseClaimed {
            name: name.into(),
            incarnation: self.incarnation().into(),
            epoch,
            from,
        };
        let draft = Draft::message(catalog::leases(), Author::engine(), &message)?.key(name)?;
        let unchanged = Expectation::Key(catalog::leases(), name.into(), seq);
        match self.0.ledger.append(Append::of([draft]).expect(unchanged)).await {
            Ok(_) => {
                self.left().remove(name);
                self.held().insert(name.into(), epoch);
                Ok(Some(Claimed {
                    name: name.into(),
                    epoch,
                    from,
                }))
            }
            // Somebody else was first: look again.
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn standing(&self, name: &str) -> Result<Standing, Error> {
        let topic = catalog::leases();
        let last = self
            .0
            .ledger
            .read(Select::Key(topic, name.into()))
            .newest_first()
            .limit(1)
            .envelopes()
            .next();
        let Some(last) = last.transpose()? else {
            return Ok(Standing::Free { seq: None, epoch: 0 });
        };
        let seq = last.seq;
        if last.body.kind == <LeaseReleased as crate::vocabulary::Message>::TYPE {
            let released: LeaseReleased = last.decode()?;
            return Ok(Standing::Free {
                seq: Some(seq),
                epoch: released.epoch,
            });
        }
        let LeaseClaimed {
            incarnation,
            epoch,
            from,
            ..
        } = last.decode()?;
        Ok(Standing::Held {
            seq,
            epoch,
            incarnation,
            from,
        })
    }

    fn left(&self) -> std::sync::MutexGuard<'_, HashMap<String, u64>> {
        self.0.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<String, u64>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn held_by(name: &str, incarnation: &str, pid: u32) -> Error {
    let why = format!("`{name}` is owned by process {pid} (incarnation {incarnation}), which is alive");
    Error::new(ErrorKind::Owned, why).with(&pid)
}

impl fmt::Debug for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ownership")
            .field("incarnation", &self.incarnation())
            .finish_non_exhaustive()
    }
}
