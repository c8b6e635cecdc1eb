//! Consumers as anybody may look at them, and parked messages redriven from wherever one is.

use serde::Serialize;

use super::{
    shared::message,
    state::{Progress, State, Waits},
};
use crate::{
    Append, Author, ConsumerId, Digest, Envelope, Error, ErrorKind, Expectation, Kind, Ledger, Millis, Receipt, Result,
    Topic,
    envelope::Cause,
    limits,
    store::Select,
    topic::catalog,
    vocabulary::{
        Message as _,
        consumer::{ConsumerConfigured, ConsumerParked, ConsumerRedriven},
    },
};

/// How a consumer stands on the log. What its process has in hand for the first time is not there: that is no word yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// Its name.
    pub name: ConsumerId,
    /// How it is set up.
    pub config: ConsumerConfigured,
    /// Every message up to and with this `pos` is settled, parked or tried again.
    pub upto: u64,
    /// Messages that wait for their first end; counted to [`limits::CONSUMER_LAG_MAX`].
    pub lag: u64,
    /// Whether there are more than `lag` says.
    pub lags_more: bool,
    /// Messages that are tried again, as far as that is recorded.
    pub in_flight: usize,
    /// Messages that are parked.
    pub parked: usize,
}

/// A parked message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parked {
    /// Its place in the store.
    pub pos: u64,
    /// Its topic.
    pub topic: Topic,
    /// Its place in the topic.
    pub seq: u64,
    /// Its id.
    pub id: Digest,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Deliveries made.
    pub attempts: u32,
    /// Why it was parked.
    pub because: String,
    /// When it was parked.
    pub at: Millis,
}

/// Which parked messages are redriven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redrive {
    /// The one at this `pos`.
    One(u64),
    /// All, oldest first, as many as may wait at once.
    All,
}

/// What a redrive did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redriven {
    /// Where it says so, one receipt per message.
    pub receipts: Vec<Receipt>,
    /// Parked messages that stay parked, because as many as may wait to be handed out do.
    pub left: usize,
}

impl Ledger {
    /// The consumers of the store, by name. Blocks.
    ///
    /// # Errors
    /// A kind of the disk, or [`ErrorKind::Corrupt`].
    pub fn consumers(&self) -> Result<Vec<Standing>, Error> {
        let topics = self.store().topics()?.into_iter();
        let names = topics.filter_map(|summary| {
            let name = summary.topic.as_str().strip_prefix("$consumer.")?;
            ConsumerId::new(name).ok()
        });
        let standings = names.map(|name| self.consumer(&name));
        standings.filter_map(Result::transpose).collect()
    }

    /// One consumer; `None` if there is no such, or no longer. Blocks.
    ///
    /// # Errors
    /// As [`Ledger::consumers`].
    pub fn consumer(&self, name: &ConsumerId) -> Result<Option<Standing>, Error> {
        let state = self.fold(&Progress::new(name.clone()), None)?.state;
        let Some(config) = state.config.clone() else {
            return Ok(None);
        };
        let (lag, lags_more) = lag(self, &state, &config)?;
        Ok(Some(Standing {
            name: name.clone(),
            config,
            upto: state.upto,
            lag,
            lags_more,
            in_flight: state.pending.len(),
            parked: state.parked.len(),
        }))
    }

    /// The parked messages of a consumer, oldest first. Blocks for each a moment.
    ///
    /// # Errors
    /// As [`Ledger::consumers`].
    pub fn parked(&self, name: &ConsumerId) -> Result<impl Iterator<Item = Result<Parked, Error>>, Error> {
        let state = self.fold(&Progress::new(name.clone()), None)?.state;
        let (ledger, topic) = (self.clone(), catalog::consumer(name));
        Ok(state.parked.into_iter().map(move |pos| parked(&ledger, &topic, pos)))
    }

    /// Lets a consumer have parked messages again, their deliveries counted from 1. The consumer need not be open, and
    /// may be in any process.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such consumer or that message is not parked, [`ErrorKind::TooLarge`] if
    /// [`limits::CONSUMER_REDRIVEN_MAX`] redriven messages wait to be handed out already; as [`Ledger::append`].
    pub async fn redrive(
        &self,
        name: &ConsumerId,
        which: Redrive,
        author: &Author,
        because: Option<&str>,
    ) -> Result<Redriven, Error> {
        loop {
            let Some((append, left)) = self.redriving(name, which, author, because)? else {
                return Ok(Redriven::default());
            };
            match self.append(append).await {
                // Somebody else redrove one of them meanwhile: look again.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                receipts => return receipts.map(|receipts| Redriven { receipts, left }),
            }
        }
    }

    /// As [`Ledger::redrive`], from a thread that may block.
    ///
    /// # Errors
    /// As [`Ledger::redrive`].
    pub fn redrive_blocking(
        &self,
        name: &ConsumerId,
        which: Redrive,
        author: &Author,
        because: Option<&str>,
    ) -> Result<Redriven, Error> {
        loop {
            let Some((append, left)) = self.redriving(name, which, author, because)? else {
                return Ok(Redriven::default());
            };
            match self.append_blocking(append) {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                receipts => return receipts.map(|receipts| Redriven { receipts, left }),
            }
        }
    }

    fn redriving(
        &self,
        name: &ConsumerId,
        which: Redrive,
        author: &Author,
        because: Option<&str>,
    ) -> Result<Option<(Append, usize)>, Error> {
        let state = self.fold(&Progress::new(name.clone()), None)?.state;
        let absent = |why: String| Err(Error::new(ErrorKind::NotFound, why));
        if state.config.is_none() {
            return absent(format!("there is no consumer `{name}` in this store"));
        }
        let wanted: Vec<u64> = match which {
            Redrive::One(pos) if !state.parked.contains(&pos) => {
                return absent(format!("consumer `{name}` has no parked message at pos {pos}"));
            }
            Redrive::One(pos) => vec![pos],
            Redrive::All => state.parked.iter().copied().collect(),
        };
        if wanted.is_empty() {
            return Ok(None);
        }
        let waiting = state
            .pending
            .values()
            .filter(|pending| pending.waits == Waits::Turn)
            .count();
        let room = limits::CONSUMER_REDRIVEN_MAX.saturating_sub(waiting);
        if room == 0 {
            let max = limits::CONSUMER_REDRIVEN_MAX;
            let why = format!(
                "{max} redriven messages of consumer `{name}` wait to be handed out: redrive more when it has taken them up"
            );
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        let left = wanted.len().saturating_sub(room);
        let topic = catalog::consumer(name);
        let mut append = Append::default();
        for pos in wanted.into_iter().take(room) {
            let key = pos.to_string();
            let seq = self.store().keyed(&topic, &key)?;
            let word = ConsumerRedriven {
                pos,
                because: because.map(Into::into),
            };
            let cause = Cause::Envelope(message(self, pos)?.reference());
            append.drafts.push(
                word.draft(topic.clone(), author.clone())?
                    .key(key.clone())?
                    .cause(cause),
            );
            append = append.expect(Expectation::Key(topic.clone(), key, seq));
        }
        Ok(Some((append, left)))
    }
}

fn parked(ledger: &Ledger, topic: &Topic, pos: u64) -> Result<Parked, Error> {
    let key = pos.to_string();
    let words = ledger
        .read(Select::Key(topic.clone(), key.into()))
        .newest_first()
        .envelopes();
    let lost = || {
        Error::new(
            ErrorKind::Corrupt,
            format!("{topic} does not say why pos {pos} is parked"),
        )
    };
    let mut words = words.map(|word| {
        let word: Envelope = word?;
        Ok::<_, Error>(ConsumerParked::read(&word)?.map(|parked| (word.at, parked)))
    });
    let found = words.find_map(Result::transpose).transpose()?;
    let (at, ConsumerParked { attempts, because, .. }) = found.ok_or_else(lost)?;
    let message = message(ledger, pos)?;
    Ok(Parked {
        pos,
        id: message.id(),
        topic: message.topic,
        seq: message.seq,
        kind: message.body.kind,
        attempts,
        because,
        at,
    })
}

/// How many messages wait for their first end, and whether there are more than are counted.
fn lag(ledger: &Ledger, state: &State, config: &ConsumerConfigured) -> Result<(u64, bool), Error> {
    let pattern = &config.pattern;
    let select = pattern
        .literal()
        .map_or_else(|| Select::Pattern(pattern.clone()), Select::Topic);
    let mut lag = 0;
    for envelope in ledger.read(select).from(state.upto + 1).envelopes() {
        let envelope = envelope?;
        if config.selects(&envelope) && !state.is_settled(envelope.pos) && !state.pending.contains_key(&envelope.pos) {
            if lag == limits::CONSUMER_LAG_MAX {
                return Ok((lag, true));
            }
            lag += 1;
        }
    }
    Ok((lag, false))
}
