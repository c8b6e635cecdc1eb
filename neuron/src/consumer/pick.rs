//! Which message is handed out next.

use std::{collections::BTreeSet, time::Duration};

use super::{
    desk::{Desk, UNRECORDED_MAX},
    entry::Phase,
};
use crate::{limits, vocabulary::consumer::Order};

/// What is to be done for whoever asks for the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// Hand out this one.
    Hand { pos: u64, attempt: u32 },
    /// Record that this one is handed out, then ask again.
    Prepare(u64),
    /// Read the next message of the log; all that are in view wait, until this moment at the latest.
    Read(Option<Duration>),
    /// Wait until something changes, or for this moment.
    Wait(Option<Duration>),
    /// Too many messages are parked.
    Stuck,
}

impl Desk {
    /// What is next.
    pub(super) fn pick(&mut self, now: Duration) -> Pick {
        while let Some((_, pos)) = self.timed.first().copied().filter(|(due, _)| *due <= now) {
            self.shift(pos, Phase::Queued);
        }
        let next = self.timed.first().map(|(due, _)| *due);
        if let Some(pos) = self.prepared.first().copied() {
            return self.hand(pos, now);
        }
        if self.state.parked.len() >= limits::CONSUMER_PARKED_MAX {
            return Pick::Stuck;
        }
        if let Some(pos) = self.suspects.first().copied() {
            if self.in_hand > 0 {
                return Pick::Wait(next);
            }
            self.alone = Some(pos);
            return self.prepare(pos);
        }
        if self.alone.is_some() || self.in_hand >= self.limit() {
            return Pick::Wait(next);
        }
        if let Some(pos) = self.first_ready(|desk| &mut desk.again) {
            return self.prepare(pos);
        }
        if self.in_flight >= self.limit() || self.ended.len() + self.recording >= UNRECORDED_MAX {
            return Pick::Wait(next);
        }
        if let Some(pos) = self.first_ready(|desk| &mut desk.fresh) {
            if self.doubtful > 0 {
                self.doubtful -= 1;
                return self.prepare(pos);
            }
            return self.hand(pos, now);
        }
        if self.entries.len() + self.state.settled.len() >= limits::CONSUMER_WINDOW_MAX {
            return Pick::Wait(next);
        }
        Pick::Read(next)
    }

    fn limit(&self) -> usize {
        match self.config.order {
            Order::Whole => 1,
            Order::Free | Order::Topic => usize::try_from(self.config.in_flight).unwrap_or(usize::MAX),
        }
    }

    fn first_ready(&mut self, of: fn(&mut Self) -> &mut BTreeSet<u64>) -> Option<u64> {
        while let Some(pos) = of(self).first().copied() {
            if self.is_turn_of(pos) {
                return Some(pos);
            }
            // It comes back when its line moves on.
            of(self).remove(&pos);
        }
        None
    }

    fn is_turn_of(&self, pos: u64) -> bool {
        let topic = self.entries.get(&pos).map(|entry| &entry.reference.topic);
        self.config.order != Order::Topic || topic.and_then(|topic| self.lines.first(topic)) == Some(pos)
    }

    fn prepare(&mut self, pos: u64) -> Pick {
        self.shift(pos, Phase::Preparing);
        Pick::Prepare(pos)
    }

    fn hand(&mut self, pos: u64, now: Duration) -> Pick {
        self.suspects.remove(&pos);
        let lapse = now.saturating_add(Duration::from_millis(self.config.ack_wait_ms));
        let mut attempt = 0;
        self.change(pos, |entry| {
            // One that was prepared is counted already.
            entry.attempts += u32::from(entry.phase != Phase::Prepared);
            attempt = entry.attempts;
            let given_up = false;
            entry.phase = Phase::InHand { lapse, given_up };
        });
        Pick::Hand { pos, attempt }
    }

    /// Takes back that a message was handed out: it could not be read.
    pub(super) fn take_back(&mut self, pos: u64) {
        self.change(pos, |entry| {
            entry.attempts -= 1;
            entry.phase = Phase::Queued;
        });
    }
}
