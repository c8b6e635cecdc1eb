//! A consumer on a log that is simulated: every order of ends, lapses, failed commits, crashes and redrives.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    Digest, Millis, Pattern,
    consumer::{
        desk::{Now, Verdict},
        pick::Pick,
        state::State,
    },
    vocabulary::consumer::{ConsumerConfigured, ConsumerRedriven, Order},
};

const MAX_DELIVERIES: u32 = 3;
const ACK_WAIT: Duration = Duration::from_secs(30);

/// A consumer with the log that it reads, the log that it writes, and what really happened.
struct World {
    config: ConsumerConfigured,
    /// The topic of each message that is for it, by `pos`.
    messages: BTreeMap<u64, Topic>,
    end: u64,
    log: Vec<Event>,
    desk: Desk,
    now: Duration,
    hands: Vec<(u64, u32)>,
    under_way: Vec<Plan>,
    acked: BTreeSet<u64>,
    parked: BTreeSet<u64>,
    redriven: BTreeSet<u64>,
    effects: BTreeMap<u64, u32>,
    /// How often each was handed out since it was made or redriven.
    deliveries: BTreeMap<u64, u32>,
    upto: u64,
}

fn reference(pos: u64, topic: &Topic) -> EnvelopeRef {
    EnvelopeRef {
        topic: topic.clone(),
        seq: pos,
        id: Digest::ZERO,
    }
}

fn fold(log: &[Event]) -> State {
    let mut state = State::default();
    for event in log {
        state.apply(event);
    }
    state
}

impl World {
    fn new(order: Order, in_flight: u32, gaps: &[u8]) -> Self {
        let config = ConsumerConfigured {
            after: 0,
            pattern: Pattern::all(),
            types: Vec::new(),
            headers: BTreeMap::new(),
            order,
            max_deliveries: MAX_DELIVERIES,
            schedule_ms: vec![1_000, 5_000],
            in_flight,
            ack_wait_ms: 30_000,
        };
        let (mut messages, mut end) = (BTreeMap::new(), 0);
        for gap in gaps {
            end += 1 + u64::from(gap % 3);
            messages.insert(end, Topic::new(format!("t.{}", gap % 5)).unwrap());
        }
        let log = vec![Event::Configured(config.clone())];
        Self {
            desk: Desk::new(fold(&log), config.clone(), false),
            config,
            messages,
            end: end + 2,
            log,
            now: Duration::ZERO,
            hands: Vec::new(),
            under_way: Vec::new(),
            acked: BTreeSet::new(),
            parked: BTreeSet::new(),
            redriven: BTreeSet::new(),
            effects: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            upto: 0,
        }
    }

    fn now(&self) -> Now {
        Now {
            since: self.now,
            wall: Millis(0).plus(self.now),
        }
    }

    /// Asks for the next message, and reads as much as that takes.
    fn next(&mut self) -> bool {
        loop {
            match self.desk.pick(self.now) {
                Pick::Hand { pos, attempt } => {
                    self.handed(pos, attempt);
                    return true;
                }
                Pick::Prepare(pos) => {
                    let plan = self.desk.plan(Occasion::Hand(pos));
                    self.under_way.push(plan);
                    return true;
                }
                Pick::Read(_) => {
                    let next = self.messages.range(self.desk.read + 1..).next();
                    let Some((pos, topic)) = next else {
                        self.desk.read_to(self.end);
                        return false;
                    };
                    self.desk.offer(*pos, reference(*pos, topic));
                }
                Pick::Wait(_) => return false,
                Pick::Stuck => panic!("so many are not parked"),
            }
        }
    }

    fn handed(&mut self, pos: u64, attempt: u32) {
        assert!(
            !self.desk.state.is_settled(pos),
            "{pos} is settled and was handed out again"
        );
        assert!(
            !self.effects.contains_key(&pos),
            "{pos} has its effect and was handed out again"
        );
        assert!((1..=MAX_DELIVERIES).contains(&attempt), "{pos}: delivery {attempt}");
        let count = self.deliveries.entry(pos).or_default();
        *count += 1;
        assert!(*count <= MAX_DELIVERIES + 1, "{pos} was handed out {count} times");
        let topic = &self.messages[&pos];
        let mut together = self.in_hand();
        // A late word on a delivery that had lapsed does not count.
        together.retain(|other| *other != pos && !self.is_late(*other));
        match self.config.order {
            Order::Whole => assert!(together.is_empty(), "{pos} beside {together:?}"),
            Order::Topic => {
                assert!(
                    together.iter().all(|other| self.messages[other] != *topic),
                    "{pos} beside {together:?}"
                );
                // A redriven one comes when it is redriven.
                let done = |pos: &u64| {
                    [&self.acked, &self.parked, &self.redriven]
                        .iter()
                        .any(|set| set.contains(pos))
                };
                let before = self.messages.range(..pos).filter(|(_, of)| *of == topic);
                let missed: Vec<_> = before.map(|(pos, _)| *pos).filter(|pos| !done(pos)).collect();
                assert!(missed.is_empty(), "{pos} before {missed:?}");
            }
            Order::Free => {}
        }
        assert!(together.len() < usize::try_from(self.config.in_flight).unwrap());
        self.hands.push((pos, attempt));
    }

    /// Messages whose present delivery has not ended or lapsed.
    fn in_hand(&self) -> Vec<u64> {
        let entries = self.desk.entries.iter();
        entries
            .filter(|(_, entry)| is_with_somebody(&entry.phase))
            .map(|(pos, _)| *pos)
            .collect()
    }

    fn is_late(&self, pos: u64) -> bool {
        matches!(
            self.desk.entries[&pos].phase,
            Phase::Settling {
                lapse: Duration::ZERO,
                ..
            } | Phase::InHand {
                lapse: Duration::ZERO,
                ..
            }
        )
    }

    fn settle(&mut self, nth: usize, stands: bool) {
        if self.under_way.is_empty() {
            return;
        }
        let plan = self.under_way.remove(nth % self.under_way.len());
        if stands {
            self.write(&plan);
            self.desk.committed(plan);
        } else {
            self.desk.failed(plan);
        }
    }

    fn write(&mut self, plan: &Plan) {
        self.log.extend(plan.events.iter().map(|(event, _)| event.clone()));
        if let Some(pos) = plan.effect {
            *self.effects.entry(pos).or_default() += 1;
            self.acked.insert(pos);
        }
        let parks = plan.ended.iter().filter(|(_, end)| matches!(end, End::Park { .. }));
        self.parked.extend(parks.map(|(pos, _)| *pos));
    }

    /// What is under way stands or not; what is in hand is gone.
    fn crash(&mut self, stands: usize) {
        for (nth, plan) in std::mem::take(&mut self.under_way).into_iter().enumerate() {
            if stands >> (nth % 8) & 1 == 1 {
                self.write(&plan);
            }
        }
        self.hands.clear();
        let state = fold(&self.log);
        let pending: Vec<u64> = state.pending.keys().copied().collect();
        self.desk = Desk::new(state, self.config.clone(), true);
        for pos in pending {
            self.desk.resume(pos, reference(pos, &self.messages[&pos]), self.now());
        }
    }

    fn redrive(&mut self, nth: usize) {
        let parked: Vec<u64> = self.desk.state.parked.iter().copied().collect();
        let Some(pos) = parked.get(nth % parked.len().max(1)).copied() else {
            return;
        };
        let event = Event::Redriven(ConsumerRedriven { pos, because: None });
        self.log.push(event.clone());
        self.parked.remove(&pos);
        self.redriven.insert(pos);
        self.deliveries.remove(&pos);
        self.desk
            .redriven(&event, pos, reference(pos, &self.messages[&pos]), self.now());
    }

    fn end(&mut self, nth: usize, how: u8) {
        if self.hands.is_empty() {
            return;
        }
        let (pos, attempt) = self.hands.remove(nth % self.hands.len());
        let now = self.now();
        let because = String::from("it failed");
        let verdict = match how % 6 {
            0 | 1 => Verdict::Ack,
            2 => Verdict::Retry { after: None, because },
            3 => Verdict::Park { because },
            4 if how > 128 => {
                let counted = self.desk.entries.get(&pos).map(|entry| entry.attempts);
                self.desk.hand_back(pos, attempt, Duration::ZERO, because, now);
                if self.desk.entries.get(&pos).map(|entry| entry.attempts) < counted {
                    self.deliveries.entry(pos).and_modify(|count| *count -= 1);
                }
                return;
            }
            4 => return self.desk.give_up(pos, attempt, now),
            _ => {
                if self.desk.begin_effect(pos, attempt).is_ok() {
                    let plan = self.desk.plan(Occasion::Effect(pos));
                    self.under_way.push(plan);
                    if how > 128 {
                        self.desk.give_up(pos, attempt, now);
                    } else {
                        self.hands.push((pos, attempt));
                    }
                }
                return;
            }
        };
        let (acks, parks) = (matches!(verdict, Verdict::Ack), matches!(verdict, Verdict::Park { .. }));
        if self.desk.end(pos, attempt, verdict, now).is_ok() {
            if acks {
                self.acked.insert(pos);
            }
            if parks {
                self.parked.insert(pos);
            }
        }
    }

    fn check(&mut self) {
        let state = fold(&self.log);
        assert_eq!(self.desk.state, state, "live and folded differ");
        assert!(state.upto >= self.upto, "the position went back");
        self.upto = state.upto;
        for pos in self.messages.keys().filter(|pos| state.is_settled(**pos)) {
            assert!(
                self.acked.contains(pos) || state.parked.contains(pos),
                "{pos} is lost: {state:?}"
            );
        }
        assert!(self.effects.values().all(|count| *count == 1), "{:?}", self.effects);
        for (pos, entry) in &self.desk.entries {
            if let Phase::Ended(End::Park { .. }) = entry.phase {
                self.parked.insert(*pos);
            }
        }
    }

    fn act(&mut self, act: u8, nth: usize) {
        match act % 16 {
            0..=4 => drop(self.next()),
            5..=8 => self.end(nth, act),
            9 => {
                let plan = self.desk.plan(Occasion::Flush);
                self.under_way.push(plan);
            }
            10 | 11 => self.settle(nth, true),
            12 => self.settle(nth, act < 128),
            13 => {
                self.now += if act < 128 { ACK_WAIT } else { Duration::from_secs(1) };
                self.desk.lapse(self.now());
            }
            14 => self.crash(nth),
            _ => self.redrive(nth),
        }
        self.check();
    }

    /// From here on everything succeeds: each message is acknowledged or stays parked.
    fn drain(&mut self) {
        for turn in 0.. {
            assert!(turn < 1_000, "it does not come to an end: {:?}", self.desk);
            while !self.under_way.is_empty() {
                self.settle(0, true);
            }
            let handed = self.next();
            for (pos, attempt) in std::mem::take(&mut self.hands) {
                if self.desk.end(pos, attempt, Verdict::Ack, self.now()).is_ok() {
                    self.acked.insert(pos);
                }
            }
            let plan = self.desk.plan(Occasion::Flush);
            self.under_way.push(plan);
            self.settle(0, true);
            if !handed && self.under_way.is_empty() {
                if self.desk.read >= self.end && self.desk.entries.is_empty() {
                    break;
                }
                self.now += ACK_WAIT;
                self.desk.lapse(self.now());
            }
            self.check();
        }
        let state = fold(&self.log);
        assert!(state.pending.is_empty(), "{state:?}");
        for pos in self.messages.keys() {
            assert!(state.is_settled(*pos), "{pos} was never settled: {state:?}");
        }
    }
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Free), Just(Order::Topic), Just(Order::Whole)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_nothing_acknowledged_comes_again_and_the_position_never_goes_back(
        order in order(),
        in_flight in 1..6_u32,
        gaps in vec(any::<u8>(), 1..30),
        acts in vec((any::<u8>(), 0..256_usize), 0..200),
    ) {
        let mut world = World::new(order, in_flight, &gaps);
        for (act, nth) in acts {
            world.act(act, nth);
        }
        world.drain();
    }
}

/// Each time its process dies, and a supervisor starts it again.
#[test]
fn a_message_that_kills_its_process_is_parked_and_takes_no_other_along() {
    let mut world = World::new(Order::Free, 4, &[0; 9]);
    let killer = *world.messages.keys().nth(2).unwrap();
    let mut deaths = 0;
    while !world.desk.state.parked.contains(&killer) {
        let handed = world.next();
        let (mut prepared, plans) = (false, world.under_way.len());
        for _ in 0..plans {
            world.settle(0, true);
            prepared = true;
        }
        if world.hands.iter().any(|(pos, _)| *pos == killer) {
            // Whatever else is in hand goes down with it.
            deaths += 1;
            world.crash(0);
        } else if !handed || world.hands.len() > 2 {
            while !world.hands.is_empty() {
                world.end(0, 0);
            }
            let plan = world.desk.plan(Occasion::Flush);
            world.under_way.push(plan);
        }
        assert!(deaths <= MAX_DELIVERIES + 1 && (handed || prepared || deaths > 0));
        world.check();
    }
    world.drain();
    assert_eq!(world.desk.state.parked, BTreeSet::from([killer]));
}

#[test]
fn messages_that_take_long_do_not_make_the_log_of_acknowledgements_grow() {
    let mut world = World::new(Order::Free, 2, &[0; 200]);
    assert!(world.next(), "the first one is never ended");
    for _ in 0..150 {
        world.next();
        world.end(1, 0);
    }
    let plan = world.desk.plan(Occasion::Flush);
    world.under_way.push(plan);
    world.settle(0, true);
    // One word for the position, one for the message in its way.
    assert_eq!(world.log.len(), 3, "{:?}", world.log);
    assert!(world.desk.state.settled.is_empty() && world.desk.state.upto >= 150);
    world.crash(0);
    assert!(
        world.next() && world.desk.entries.len() == 1,
        "only that one comes again"
    );
}

#[test]
fn with_too_many_parked_nothing_more_is_handed_out() {
    let mut world = World::new(Order::Free, 4, &[0; 3]);
    assert!(world.next());
    let far = 1_000_000;
    let parked = (far..).take(limits::CONSUMER_PARKED_MAX - 1);
    world.desk.state.parked.extend(parked);
    assert!(world.next(), "one more may be parked");
    world.desk.state.parked.insert(far - 1);
    assert_eq!(world.desk.pick(world.now), Pick::Stuck);
}
