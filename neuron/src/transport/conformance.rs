//! One suite for every transport.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use super::{Inbox, Link, Lost, Transport};
use crate::{Author, Draft, Envelope, Error, ErrorKind, Json, Millis, Result, Topic, envelope::Passing, limits};

/// How long anything may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at whether members know each other.
const MOMENT: Duration = Duration::from_millis(5);
/// What is said for nothing but to be heard.
const GREETING: u64 = 1 << 40;

/// Gives the transport of one more bus of one store.
pub type Open = Box<dyn Fn() -> Result<Arc<dyn Transport>, Error>>;

type Case = (&'static str, fn(&Open) -> Result<(), Error>);

const CASES: [Case; 6] = [
    ("every other bus hears everything once, whole and in order", everybody),
    ("a newcomer gets what is retained, then what is sent next", newcomer),
    ("a burst is heard or told as lost, in order", burst),
    ("the largest record passes, as it is", largest),
    ("who has left is not waited for, and who comes again is heard", leaving),
    ("one that refuses what it gets disturbs nobody else", refusing),
];

/// Holds a transport to what [`Transport`] says. `store` makes a place of its own for each case, and gives how a bus of
/// it opens its transport.
///
/// # Errors
/// What was expected and what came, and in which case.
pub fn check(store: impl Fn() -> Result<Open, Error>) -> Result<(), Error> {
    for (name, case) in CASES {
        let open = store()?;
        case(&open).map_err(|error| error.context(name))?;
    }
    Ok(())
}

#[derive(Default)]
struct Seen {
    heard: Vec<Arc<Envelope>>,
    lost: BTreeMap<Topic, u64>,
    others: u64,
    refuses: bool,
    retained: Vec<Arc<Envelope>>,
}

impl Seen {
    fn of(&self, author: &str) -> Vec<u64> {
        let theirs = self.heard.iter().filter(|envelope| envelope.author.as_str() == author);
        theirs.map(|envelope| envelope.seq).collect()
    }

    fn lost(&self) -> u64 {
        self.lost.values().sum::<u64>() + self.others
    }
}

/// What stands in for a bus.
#[derive(Default)]
struct Ear {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Ear {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, envelope: Arc<Envelope>) -> Result<(), Error> {
        let mut seen = self.seen();
        if seen.refuses {
            return Err(Error::new(ErrorKind::Contract, "this one refuses everything"));
        }
        seen.heard.push(envelope);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until it has seen what is wanted.
    fn until(&self, what: &str, is_seen: impl Fn(&Seen) -> bool) -> Result<MutexGuard<'_, Seen>, Error> {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen();
        while !is_seen(&seen) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = format!(
                    "{what} did not come: {} were heard, {} lost",
                    seen.heard.len(),
                    seen.lost()
                );
                return Err(Error::new(ErrorKind::Io, why));
            }
            let waited = self.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(seen)
    }
}

impl Inbox for Ear {
    fn receive(&self, envelope: Arc<Envelope>) -> Result<(), Error> {
        self.take(envelope)
    }

    fn receive_retained(&self, envelope: Arc<Envelope>) -> Result<(), Error> {
        self.take(envelope)
    }

    fn lost(&self, lost: &Lost) {
        let mut seen = self.seen();
        for (topic, count) in lost.topics() {
            *seen.lost.entry(topic.clone()).or_default() += count;
        }
        seen.others += lost.others();
        self.changed.notify_all();
    }

    fn welcome(&self, admit: &mut dyn FnMut(Vec<Arc<Envelope>>)) {
        let seen = self.seen();
        admit(seen.retained.clone());
    }
}

struct Member {
    name: &'static str,
    ear: Arc<Ear>,
    link: Box<dyn Link>,
}

impl Member {
    fn join(open: &Open, name: &'static str) -> Result<Self, Error> {
        let ear = Arc::<Ear>::default();
        let inbox: Weak<Ear> = Arc::downgrade(&ear);
        let link = open()?.join(inbox)?;
        Ok(Self { name, ear, link })
    }

    fn envelope(&self, seq: u64, text: &str) -> Result<(Arc<Envelope>, usize), Error> {
        let topic = Topic::new(format!("air.{}", self.name))?;
        let draft = Draft::new(topic, Author::new(self.name)?, "said")?
            .json(Json::of(&(seq, text, 1.5))?, None)
            .header("mood", &"windy")?;
        let passing = Passing::new(draft, Millis(1_790_000_000_000))?;
        let bytes = passing.bytes;
        Ok((Arc::new(passing.at(seq)), bytes))
    }

    /// Sends as a bus does: under its own lock.
    fn say(&self, seq: u64) -> Result<Arc<Envelope>, Error> {
        let (envelope, bytes) = self.envelope(seq, "€ \" \\ \u{1}")?;
        self.send(&envelope, bytes);
        Ok(envelope)
    }

    fn send(&self, envelope: &Arc<Envelope>, bytes: usize) {
        let seen = self.ear.seen();
        self.link.send(envelope, bytes);
        drop(seen);
        self.link.sent();
    }

    fn hears(&self, other: &Member, seq: u64) -> Result<MutexGuard<'_, Seen>, Error> {
        let what = format!("{} of {} at {}", seq, other.name, self.name);
        self.ear.until(&what, |seen| seen.of(other.name).contains(&seq))
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), Error> {
    if found == wanted {
        return Ok(());
    }
    let why = format!("{what}: {found:?} instead of {wanted:?}");
    Err(Error::new(ErrorKind::Corrupt, why))
}

fn everybody(open: &Open) -> Result<(), Error> {
    const EACH: u64 = 200;
    let members = ["a", "b", "c"].map(|name| Member::join(open, name));
    let members = members.into_iter().collect::<Result<Vec<_>, _>>()?;
    meet(&members.iter().collect::<Vec<_>>())?;
    let mut said = BTreeMap::new();
    for seq in 1..=EACH {
        for member in &members {
            said.insert((member.name, seq), member.say(seq)?);
        }
    }
    for member in &members {
        for other in members.iter().filter(|other| other.name != member.name) {
            let seen = member.hears(other, EACH)?;
            let heard: Vec<u64> = seen.of(other.name).into_iter().filter(|seq| *seq < GREETING).collect();
            same("order", &heard, &(1..=EACH).collect())?;
            for envelope in seen
                .heard
                .iter()
                .filter(|envelope| envelope.author.as_str() == other.name && envelope.seq < GREETING)
            {
                let original = &said[&(other.name, envelope.seq)];
                same("envelope", envelope, original)?;
                same("id", &envelope.id(), &original.id())?;
            }
        }
        same("what it said itself", &member.ear.seen().of(member.name), &Vec::new())?;
        same("losses", &member.ear.seen().lost(), &0)?;
    }
    Ok(())
}

/// Each greets until every other has heard it: only then all of them are known to each other.
fn meet(members: &[&Member]) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    let is_known = |to: &Member, of: &Member| to.name == of.name || to.ear.seen().of(of.name).contains(&GREETING);
    while !members.iter().all(|to| members.iter().all(|of| is_known(to, of))) {
        if Instant::now() > deadline {
            return Err(Error::new(ErrorKind::Io, "they do not get to know each other"));
        }
        members.iter().try_for_each(|member| member.say(GREETING).map(drop))?;
        let waited = members[0].ear.changed.wait_timeout(members[0].ear.seen(), MOMENT);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
    Ok(())
}

fn newcomer(open: &Open) -> Result<(), Error> {
    let early = Member::join(open, "early")?;
    let kept = early.envelope(7, "kept")?.0;
    early.ear.seen().retained.push(kept.clone());
    let late = Member::join(open, "late")?;
    let seen = late.hears(&early, 7)?;
    same("the first", &seen.heard[0], &kept)?;
    drop(seen);
    early.say(8)?;
    let seen = late.hears(&early, 8)?;
    same("all", &seen.of("early"), &vec![7, 8])
}

fn burst(open: &Open) -> Result<(), Error> {
    let (fast, slow) = (Member::join(open, "fast")?, Member::join(open, "slow")?);
    let count = 8 * limits::EPHEMERAL_QUEUE_MAX as u64;
    // From its own first word on, an early bus is known to a later one.
    slow.say(1)?;
    drop(fast.hears(&slow, 1)?);
    (1..=count).try_for_each(|seq| fast.say(seq).map(drop))?;
    let all = |seen: &Seen| seen.of("fast").len() as u64 + seen.lost() == count;
    let seen = slow.ear.until("every one or its loss", all)?;
    let heard = seen.of("fast");
    same("order", &heard.is_sorted_by(|a, b| a < b), &true)?;
    let topic = Topic::new("air.fast")?;
    same(
        "losses of its topic",
        &seen.lost.get(&topic).copied().unwrap_or(0),
        &seen.lost(),
    )
}

fn largest(open: &Open) -> Result<(), Error> {
    let (one, other) = (Member::join(open, "one")?, Member::join(open, "other")?);
    meet(&[&one, &other])?;
    let (probe, _) = one.envelope(1, "")?;
    let text = "x".repeat(limits::RECORD_BYTES_MAX - probe.record()?.len() - 19);
    let (envelope, bytes) = one.envelope(1, &text)?;
    one.send(&envelope, bytes);
    let seen = other.hears(&one, 1)?;
    same("envelope", &seen.heard.contains(&envelope), &true)
}

fn leaving(open: &Open) -> Result<(), Error> {
    let stays = Member::join(open, "stays")?;
    let goes = Member::join(open, "goes")?;
    meet(&[&stays, &goes])?;
    stays.say(1)?;
    drop(goes.hears(&stays, 1)?);
    drop(goes);
    let count = 2 * limits::EPHEMERAL_QUEUE_MAX as u64;
    (2..=count).try_for_each(|seq| stays.say(seq).map(drop))?;
    let comes = Member::join(open, "comes")?;
    comes.say(1)?;
    drop(stays.hears(&comes, 1)?);
    stays.say(count + 1)?;
    let seen = comes.hears(&stays, count + 1)?;
    same("what it was there for", &seen.of("stays"), &vec![count + 1])
}

fn refusing(open: &Open) -> Result<(), Error> {
    let (one, deaf, other) = (
        Member::join(open, "one")?,
        Member::join(open, "deaf")?,
        Member::join(open, "other")?,
    );
    meet(&[&one, &deaf, &other])?;
    deaf.ear.seen().refuses = true;
    let before = deaf.ear.seen().heard.len();
    for seq in 1..=3 {
        one.say(seq)?;
    }
    let seen = other.hears(&one, 3)?;
    let heard: Vec<u64> = seen.of("one").into_iter().filter(|seq| *seq < GREETING).collect();
    same("what the other heard", &heard, &vec![1, 2, 3])?;
    same("what the deaf one heard", &deaf.ear.seen().heard.len(), &before)
}
