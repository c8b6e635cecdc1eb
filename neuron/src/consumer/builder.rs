use std::{fmt, sync::Arc, time::Duration};

use super::{
    desk::Desk,
    event::Event,
    keeper::{Keeper, Seat},
    open::Consumer,
    shared::{Shared, lease, message},
    state::{Progress, State},
};
use crate::{
    Append, ConsumerId, Error, ErrorKind, Json, Kind, Pattern, Result,
    fold::Folded,
    ledger::From,
    limits,
    ownership::{Claimed, Ownership, Takeover},
    topic::catalog,
    vocabulary::consumer::{ConsumerConfigured, ConsumerDeleted, ConsumerReset, Order},
};

/// A consumer by its name: how it is to be set up, and what can be done with it while nobody has it open.
///
/// ```
/// # use std::time::Duration;
/// # use neuron::{Ledger, Pattern, consumer::Order, ledger::From, ownership::Ownership};
/// # async fn show(ledger: Ledger) -> Result<(), neuron::Error> {
/// let process = Ownership::join(ledger, neuron::limits::OWNER_TTL)?;
/// let mut mailer = process
///     .consumer("mailer")?
///     .pattern(Pattern::new("orders.*")?)
///     .from(From::Ago(Duration::from_hours(24)))
///     .max_deliveries(4)
///     .schedule([Duration::from_secs(1), Duration::from_mins(1)])
///     .order(Order::Topic)
///     .open()
///     .await?;
/// while let Ok(delivery) = mailer.next().await {
///     println!("{}", delivery.envelope().id());
///     delivery.ack().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Builder {
    ownership: Ownership,
    name: ConsumerId,
    from: From,
    config: ConsumerConfigured,
}

impl Ownership {
    /// The durable consumer of this name. It begins with the first envelope of all topics, is handed a message at most 5
    /// times, after 1 s, 5 s, 30 s and 2 min, has 64 messages in flight and 30 s for each.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the name is not 1 to 96 bytes of `A-Za-z0-9_-`.
    pub fn consumer(&self, name: &str) -> Result<Builder, Error> {
        Ok(Builder {
            ownership: self.clone(),
            name: ConsumerId::new(name)?,
            from: From::Start,
            config: ConsumerConfigured {
                after: 0,
                pattern: Pattern::all(),
                types: Vec::new(),
                headers: std::collections::BTreeMap::new(),
                order: Order::Free,
                max_deliveries: 5,
                schedule_ms: vec![1_000, 5_000, 30_000, 120_000],
                in_flight: 64,
                ack_wait_ms: 30_000,
            },
        })
    }
}

impl Builder {
    /// Which topics it is given.
    #[must_use]
    pub fn pattern(mut self, pattern: Pattern) -> Self {
        self.config.pattern = pattern;
        self
    }

    /// Only messages of this type; called again, of any of them.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        if !self.config.types.contains(&kind) {
            self.config.types.push(kind);
            self.config.types.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        }
        self
    }

    /// Only messages whose birth header `key` has this value; called again, all of them.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the value has no canonical form.
    pub fn header(mut self, key: &str, value: &impl serde::Serialize) -> Result<Self, Error> {
        self.config.headers.insert(key.into(), Json::of(value)?);
        Ok(self)
    }

    /// Where it begins when it is made. A consumer that exists goes on where it stands.
    #[must_use]
    pub fn from(mut self, from: From) -> Self {
        self.from = from;
        self
    }

    /// Which messages wait for which.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.config.order = order;
        self
    }

    /// How often a message is handed out before it is parked; at least once.
    #[must_use]
    pub fn max_deliveries(mut self, count: u32) -> Self {
        self.config.max_deliveries = count;
        self
    }

    /// How long the second and further deliveries wait; the last one repeats. None: they do not wait.
    #[must_use]
    pub fn schedule(mut self, waits: impl IntoIterator<Item = Duration>) -> Self {
        self.config.schedule_ms = waits.into_iter().map(millis).collect();
        self
    }

    /// Messages that are handed out or wait to be tried again, together; 1 to [`limits::CONSUMER_IN_FLIGHT_MAX`]. When
    /// so many are, no new one is handed out.
    #[must_use]
    pub fn in_flight(mut self, count: u32) -> Self {
        self.config.in_flight = count;
        self
    }

    /// How long a delivery may take: if it has not ended by then the message is handed out again. Measured by this
    /// process's monotonic clock.
    #[must_use]
    pub fn ack_wait(mut self, wait: Duration) -> Self {
        self.config.ack_wait_ms = millis(wait);
        self
    }

    /// Opens it, waiting until no other process and no other part of this one has it open: a stand-by. A holder that
    /// died is taken over at once, one that hangs after three polls.
    ///
    /// How often, after which waits, how many and for how long messages are handed out may differ from what is recorded,
    /// and is then recorded anew. Which messages it is given and in which order is fixed when it is made.
    ///
    /// # Errors
    /// [`ErrorKind::Contract`] if it exists and is given other messages or in another order;
    /// [`ErrorKind::Misuse`] for a setup out of bounds or a pattern that selects the consumer's own topic; a kind of the
    /// disk.
    pub async fn open(self) -> Result<Consumer, Error> {
        self.check(&self.state()?.state)?;
        let (seat, claimed) = self.claim_when_free().await?;
        self.opened(seat, claimed).await
    }

    /// As [`Builder::open`], but waits for nobody.
    ///
    /// # Errors
    /// As [`Builder::open`], and [`ErrorKind::Owned`] naming the holder if there is one.
    pub async fn try_open(self) -> Result<Consumer, Error> {
        self.check(&self.state()?.state)?;
        let (seat, claimed) = self.claim().await?;
        self.opened(seat, claimed).await
    }

    /// Lets it go on elsewhere. What is tried again is forgotten, and so is what is parked beyond that place, for it
    /// comes again; what is parked before it stays parked. The word stands on the log like any other.
    ///
    /// # Errors
    /// [`ErrorKind::Owned`] naming the holder while somebody has it open, [`ErrorKind::NotFound`] if there is no such
    /// consumer, a kind of the disk.
    pub async fn reset(self, to: From) -> Result<(), Error> {
        let after = self.ownership.ledger().position(to)?;
        self.word(Event::Reset(ConsumerReset { after })).await
    }

    /// Ends it: its position, what is tried again and what is parked are forgotten, and its name may be used anew. Its
    /// topic stays on the log, as everything does.
    ///
    /// # Errors
    /// As [`Builder::reset`].
    pub async fn delete(self) -> Result<(), Error> {
        self.word(Event::Deleted(ConsumerDeleted {})).await
    }

    async fn word(&self, word: Event) -> Result<(), Error> {
        let (_seat, claimed) = self.claim().await?;
        let said = match self.state() {
            Ok(Folded { state, .. }) if state.config.is_none() => {
                let why = format!("there is no consumer `{}` in this store", self.name);
                Err(Error::new(ErrorKind::NotFound, why))
            }
            Ok(_) => self.say(&word, &claimed).await,
            Err(error) => Err(error),
        };
        let released = self.ownership.release(&claimed.name).await;
        said.and(released)
    }

    async fn say(&self, event: &Event, claimed: &Claimed) -> Result<(), Error> {
        let draft = event.draft(&catalog::consumer(&self.name))?;
        let append = Append::of([draft]).owner(claimed.name.clone(), claimed.epoch);
        self.ownership.ledger().append(append).await.map(drop)
    }

    fn state(&self) -> Result<Folded<State>, Error> {
        self.ownership.ledger().fold(&Progress::new(self.name.clone()), None)
    }

    async fn claim_when_free(&self) -> Result<(Seat, Claimed), Error> {
        let seat = loop {
            match Seat::take(&self.ownership, &self.name) {
                Some(seat) => break seat,
                None => tokio::time::sleep(limits::OWNER_LOOK).await,
            }
        };
        loop {
            let claimed = self.ownership.claim_when_free(&lease(&self.name)).await?;
            if self.is_new(&claimed).await? {
                return Ok((seat, claimed));
            }
        }
    }

    async fn claim(&self) -> Result<(Seat, Claimed), Error> {
        let seat = Seat::take(&self.ownership, &self.name).ok_or_else(|| {
            let why = format!("consumer `{}` is open already, in this process", self.name);
            Error::new(ErrorKind::Owned, why).with(&std::process::id())
        })?;
        loop {
            let claimed = self.ownership.claim(&lease(&self.name)).await?;
            if self.is_new(&claimed).await? {
                return Ok((seat, claimed));
            }
        }
    }

    /// Whether a claim has an epoch that no earlier consumer of this process had; gives it back if not, so that what such
    /// a one has left in hand cannot write.
    async fn is_new(&self, claimed: &Claimed) -> Result<bool, Error> {
        if claimed.from != Takeover::Own {
            return Ok(true);
        }
        self.ownership.release(&claimed.name).await.map(|()| false)
    }

    async fn opened(self, seat: Seat, claimed: Claimed) -> Result<Consumer, Error> {
        let opened = self.begin(seat, &claimed).await;
        if opened.is_err() {
            // Nothing was handed out yet; if this fails too, the end of the process frees the name.
            let _ = self.ownership.release(&claimed.name).await;
        }
        opened
    }

    async fn begin(&self, seat: Seat, claimed: &Claimed) -> Result<Consumer, Error> {
        let ledger = self.ownership.ledger();
        let Folded { mut state, upto } = self.state()?;
        let config = self.check(&state)?;
        if state.config.as_ref() != Some(&config) {
            let event = Event::Configured(config.clone());
            self.say(&event, claimed).await?;
            state.apply(&event);
        }
        let feed = ledger.subscribe(config.pattern.clone(), From::After(state.upto))?;
        let words = ledger.subscribe(Pattern::exactly(&catalog::consumer(&self.name)), From::After(upto))?;
        let pending: Vec<u64> = state.pending.keys().copied().collect();
        let after_death = matches!(claimed.from, Takeover::Dead | Takeover::Hung);
        let desk = Desk::new(state, config.clone(), after_death);
        let shared = Arc::new(Shared::new(ledger.clone(), self.name.clone(), claimed.epoch, desk));
        for pos in pending {
            let reference = message(ledger, pos)?.reference();
            shared.desk().resume(pos, reference, shared.now());
        }
        let keeper = Keeper {
            shared: shared.clone(),
            ownership: self.ownership.clone(),
            words,
            _seat: seat,
        };
        Ok(Consumer::new(shared, feed, config, tokio::spawn(keeper.keep())))
    }

    /// The setup under which it goes on, or why it cannot.
    fn check(&self, state: &State) -> Result<ConsumerConfigured, Error> {
        let wanted = &self.config;
        bounds(wanted, &self.name)?;
        let Some(recorded) = &state.config else {
            let after = self.ownership.ledger().position(self.from)?;
            return Ok(ConsumerConfigured {
                after,
                ..wanted.clone()
            });
        };
        let show = |config: &ConsumerConfigured| {
            let types: Vec<_> = config.types.iter().map(Kind::as_str).collect();
            let (pattern, headers, order) = (&config.pattern, &config.headers, config.order);
            let headers: Vec<_> = headers
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str()))
                .collect();
            format!("pattern `{pattern}`, types {types:?}, headers {headers:?}, order {order:?}")
        };
        let (was, is) = (show(recorded), show(wanted));
        if was != is {
            let why = format!(
                "consumer `{}` exists with {was}; it was to be opened with {is}: what it is given is fixed, so use another name or delete it first",
                self.name
            );
            return Err(Error::new(ErrorKind::Contract, why));
        }
        let after = recorded.after;
        Ok(ConsumerConfigured {
            after,
            ..wanted.clone()
        })
    }
}

fn bounds(config: &ConsumerConfigured, name: &ConsumerId) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::new(ErrorKind::Misuse, format!("consumer `{name}`: {why}")));
    let (most, waits) = (limits::CONSUMER_IN_FLIGHT_MAX, limits::CONSUMER_SCHEDULE_MAX);
    if config.pattern.matches(&catalog::consumer(name)) {
        return refuse(format!(
            "pattern `{}` selects what it says itself, which would never end",
            config.pattern
        ));
    }
    if config.max_deliveries == 0 {
        return refuse("a message is handed out at least once: give at least 1 delivery".into());
    }
    if !(1..=most).contains(&config.in_flight) {
        return refuse(format!("{} messages in flight: use 1 to {most}", config.in_flight));
    }
    if config.schedule_ms.len() > waits {
        return refuse(format!(
            "a schedule of {} waits: use at most {waits}",
            config.schedule_ms.len()
        ));
    }
    if config.ack_wait_ms == 0 {
        return refuse("no delivery ends in no time: give an ack wait of at least 1 ms".into());
    }
    Ok(())
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
