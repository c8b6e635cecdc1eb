//! What is recorded with one commit, and what the commit or its failure changes.

use std::time::Duration;

use super::{
    desk::Desk,
    entry::{End, Phase},
    event::Event,
};
use crate::{
    Draft, EnvelopeRef, Error, Result, Topic,
    envelope::Cause,
    limits,
    vocabulary::consumer::{
        ConsumerAcknowledged, ConsumerAdvanced, ConsumerDelivered, ConsumerParked, ConsumerRetried,
    },
};

/// What one batch says of a consumer.
#[derive(Debug, Default)]
pub(super) struct Plan {
    events: Vec<(Event, Option<EnvelopeRef>)>,
    /// Messages whose end it records.
    ended: Vec<(u64, End)>,
    /// The message that is handed out once this stands.
    handed: Option<u64>,
    /// The message whose effect is in the same batch.
    effect: Option<u64>,
}

/// Why a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// What has ended is recorded.
    Flush,
    /// This message is about to be handed out.
    Hand(u64),
    /// The effect of this message is committed.
    Effect(u64),
    /// The consumer closes: its position goes as far as it may.
    Close,
}

impl Plan {
    pub(super) fn drafts(&self, topic: &Topic) -> Result<Vec<Draft>, Error> {
        let drafts = self.events.iter().map(|(event, cause)| {
            let draft = event.draft(topic)?;
            Ok(match cause {
                Some(message) => draft.cause(Cause::Envelope(message.clone())),
                None => draft,
            })
        });
        drafts.collect()
    }
}

impl Plan {
    /// The messages that it parks, each with its deliveries and the reason.
    pub(super) fn parked(&self) -> impl Iterator<Item = &ConsumerParked> {
        self.events.iter().filter_map(|(event, _)| match event {
            Event::Parked(parked) => Some(parked),
            _ => None,
        })
    }
}

impl Desk {
    /// Collects what is to be recorded. Until the plan is committed or has failed, no other plan says the same.
    pub(super) fn plan(&mut self, occasion: Occasion) -> Plan {
        let mut plan = Plan::default();
        match occasion {
            Occasion::Hand(pos) => plan.handed = Some(pos),
            Occasion::Effect(pos) => plan.effect = Some(pos),
            Occasion::Flush | Occasion::Close => {}
        }
        let mut acks: Vec<u64> = plan.effect.into_iter().collect();
        for pos in std::mem::take(&mut self.ended) {
            let Some(Phase::Ended(end)) = self.entries.get(&pos).map(|entry| entry.phase.clone()) else {
                continue;
            };
            match &end {
                End::Ack => acks.push(pos),
                end => self.say(&mut plan, pos, end),
            }
            plan.ended.push((pos, end.clone()));
            self.shift(pos, Phase::Recording(end));
        }
        self.ack_since = None;
        let mut passed: Vec<u64> = plan.ended.iter().map(|(pos, _)| *pos).collect();
        passed.extend(plan.handed);
        passed.extend(plan.effect);
        passed.sort_unstable();
        if let Some(pos) = plan.handed {
            self.deliver(&mut plan, pos, 1);
        }
        let mut upto = self.reach(&passed);
        if self.alone_beyond(&acks, upto) + self.state.settled.len() > self.settled_max() {
            // So many acknowledgements past the position: what is in their way is said one by one instead.
            let last = acks.iter().max().copied().unwrap_or(0);
            let held: Vec<u64> = self
                .entries
                .range(..last)
                .filter(|(pos, entry)| !entry.recorded && is_with_somebody(&entry.phase) && !acks.contains(pos))
                .map(|(pos, _)| *pos)
                .collect();
            for pos in held {
                self.deliver(&mut plan, pos, 0);
                passed.push(pos);
            }
            passed.sort_unstable();
            upto = self.reach(&passed);
        }
        self.advance(&mut plan, &acks, upto, occasion);
        plan
    }

    /// Says the acknowledgements: those that the position covers by it, the others one by one.
    fn advance(&self, plan: &mut Plan, acks: &[u64], upto: u64, occasion: Occasion) {
        let mut covers = false;
        for pos in acks {
            let Some(entry) = self.entries.get(pos) else { continue };
            if entry.told || *pos > upto {
                let attempt = entry.attempts;
                let event = Event::Acknowledged(ConsumerAcknowledged { pos: *pos, attempt });
                plan.events.push((event, Some(entry.reference.clone())));
            } else {
                covers = true;
            }
        }
        let gained = upto.saturating_sub(self.state.upto);
        let passed_over = match occasion {
            Occasion::Close => limits::PAGE_MAX,
            _ => limits::PASSED_OVER_MAX,
        };
        let tidies = self.state.settled.len() > self.settled_max() / 2;
        if gained > 0 && (covers || tidies || gained >= passed_over as u64) {
            plan.events.push((Event::Advanced(ConsumerAdvanced { upto }), None));
        }
    }

    /// Acknowledgements past the position that may stand on the log one by one.
    fn settled_max(&self) -> usize {
        usize::try_from(self.config.in_flight).unwrap_or(usize::MAX)
    }

    fn alone_beyond(&self, acks: &[u64], upto: u64) -> usize {
        let is_unrecorded = |pos: &u64| self.entries.get(pos).is_some_and(|entry| !entry.recorded);
        acks.iter().filter(|pos| **pos > upto && is_unrecorded(pos)).count()
    }

    /// How far the position may go: no further than what this or an earlier batch tells the end of. `passed` is sorted.
    fn reach(&self, passed: &[u64]) -> u64 {
        let blocks =
            |pos: &u64, phase: &Phase| passed.binary_search(pos).is_err() && *phase != Phase::Recording(End::Ack);
        let first = self
            .entries
            .iter()
            .find(|(pos, entry)| !entry.recorded && blocks(pos, &entry.phase));
        first.map_or(self.read, |(pos, _)| pos - 1).max(self.state.upto)
    }

    /// Whether the position could be moved past so much that is not for this consumer that it is worth a word.
    pub(super) fn has_passed_over(&self) -> bool {
        self.entries.is_empty() && self.read - self.state.upto >= limits::PASSED_OVER_MAX as u64
    }

    fn say(&mut self, plan: &mut Plan, pos: u64, end: &End) {
        let Some(entry) = self.entries.get_mut(&pos) else {
            return;
        };
        entry.told = true;
        let attempts = entry.attempts;
        let event = match end {
            End::Ack => return,
            End::Retry {
                after, wall, because, ..
            } => Event::Retried(ConsumerRetried {
                pos,
                attempt: attempts,
                after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                due: *wall,
                because: because.clone(),
            }),
            End::Park { because } => Event::Parked(ConsumerParked {
                pos,
                attempts,
                because: because.clone(),
            }),
        };
        plan.events.push((event, Some(entry.reference.clone())));
    }

    fn deliver(&mut self, plan: &mut Plan, pos: u64, more: u32) {
        let Some(entry) = self.entries.get_mut(&pos) else {
            return;
        };
        entry.told = true;
        let attempt = entry.attempts + more;
        let event = Event::Delivered(ConsumerDelivered { pos, attempt });
        plan.events.push((event, Some(entry.reference.clone())));
    }

    /// The plan stands on the log.
    pub(super) fn committed(&mut self, plan: Plan) {
        for (event, _) in &plan.events {
            self.state.apply(event);
            if let Event::Delivered(delivered) = event {
                self.change(delivered.pos, |entry| entry.recorded = true);
            }
        }
        for (pos, end) in plan.ended {
            let Some(entry) = self.entries.get(&pos) else { continue };
            // Otherwise it was ended anew meanwhile: a late word on a delivery that had lapsed.
            let stands = entry.phase == Phase::Recording(end.clone());
            match end {
                End::Retry { due, .. } => self.change(pos, |entry| {
                    entry.recorded = true;
                    if stands {
                        entry.phase = Phase::Waiting(due);
                    }
                }),
                End::Ack | End::Park { .. } => self.leave(pos),
            }
        }
        if let Some(pos) = plan.handed {
            self.change(pos, |entry| {
                entry.attempts += 1;
                entry.phase = Phase::Prepared;
            });
        }
        if let Some(pos) = plan.effect {
            self.leave(pos);
        }
    }

    /// The plan does not stand on the log: everything is as before.
    pub(super) fn failed(&mut self, plan: Plan) {
        for (pos, end) in plan.ended {
            if self
                .entries
                .get(&pos)
                .is_some_and(|entry| entry.phase == Phase::Recording(end.clone()))
            {
                if end == End::Ack {
                    // It has waited long enough.
                    self.ack_since = Some(Duration::ZERO);
                }
                self.shift(pos, Phase::Ended(end));
            }
        }
        if let Some(pos) = plan.handed {
            self.shift(pos, Phase::Queued);
        }
        if let Some(pos) = plan.effect
            && let Some(Phase::Settling { lapse, given_up }) = self.entries.get(&pos).map(|entry| entry.phase.clone())
        {
            let lapse = if given_up { Duration::ZERO } else { lapse };
            self.shift(pos, Phase::InHand { lapse, given_up });
        }
    }
}

fn is_with_somebody(phase: &Phase) -> bool {
    matches!(phase, Phase::InHand { .. } | Phase::Settling { .. })
}

#[cfg(test)]
mod tests;
