//! What must hold of a log, whoever wrote it: told from what the actors tried and what they were answered.

use std::collections::{BTreeMap, HashMap};

use neuron::{
    Digest, Envelope, Millis, Receipt, Topic,
    ownership::LeaseClaimed,
    store::{Row, verify::Head},
    topic::catalog,
    vocabulary::Message as _,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::actor::{CONSUMED, CONSUMER, EFFECTS, OWNED};

/// What an actor writes: one word that nobody else ever writes, and a number if it is a register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Said {
    pub(crate) word: String,
    pub(crate) value: Option<u64>,
}

/// What its writer was told of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing: it was deferred, or everybody died first.
    Nothing,
    /// It stands.
    Stands,
    /// It was refused.
    Refused,
}

struct Batch {
    told: Told,
    words: usize,
    seen: usize,
}

/// The log as far as it was looked at, and everything that was ever tried.
#[derive(Default)]
pub(crate) struct Oracle {
    log: Vec<(Topic, Digest)>,
    story: Vec<String>,
    head: Head,
    at: Millis,
    seqs: HashMap<Topic, u64>,
    registers: BTreeMap<String, u64>,
    epochs: HashMap<String, u64>,
    batches: Vec<Batch>,
    words: HashMap<String, (usize, bool)>,
    /// The effect of each message, by the place of both.
    effects: BTreeMap<u64, u64>,
    heads: Vec<Head>,
}

/// What is wrong, in words.
pub(crate) type Verdict = Result<(), String>;

fn hold(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

impl Oracle {
    pub(crate) fn len(&self) -> u64 {
        self.log.len() as u64
    }

    /// The ids of a pattern's envelopes, in order.
    pub(crate) fn log(&self) -> &[(Topic, Digest)] {
        &self.log
    }

    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// Heads that were kept elsewhere now and then.
    pub(crate) fn heads(&self) -> &[Head] {
        &self.heads
    }

    pub(crate) fn keep_head(&mut self) {
        self.heads.push(self.head);
    }

    /// The newest epoch of an owned name.
    pub(crate) fn epoch(&self, name: &str) -> u64 {
        self.epochs.get(name).copied().unwrap_or(0)
    }

    /// Somebody is about to append these words as one batch.
    pub(crate) fn tries<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> usize {
        let batch = self.batches.len();
        let mut count = 0;
        for word in words {
            let fresh = self.words.insert(word.to_owned(), (batch, false)).is_none();
            assert!(fresh, "the simulation says `{word}` twice");
            count += 1;
        }
        self.batches.push(Batch {
            told: Told::Nothing,
            words: count,
            seen: 0,
        });
        batch
    }

    pub(crate) fn told(&mut self, batch: usize, told: Told) {
        self.batches[batch].told = told;
    }

    /// A receipt names what stands, where it stands.
    pub(crate) fn receipt(&self, receipt: &Receipt) -> Verdict {
        let place = usize::try_from(receipt.pos - 1).unwrap();
        let found = self.log.get(place);
        hold(found == Some(&(receipt.topic.clone(), receipt.id)), || {
            format!("the receipt {receipt:?} stands for {found:?}")
        })
    }

    /// The next row of the log.
    pub(crate) fn take(&mut self, row: &Row) -> Verdict {
        let envelope = row.envelope().map_err(|error| error.to_string())?;
        hold(row.pos == self.len() + 1, || {
            format!("pos {} follows {}", row.pos, self.len())
        })?;
        let seq = self.seqs.entry(row.topic.clone()).or_default();
        *seq += 1;
        hold(row.seq == *seq, || {
            format!("{} seq {} is not {seq}", row.topic, row.seq)
        })?;
        hold(row.at >= self.at, || format!("at fell from {} to {}", self.at, row.at))?;
        hold(envelope.is_intact().unwrap_or(false), || {
            format!("pos {} is not intact", row.pos)
        })?;
        hold(envelope.headers.iter().all(|header| header.at <= row.at), || {
            format!("a birth header of pos {} is later than it", row.pos)
        })?;
        hold(envelope.parent_seq.is_none_or(|parent| parent < row.seq), || {
            format!("the parent of pos {} is not before it", row.pos)
        })?;
        self.cause(row, &envelope)?;
        self.owner(&envelope)?;
        let word = if row.topic.is_reserved() {
            row.kind.to_string()
        } else {
            self.said(row, &envelope)?
        };
        self.story.push(format!("{} {word}", row.topic));
        self.at = row.at;
        self.head = self.head.then(row.id);
        self.log.push((row.topic.clone(), row.id));
        Ok(())
    }

    fn cause(&self, row: &Row, envelope: &Envelope) -> Verdict {
        let Some(cause) = envelope.cause() else {
            return hold(row.cause.is_none(), || {
                format!("pos {} has a cause in its column alone", row.pos)
            });
        };
        let place = row.cause.and_then(|pos| self.log.get(usize::try_from(pos - 1).ok()?));
        hold(place == Some(&(cause.topic.clone(), cause.id)), || {
            format!(
                "the cause of pos {} is {cause:?}, its column leads to {place:?}",
                row.pos
            )
        })
    }

    fn owner(&mut self, envelope: &Envelope) -> Verdict {
        if let Some(epoch) = envelope.headers.decode::<u64>("epoch")
            && !envelope.topic.is_reserved()
        {
            // A consumer writes its effects under its own epoch.
            let consumer = format!("consumer:{CONSUMER}");
            let is_effect = envelope.topic.as_str() == EFFECTS;
            let newest = self.epoch(if is_effect { &consumer } else { OWNED });
            hold(epoch == newest, || {
                format!("epoch {epoch} wrote pos {} under epoch {newest}", envelope.pos)
            })?;
        }
        if envelope.topic == catalog::leases() && envelope.body.kind == LeaseClaimed::TYPE {
            let claimed: LeaseClaimed = envelope.decode().map_err(|error| error.to_string())?;
            let newest = self.epoch(&claimed.name);
            hold(claimed.epoch == newest + 1, || {
                format!("epoch {} follows {newest}", claimed.epoch)
            })?;
            self.epochs.insert(claimed.name, claimed.epoch);
        }
        Ok(())
    }

    fn said(&mut self, row: &Row, envelope: &Envelope) -> Result<String, String> {
        let said: Said = envelope.decode().map_err(|error| error.to_string())?;
        let Some((batch, seen)) = self.words.get_mut(&said.word) else {
            return Err(format!("nobody ever wrote `{}` (pos {})", said.word, row.pos));
        };
        hold(!std::mem::replace(seen, true), || {
            format!("`{}` stands twice", said.word)
        })?;
        let batch = &mut self.batches[*batch];
        batch.seen += 1;
        hold(batch.told != Told::Refused, || {
            format!("`{}` was refused and stands", said.word)
        })?;
        if let (Some(value), Some(key)) = (said.value, envelope.key()) {
            let last = self.registers.insert(key.clone(), value).unwrap_or(0);
            hold(value == last + 1, || {
                format!("register {key} went from {last} to {value}: an update is lost")
            })?;
        }
        if let Some(message) = said.word.strip_prefix("effect-") {
            let message = message.split('-').next().and_then(|pos| pos.parse().ok());
            let message: u64 = message.ok_or_else(|| format!("`{}` is the effect of nothing", said.word))?;
            let consumed = self.log.get(usize::try_from(message - 1).unwrap_or(usize::MAX));
            hold(consumed.is_some_and(|(topic, _)| topic.as_str() == CONSUMED), || {
                format!("`{}` is the effect of {consumed:?}", said.word)
            })?;
            if let Some(first) = self.effects.insert(message, row.pos) {
                return Err(format!(
                    "pos {message} had its effect at pos {first} and has it again at pos {}",
                    row.pos
                ));
            }
        }
        Ok(said.word)
    }

    /// Messages of the consumer that have not had their effect.
    pub(crate) fn unconsumed(&self) -> usize {
        let messages = self.log.iter().filter(|(topic, _)| topic.as_str() == CONSUMED);
        messages.count() - self.effects.len()
    }

    /// Which word stands where: what two runs of one history have in common.
    pub(crate) fn into_story(self) -> Vec<String> {
        self.story
    }

    /// Every batch stands whole or not at all, and as its writer was told.
    pub(crate) fn batches(&self) -> Verdict {
        self.batches.iter().enumerate().try_for_each(|(index, batch)| {
            let wanted = match batch.told {
                Told::Nothing => batch.seen == 0 || batch.seen == batch.words,
                Told::Stands => batch.seen == batch.words,
                Told::Refused => batch.seen == 0,
            };
            let Batch { told, words, seen } = batch;
            hold(wanted, || {
                format!("batch {index}: {told:?}, and {seen} of {words} words stand")
            })
        })
    }
}
