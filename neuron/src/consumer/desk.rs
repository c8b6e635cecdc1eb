//! What a consumer's process has in hand, and what it does next. Pure: moments come in as numbers, and what is to be
//! recorded goes out as a [`Plan`](super::plan::Plan), whose commit or failure comes in again.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    entry::{End, Entry, Phase},
    event::Event,
    line::Lines,
    state::{State, Waits},
};
use crate::{
    EnvelopeRef, Error, ErrorKind, Millis, Result, Topic, limits,
    vocabulary::consumer::{ConsumerConfigured, Order},
};

/// How a delivery is said to have ended.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// The message is settled.
    Ack,
    /// It is to be tried again: after this long, else by the schedule.
    Retry { after: Option<Duration>, because: String },
    /// It is to be laid aside.
    Park { because: String },
}

/// Now, by both clocks: since the opening of the consumer, and of the wall for what the log says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) since: Duration,
    pub(super) wall: Millis,
}

#[derive(Debug)]
pub(super) struct Desk {
    /// What the log says.
    pub(super) state: State,
    pub(super) config: ConsumerConfigured,
    /// Every message up to this `pos` is in view or settled.
    pub(super) read: u64,
    pub(super) entries: BTreeMap<u64, Entry>,
    pub(super) ended: BTreeSet<u64>,
    /// Since when an acknowledgement waits to be recorded.
    pub(super) ack_since: Option<Duration>,
    pub(super) lines: Lines,
    pub(super) again: BTreeSet<u64>,
    pub(super) fresh: BTreeSet<u64>,
    pub(super) prepared: BTreeSet<u64>,
    pub(super) timed: BTreeSet<(Duration, u64)>,
    pub(super) lapses: BTreeSet<(Duration, u64)>,
    /// Handed out by a process that died: one of them may have killed it, so each is handed out alone.
    pub(super) suspects: BTreeSet<u64>,
    pub(super) alone: Option<u64>,
    /// Messages that a process which died may have had in hand without a record.
    pub(super) doubtful: u64,
    pub(super) in_hand: usize,
    pub(super) in_flight: usize,
    pub(super) recording: usize,
}

impl Desk {
    /// The desk of a process that begins; `after_death` if the one before it did not end by itself.
    pub(super) fn new(state: State, config: ConsumerConfigured, after_death: bool) -> Self {
        let unrecorded = UNRECORDED_MAX as u64 + u64::from(config.in_flight);
        Self {
            read: state.upto,
            state,
            config,
            entries: BTreeMap::new(),
            ended: BTreeSet::new(),
            ack_since: None,
            lines: Lines::default(),
            again: BTreeSet::new(),
            fresh: BTreeSet::new(),
            prepared: BTreeSet::new(),
            timed: BTreeSet::new(),
            lapses: BTreeSet::new(),
            suspects: BTreeSet::new(),
            alone: None,
            doubtful: if after_death { unrecorded } else { 0 },
            in_hand: 0,
            in_flight: 0,
            recording: 0,
        }
    }

    /// Takes up a message that the log says is pending.
    pub(super) fn resume(&mut self, pos: u64, reference: EnvelopeRef, now: Now) {
        let Some(pending) = self.state.pending.get(&pos).cloned() else {
            return;
        };
        if self.entries.contains_key(&pos) {
            return;
        }
        let phase = match &pending.waits {
            _ if pending.attempts >= self.config.max_deliveries => {
                let because = match &pending.waits {
                    Waits::Time { because, .. } => because.clone(),
                    Waits::End | Waits::Turn => "its delivery never ended: the process died or hung".into(),
                };
                Phase::Ended(End::Park { because })
            }
            Waits::Time { after_ms, due, .. } => {
                // The clock of the wall may have gone back meanwhile; nothing waits longer than it was to.
                let left = now.wall.until(*due).min(Duration::from_millis(*after_ms));
                Phase::Waiting(now.since.saturating_add(left))
            }
            Waits::End => {
                self.suspects.insert(pos);
                Phase::Queued
            }
            Waits::Turn => Phase::Queued,
        };
        let entry = Entry {
            reference,
            attempts: pending.attempts,
            recorded: true,
            told: true,
            phase,
        };
        self.enter(pos, entry);
    }

    /// Takes in the next message of the log. What lies between the last one and this is not for this consumer.
    pub(super) fn offer(&mut self, pos: u64, reference: EnvelopeRef) {
        self.read = self.read.max(pos);
        if self.state.is_settled(pos) || self.state.pending.contains_key(&pos) || self.entries.contains_key(&pos) {
            return;
        }
        let entry = Entry {
            reference,
            attempts: 0,
            recorded: false,
            told: false,
            phase: Phase::Queued,
        };
        self.enter(pos, entry);
    }

    /// Takes in that nothing up to this `pos` is for this consumer but what it was offered.
    pub(super) fn read_to(&mut self, pos: u64) {
        self.read = self.read.max(pos);
    }

    /// Takes in a word of somebody else: a message was redriven.
    pub(super) fn redriven(&mut self, event: &Event, pos: u64, reference: EnvelopeRef, now: Now) {
        self.state.apply(event);
        self.resume(pos, reference, now);
    }

    /// Ends a delivery. It may have lapsed, as long as the message was not handed out again.
    pub(super) fn end(&mut self, pos: u64, attempt: u32, verdict: Verdict, now: Now) -> Result<(), Error> {
        self.current(pos, attempt)?;
        self.finish(pos, verdict, now);
        Ok(())
    }

    /// Begins to commit the effect of a delivery, which ends it.
    pub(super) fn begin_effect(&mut self, pos: u64, attempt: u32) -> Result<(), Error> {
        let lapse = match self.current(pos, attempt)?.phase {
            Phase::InHand { lapse, .. } => lapse,
            // It has lapsed already: if its effect is refused, that counts as before.
            _ => Duration::ZERO,
        };
        let given_up = false;
        self.shift(pos, Phase::Settling { lapse, given_up });
        Ok(())
    }

    /// Takes in that nobody will end a delivery.
    pub(super) fn give_up(&mut self, pos: u64, attempt: u32, now: Now) {
        let Some(entry) = self.entries.get_mut(&pos).filter(|entry| entry.attempts == attempt) else {
            return;
        };
        match &mut entry.phase {
            // Its outcome decides.
            Phase::Settling { given_up, .. } => *given_up = true,
            Phase::InHand { .. } => {
                let because = DROPPED.into();
                self.finish(pos, Verdict::Retry { after: None, because }, now);
            }
            _ => {}
        }
    }

    /// Takes a message back whose delivery says nothing about it: it is handed out again after this long, and the delivery
    /// does not count.
    pub(super) fn hand_back(&mut self, pos: u64, attempt: u32, after: Duration, because: String, now: Now) {
        match self.entries.get(&pos).filter(|entry| entry.attempts == attempt) {
            Some(entry) if matches!(entry.phase, Phase::InHand { .. }) => self.uncounted(pos, after, because, now),
            _ => self.give_up(pos, attempt, now),
        }
    }

    fn uncounted(&mut self, pos: u64, after: Duration, because: String, now: Now) {
        self.change(pos, |entry| entry.attempts -= 1);
        let after = Some(after);
        self.finish(pos, Verdict::Retry { after, because }, now);
    }

    /// Gives a delivery its whole time anew.
    pub(super) fn extend(&mut self, pos: u64, attempt: u32, now: Duration) -> Result<(), Error> {
        self.current(pos, attempt)?;
        let lapse = now.saturating_add(Duration::from_millis(self.config.ack_wait_ms));
        let given_up = false;
        self.shift(pos, Phase::InHand { lapse, given_up });
        Ok(())
    }

    /// Ends the deliveries whose time is over.
    pub(super) fn lapse(&mut self, now: Now) {
        while let Some((_, pos)) = self.lapses.first().copied().filter(|(lapse, _)| *lapse <= now.since) {
            let given_up = matches!(
                self.entries.get(&pos).map(|entry| &entry.phase),
                Some(Phase::InHand { given_up: true, .. })
            );
            let wait = Duration::from_millis(self.config.ack_wait_ms);
            let verdict = if given_up {
                let because = DROPPED.into();
                Verdict::Retry { after: None, because }
            } else {
                Verdict::Retry {
                    after: Some(Duration::ZERO),
                    because: format!("it was not ended within {wait:?}"),
                }
            };
            self.finish(pos, verdict, now);
        }
    }

    /// When the next delivery lapses.
    pub(super) fn next_lapse(&self) -> Option<Duration> {
        self.lapses.first().map(|(lapse, _)| *lapse)
    }

    /// Whether something has ended that is recorded at once: all but an acknowledgement.
    pub(super) fn is_urgent(&self) -> bool {
        let mut ended = self.ended.iter().filter_map(|pos| self.entries.get(pos));
        self.ended.len() >= limits::CONSUMER_ACKS_MAX || ended.any(|entry| entry.phase != Phase::Ended(End::Ack))
    }

    /// Ends what is prepared and will not be asked for any more. True once nobody has a message in hand.
    pub(super) fn clear(&mut self, now: Now) -> bool {
        while let Some(pos) = self.prepared.first().copied() {
            let because = "the consumer closed before it was handed out".into();
            self.uncounted(pos, Duration::ZERO, because, now);
        }
        self.in_hand == 0
    }

    fn current(&self, pos: u64, attempt: u32) -> Result<&Entry, Error> {
        let entry = self.entries.get(&pos).filter(|entry| entry.attempts == attempt);
        let taken =
            |phase: &Phase| phase.is_settled() || (phase.is_in_hand() && !matches!(phase, Phase::InHand { .. }));
        entry.filter(|entry| !taken(&entry.phase)).ok_or_else(|| {
            let why = format!(
                "delivery {attempt} of the message at pos {pos} is over: it lapsed, and the message was handed out again or settled"
            );
            Error::new(ErrorKind::Conflict, why)
        })
    }

    fn finish(&mut self, pos: u64, verdict: Verdict, now: Now) {
        let attempts = self.entries.get(&pos).map_or(0, |entry| entry.attempts);
        let end = match verdict {
            Verdict::Ack => End::Ack,
            Verdict::Park { because } => End::Park { because },
            Verdict::Retry { because, .. } if attempts >= self.config.max_deliveries => End::Park { because },
            Verdict::Retry { after, because } => {
                let after = after.unwrap_or_else(|| self.scheduled(attempts));
                End::Retry {
                    after,
                    due: now.since.saturating_add(after),
                    wall: now.wall.plus(after),
                    because,
                }
            }
        };
        if end == End::Ack {
            self.ack_since.get_or_insert(now.since);
        }
        self.shift(pos, Phase::Ended(end));
    }

    fn scheduled(&self, attempts: u32) -> Duration {
        let schedule = &self.config.schedule_ms;
        let nth = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        Duration::from_millis(schedule.get(nth).or(schedule.last()).copied().unwrap_or(0))
    }

    /// Moves a message to another phase.
    pub(super) fn shift(&mut self, pos: u64, phase: Phase) {
        self.change(pos, |entry| entry.phase = phase);
    }

    /// Changes a message in view, and with it every index, all of which follow from the messages alone.
    pub(super) fn change(&mut self, pos: u64, change: impl FnOnce(&mut Entry)) {
        if let Some(mut entry) = self.entries.remove(&pos) {
            self.unindex(pos, &entry);
            change(&mut entry);
            self.enter(pos, entry);
        }
    }

    /// Lets a message out of view: the log says that it is settled.
    pub(super) fn leave(&mut self, pos: u64) {
        if let Some(entry) = self.entries.remove(&pos) {
            self.unindex(pos, &entry);
            self.alone = self.alone.filter(|alone| *alone != pos);
            self.promote(&entry.reference.topic);
        }
    }

    fn enter(&mut self, pos: u64, entry: Entry) {
        self.in_hand += usize::from(entry.phase.is_in_hand());
        self.in_flight += usize::from(entry.is_in_flight());
        match &entry.phase {
            Phase::Queued if entry.is_fresh() => drop(self.fresh.insert(pos)),
            Phase::Queued => drop(self.again.insert(pos)),
            Phase::Waiting(due) => drop(self.timed.insert((*due, pos))),
            Phase::Prepared => drop(self.prepared.insert(pos)),
            Phase::InHand { lapse, .. } => drop(self.lapses.insert((*lapse, pos))),
            Phase::Ended(_) => drop(self.ended.insert(pos)),
            Phase::Recording(_) => self.recording += 1,
            Phase::Preparing | Phase::Settling { .. } => {}
        }
        if !entry.phase.is_in_hand() && self.alone == Some(pos) {
            self.alone = None;
        }
        if self.config.order == Order::Topic && !entry.phase.is_settled() {
            self.lines.join(&entry.reference.topic, pos, entry.phase.is_in_hand());
        }
        let topic = entry.reference.topic.clone();
        self.entries.insert(pos, entry);
        self.promote(&topic);
    }

    fn unindex(&mut self, pos: u64, entry: &Entry) {
        self.in_hand -= usize::from(entry.phase.is_in_hand());
        self.in_flight -= usize::from(entry.is_in_flight());
        match &entry.phase {
            Phase::Queued => drop((self.fresh.remove(&pos), self.again.remove(&pos))),
            Phase::Waiting(due) => drop(self.timed.remove(&(*due, pos))),
            Phase::Prepared => drop(self.prepared.remove(&pos)),
            Phase::InHand { lapse, .. } => drop(self.lapses.remove(&(*lapse, pos))),
            Phase::Ended(_) => drop(self.ended.remove(&pos)),
            Phase::Recording(_) => self.recording -= 1,
            Phase::Preparing | Phase::Settling { .. } => {}
        }
        self.lines.leave(&entry.reference.topic, pos);
    }

    /// Lets the first of a line be found again.
    fn promote(&mut self, topic: &Topic) {
        let Some(pos) = self.lines.first(topic) else { return };
        let Some(entry) = self.entries.get(&pos).filter(|entry| entry.phase == Phase::Queued) else {
            return;
        };
        if entry.is_fresh() {
            self.fresh.insert(pos);
        } else {
            self.again.insert(pos);
        }
    }
}

/// Deliveries whose end is not on the log, past which no new message is handed out: as many may be recorded at the moment
/// as wait to be.
pub(super) const UNRECORDED_MAX: usize = 2 * limits::CONSUMER_ACKS_MAX;

const DROPPED: &str = "its delivery was dropped without a word";
