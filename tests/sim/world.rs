//! Two processes on one disk, the actors in them, and what happens to them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use neuron::{
    Append, Author, Cause, Clock as _, ConsumerId, Contract, Digest, Draft, EnvelopeRef, ErrorKind, Expectation,
    Ledger, ManualClock, Millis, Parent, Pattern, Receipt, Topic,
    consumer::{Consumer, Delivery},
    ledger::From,
    ownership::{LeaseReleased, Ownership},
    pipeline::Pipeline,
    store::{Observer, Point, Range, Row, Select, Store, verify},
    topic::catalog,
    vocabulary::Message as _,
};
use neuron_workspace::{Dice, PATIENCE};

use super::{
    actor::{Actor, CONSUMED, CONSUMER, EFFECTS, KEYS, Named, OWNED, REGISTERS, Read, Shown, TOPICS},
    disk::{Disk, Fate, Kind},
    oracle::{Oracle, Said, Told},
};

const BEGIN: Millis = Millis(1_790_000_000_000);
const PATTERNS: [&str; 4] = ["sim.**", "sim.a", "sim.*", "sim.registers"];

/// A process: its own handle on the store, and what it was shown.
struct Process {
    ledger: Ledger,
    shown: Shown,
    _watching: Arc<dyn Observer>,
}

pub(crate) struct World {
    dice: Dice,
    clock: Arc<ManualClock>,
    disk: Disk,
    processes: Vec<Process>,
    actors: Vec<Actor>,
    oracle: Oracle,
    words: u64,
    blobs: Vec<(Digest, Vec<u8>)>,
}

fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

fn draft(name: &str, word: &str, value: Option<u64>) -> Draft {
    let draft = Draft::new(topic(name), Author::cli(), "said").unwrap();
    let word = word.to_owned();
    draft.payload(&Said { word, value }).unwrap()
}

/// A batch under a name.
fn named(key: &str, word: &str) -> Append {
    Append::of([draft(TOPICS[0], word, None)]).idempotency_key(key).unwrap()
}

impl World {
    pub(crate) fn new(seed: u64, kind: Kind) -> Self {
        let clock = Arc::new(ManualClock::at(BEGIN));
        let actors = PATTERNS.iter().enumerate();
        let mut world = Self {
            dice: Dice::new(seed),
            disk: Disk::new(kind, clock.clone()),
            clock,
            processes: Vec::new(),
            actors: actors.map(|(n, pattern)| Actor::new(n % 2, pattern)).collect(),
            oracle: Oracle::default(),
            words: 0,
            blobs: Vec::new(),
        };
        world.boot();
        world
    }

    fn boot(&mut self) {
        while self.processes.len() < 2 {
            let store = self.disk.open();
            let shown = Shown::default();
            let into = shown.clone();
            let watching: Arc<dyn Observer> = Arc::new(move |rows: &[Arc<Row>]| {
                into.lock().unwrap().extend(rows.iter().map(|row| (row.pos, row.id)));
            });
            store.observe(Arc::downgrade(&watching));
            let ledger = Ledger::over(store, self.clock.clone(), Pipeline::default()).unwrap();
            self.processes.push(Process {
                ledger,
                shown,
                _watching: watching,
            });
        }
    }

    fn ledger(&self, actor: usize) -> Ledger {
        self.processes[self.actors[actor].process].ledger.clone()
    }

    fn store(&self) -> Arc<dyn Store> {
        self.processes[0].ledger.store().clone()
    }

    /// Somebody does something; then the log is looked at.
    pub(crate) async fn step(&mut self) {
        let actor = self.dice.below(self.actors.len());
        if self.oracle.len() == 0 {
            self.declare(actor).await;
        }
        match self.dice.below(24) {
            0..4 => self.writes(actor).await,
            4..6 => self.reads_a_register(actor),
            6..9 => self.sets_a_register(actor).await,
            9 => self.claims(actor).await,
            10..12 => self.works_as_owner(actor).await,
            12..14 => self.listens(actor),
            14 => self.names_a_batch(actor).await,
            15 => self.repeats_a_batch(actor).await,
            16 => self.defers(actor),
            17 => self.keeps_a_blob(actor),
            18 => self.turns_the_clock(),
            19..22 => self.consumes(actor).await,
            22 => self.hands_over(actor).await,
            _ => self.meets_bad_luck(actor).await,
        }
        self.look();
    }

    /// Ends the story: everybody hears everything, and the log is verified as a whole. Gives its story.
    pub(crate) async fn settle(mut self) -> Vec<String> {
        self.consume_all().await;
        self.flush();
        for actor in 0..self.actors.len() {
            self.subscribe(actor);
            let mut tail = self.ledger(actor).store().tail();
            tail.wait_for(|tail| *tail >= self.oracle.len()).await.unwrap();
            let mine = &mut self.actors[actor];
            while let Some(envelope) = mine.subscription.as_mut().unwrap().try_next().unwrap() {
                mine.delivered
                    .push((envelope.pos, envelope.topic.clone(), envelope.id()));
            }
            self.actors[actor].assert_in_order(self.oracle.log(), true);
        }
        self.dies(None);
        self.look();
        let store = self.store();
        let verified = verify::verify(&*store).unwrap();
        assert_eq!(verified.head, self.oracle.head());
        for head in self.oracle.heads() {
            verify::check(&*store, head).unwrap();
        }
        for (hash, content) in &self.blobs {
            let mut read = Vec::new();
            std::io::copy(&mut self.processes[0].ledger.blob(hash).unwrap(), &mut read).unwrap();
            assert!(read == *content);
        }
        self.oracle.into_story()
    }

    /// Reads what is new, and holds everything to the laws.
    fn look(&mut self) {
        let store = self.store();
        let mut range = Range {
            from: self.oracle.len() + 1,
            ..Range::ALL
        };
        loop {
            let page = store.page(&Select::All, range).unwrap();
            for row in &page.rows {
                self.oracle.take(row).unwrap();
            }
            match page.next {
                Some(next) => range.from = next,
                None => break,
            }
        }
        self.oracle.batches().unwrap();
        for process in &self.processes {
            for (pos, id) in process.shown.lock().unwrap().drain(..) {
                let stands = self.oracle.log().get(usize::try_from(pos - 1).unwrap());
                assert_eq!(
                    stands.map(|(_, id)| *id),
                    Some(id),
                    "an observer saw what does not stand"
                );
            }
        }
        for actor in &self.actors {
            actor.assert_in_order(self.oracle.log(), false);
        }
        if self.dice.once_in(10) {
            self.oracle.keep_head();
        }
    }

    /// Commits what is deferred.
    fn flush(&mut self) {
        self.processes.iter().for_each(|process| process.ledger.store().flush());
        self.look();
    }

    fn word(&mut self) -> String {
        self.words += 1;
        format!("word-{}", self.words)
    }

    async fn declare(&mut self, actor: usize) {
        let family = Pattern::new("sim.*").unwrap();
        let (ledger, author) = (self.ledger(actor), Author::cli());
        ledger.declare(&family, Contract::Durable, &author).await.unwrap();
    }

    /// A batch of a few drafts, with causes and parents where there are some.
    fn batch(&mut self) -> (Vec<Draft>, Vec<String>) {
        let (mut drafts, mut words) = (Vec::new(), Vec::new());
        for index in 0..=self.dice.below(3) {
            let (name, word) = (*self.dice.pick(&TOPICS), self.word());
            let mut draft = draft(name, &word, None);
            if index > 0 && self.dice.once_in(2) {
                draft = draft.cause(Cause::Index(self.dice.below(index)));
            } else if self.dice.once_in(3) && self.oracle.len() > 0 {
                draft = self.caused(draft);
            }
            if self.dice.once_in(3) {
                let head = self.store().head(&topic(name)).unwrap();
                draft = if head > 0 {
                    draft.parent(Parent::Seq(head))
                } else {
                    draft
                };
            }
            drafts.push(draft);
            words.push(word);
        }
        (drafts, words)
    }

    fn caused(&mut self, draft: Draft) -> Draft {
        let place = self.dice.below(usize::try_from(self.oracle.len()).unwrap());
        let (topic, id) = self.oracle.log()[place].clone();
        let before = &self.oracle.log()[..=place];
        let seq = before.iter().filter(|(other, _)| *other == topic).count() as u64;
        draft.cause(Cause::Envelope(EnvelopeRef { topic, seq, id }))
    }

    /// Appends, tells the oracle what was answered, and gives it back.
    async fn append(&mut self, actor: usize, append: Append, words: &[String]) -> Result<Vec<Receipt>, ErrorKind> {
        let batch = self.oracle.tries(words.iter().map(String::as_str));
        let outcome = self.ledger(actor).append(append).await;
        let told = if outcome.is_ok() { Told::Stands } else { Told::Refused };
        self.oracle.told(batch, told);
        self.look();
        if let Ok(receipts) = &outcome {
            assert_eq!(receipts.len(), words.len());
            for receipt in receipts {
                self.oracle.receipt(receipt).unwrap();
            }
        }
        outcome.map_err(|error| error.kind())
    }

    async fn writes(&mut self, actor: usize) {
        let (drafts, words) = self.batch();
        let mut append = Append::of(drafts);
        let (name, off) = (topic(TOPICS[self.dice.below(TOPICS.len())]), self.dice.below(2) as u64);
        let expects = self.dice.once_in(3);
        if expects {
            // What is deferred goes before it, and would move the head.
            self.flush();
            let head = self.store().head(&name).unwrap();
            append = append.expect(Expectation::Head(name, head + off));
        }
        let outcome = self.append(actor, append, &words).await;
        let wanted = if expects && off > 0 {
            Err(ErrorKind::Conflict)
        } else {
            Ok(())
        };
        assert_eq!(outcome.map(drop), wanted);
    }

    fn reads_a_register(&mut self, actor: usize) {
        let key = *self.dice.pick(&KEYS);
        let ledger = self.ledger(actor);
        let last = ledger
            .read(Select::Key(topic(REGISTERS), key.into()))
            .newest_first()
            .limit(1);
        let last = last.envelopes().next().transpose().unwrap();
        self.actors[actor].read = Some(Read {
            key,
            value: last
                .as_ref()
                .map_or(0, |last| last.decode::<Said>().unwrap().value.unwrap()),
            seq: last.map(|last| last.seq),
        });
    }

    /// Writes one more than it has read, perhaps long ago: whoever was overtaken is refused.
    async fn sets_a_register(&mut self, actor: usize) {
        let Some(Read { key, value, seq }) = self.actors[actor].read.take() else {
            return;
        };
        let now = self.store().keyed(&topic(REGISTERS), key).unwrap();
        let word = self.word();
        let draft = draft(REGISTERS, &word, Some(value + 1)).key(key).unwrap();
        let append = Append::of([draft]).expect(Expectation::Key(topic(REGISTERS), key.into(), seq));
        let outcome = self.append(actor, append, &[word]).await;
        let wanted = if now == seq { Ok(()) } else { Err(ErrorKind::Conflict) };
        assert_eq!(outcome.map(drop), wanted);
    }

    async fn claims(&mut self, actor: usize) {
        let ledger = self.ledger(actor);
        let mine = &mut self.actors[actor];
        let owner = mine
            .owner
            .get_or_insert_with(|| Ownership::join(ledger, Duration::from_secs(9)).unwrap())
            .clone();
        match owner.claim(OWNED).await {
            Ok(claimed) => {
                self.look();
                assert_eq!(claimed.epoch, self.oracle.epoch(OWNED));
                self.actors[actor].epoch = claimed.epoch;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Owned, "{error}"),
        }
        if self.dice.once_in(3) {
            // It dies or gives up: the next one takes over.
            self.actors[actor].owner = None;
        }
    }

    /// Gives what it owns to another that lives, which finds it its own.
    async fn hands_over(&mut self, actor: usize) {
        let other = self.dice.below(self.actors.len());
        let (Some(owner), Some(to)) = (self.actors[actor].owner.clone(), self.actors[other].owner.clone()) else {
            return;
        };
        let newest = self.oracle.epoch(OWNED);
        match owner.hand_over(OWNED, to.incarnation()).await {
            Ok(epoch) => {
                self.look();
                assert_eq!(epoch, self.oracle.epoch(OWNED));
                assert_eq!(epoch, newest + u64::from(actor != other));
                self.actors[other].epoch = epoch;
                assert_eq!(to.claim(OWNED).await.unwrap().epoch, epoch);
            }
            // It never owned the name, or believes to.
            Err(error) => assert!(
                [ErrorKind::Misuse, ErrorKind::Fenced].contains(&error.kind()),
                "{error}"
            ),
        }
    }

    /// Has the consumer open, if nobody else has; handles some messages, and perhaps dies or gives it up.
    async fn consumes(&mut self, actor: usize) {
        let Some(mut consumer) = self.opens_the_consumer(actor).await else {
            return;
        };
        for _ in 0..=self.dice.below(4) {
            let Ok(next) = tokio::time::timeout(Duration::from_secs(1), consumer.next()).await else {
                break;
            };
            match next {
                Ok(delivery) => self.handles(delivery).await,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
                    return;
                }
            }
        }
        match self.dice.below(6) {
            0 => {
                drop(consumer);
                self.awaits("its release", Self::is_released).await;
            }
            1 => consumer.close().await.unwrap(),
            _ => self.actors[actor].consumer = Some(consumer),
        }
    }

    async fn opens_the_consumer(&mut self, actor: usize) -> Option<Consumer> {
        if let Some(open) = self.actors[actor].consumer.take() {
            return Some(open);
        }
        let own = Ownership::join(self.ledger(actor), Duration::from_secs(9)).unwrap();
        let builder = own.consumer(CONSUMER).unwrap().pattern(Pattern::new(CONSUMED).unwrap());
        let builder = builder
            .from(From::Start)
            .max_deliveries(1_000)
            .schedule([Duration::from_secs(1)]);
        let opened = builder.try_open().await;
        self.look();
        match opened {
            Ok(consumer) => Some(consumer),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Owned, "{error}");
                None
            }
        }
    }

    /// Commits the effect of a message with its position, or fails in one way or another.
    async fn handles(&mut self, mut delivery: Delivery) {
        let ended = match self.dice.below(8) {
            0 => delivery.fail("the simulation wants it so").await,
            1 => delivery.retry_after(Duration::from_secs(2)).await,
            2 => {
                let topic = catalog::consumer(&ConsumerId::new(CONSUMER).unwrap());
                let head = self.store().head(&topic).unwrap();
                drop(delivery);
                self.awaits("its end", |world| world.store().head(&topic).unwrap() > head)
                    .await;
                Ok(())
            }
            _ => {
                let word = format!("effect-{}-{}", delivery.envelope().pos, self.word());
                let batch = self.oracle.tries([&*word]);
                let effect = draft(EFFECTS, &word, None).cause(Ledger::cause(delivery.envelope()));
                let outcome = delivery.ack_with(Append::of([effect])).await;
                let told = if outcome.is_ok() { Told::Stands } else { Told::Refused };
                self.oracle.told(batch, told);
                outcome.map(drop)
            }
        };
        self.look();
        if let Err(error) = ended {
            assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
        }
    }

    /// Whether whoever had the consumer open has said that it is free.
    fn is_released(&self) -> bool {
        let leases = Select::Key(catalog::leases(), format!("consumer:{CONSUMER}").into());
        let last = self.processes[0].ledger.read(leases).newest_first().limit(1);
        let last = last.envelopes().next().transpose().unwrap();
        last.is_none_or(|last| last.body.kind == LeaseReleased::TYPE)
    }

    /// Waits until it is so. The clock of the simulation goes on by itself, a thread that commits does not.
    async fn awaits(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < until, "{what} does not come");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Goes on until every message has had its effect.
    async fn consume_all(&mut self) {
        self.flush();
        let until = Instant::now() + PATIENCE;
        while self.oracle.unconsumed() > 0 {
            assert!(
                Instant::now() < until,
                "{} messages have no effect",
                self.oracle.unconsumed()
            );
            for actor in 0..self.actors.len() {
                self.consumes(actor).await;
                // Whoever gave it up has still to say so.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    async fn works_as_owner(&mut self, actor: usize) {
        let (drafts, words) = self.batch();
        let epoch = self.actors[actor].epoch;
        let append = Append::of(drafts).owner(OWNED, epoch);
        let outcome = self.append(actor, append, &words).await;
        let stale = epoch != self.oracle.epoch(OWNED);
        let wanted = if stale { Err(ErrorKind::Fenced) } else { Ok(()) };
        assert_eq!(outcome.map(drop), wanted);
    }

    fn subscribe(&mut self, actor: usize) {
        let ledger = self.ledger(actor);
        let mine = &mut self.actors[actor];
        let after = From::After(mine.after());
        mine.subscription
            .get_or_insert_with(|| ledger.subscribe(mine.pattern.clone(), after).unwrap());
    }

    fn listens(&mut self, actor: usize) {
        self.subscribe(actor);
        let count = self.dice.below(8);
        let mine = &mut self.actors[actor];
        for _ in 0..count {
            let next = mine.subscription.as_mut().unwrap().try_next().unwrap();
            let Some(envelope) = next else { break };
            mine.delivered
                .push((envelope.pos, envelope.topic.clone(), envelope.id()));
        }
    }

    async fn names_a_batch(&mut self, actor: usize) {
        let (key, word) = (format!("key-{}", self.words), self.word());
        let append = named(&key, &word);
        let receipts = self.append(actor, append, std::slice::from_ref(&word)).await.unwrap();
        let first = receipts[0].clone();
        self.actors[actor].named.push(Named { key, word, first });
    }

    /// Sends a named batch again, or another under its name, from whatever process.
    async fn repeats_a_batch(&mut self, actor: usize) {
        let other = self.dice.below(self.actors.len());
        let Some(Named { key, word, first }) = self.actors[other].named.last().cloned() else {
            return;
        };
        let append = named(&key, &word);
        let again = self.ledger(actor).append(append).await.unwrap().remove(0);
        assert!(again.deduplicated);
        assert_eq!((again.pos, again.id, again.at), (first.pos, first.id, first.at));
        let word = self.word();
        let append = named(&key, &word);
        let outcome = self.append(actor, append, &[word]).await;
        assert_eq!(outcome.unwrap_err(), ErrorKind::IdempotencyConflict);
    }

    /// Appends with whatever comes next, or with nothing if everybody dies first.
    fn defers(&mut self, actor: usize) {
        let (drafts, words) = self.batch();
        let batch = self.oracle.tries(words.iter().map(String::as_str));
        let ledger = self.ledger(actor);
        let handles = ledger.defer(Append::of(drafts)).unwrap();
        if self.dice.once_in(2) {
            ledger.store().flush();
            self.oracle.told(batch, Told::Stands);
            self.look();
            for handle in handles {
                self.oracle.receipt(&handle.place().unwrap()).unwrap();
            }
        }
    }

    fn keeps_a_blob(&mut self, actor: usize) {
        let content: Vec<u8> = (0..self.dice.below(2_000)).map(|byte| byte.to_le_bytes()[0]).collect();
        let hash = self.ledger(actor).store_blob(&*content).unwrap();
        assert_eq!(hash, Digest::content(&content));
        self.blobs.push((hash, content));
    }

    fn turns_the_clock(&mut self) {
        const DAY: usize = 24 * 60 * 60 * 1_000;
        // A little, or a day: it was set by hand, or the machine was suspended.
        let most = *self.dice.pick(&[10_000, 10_000, 2 * DAY]);
        let by = i64::try_from(self.dice.below(most)).unwrap() - i64::try_from(most / 3).unwrap();
        self.clock.set(Millis(self.clock.now().0 + by));
    }

    async fn meets_bad_luck(&mut self, actor: usize) {
        match self.dice.below(5) {
            0 => self.finds_the_disk_full(actor).await,
            1 => self.dies_in_a_commit(actor, Point::BeforeCommit).await,
            2 => self.dies_in_a_commit(actor, Point::AfterCommit).await,
            3 => self.dies(None),
            _ => self.restarts(actor).await,
        }
    }

    async fn finds_the_disk_full(&mut self, actor: usize) {
        // What is deferred would fail with it, and its writer would be told so by its next append.
        self.calms_down().await;
        self.disk.strike(Fate::Fails);
        let (drafts, words) = self.batch();
        let outcome = self.append(actor, Append::of(drafts), &words).await;
        assert_eq!(outcome.unwrap_err(), ErrorKind::Full);
        assert!(!self.disk.spared());
    }

    /// Everybody dies inside of a commit; nobody is told what became of it.
    async fn dies_in_a_commit(&mut self, actor: usize, point: Point) {
        self.calms_down().await;
        let stood = self.oracle.len();
        self.disk.strike(Fate::Dies(point));
        let (drafts, words) = self.batch();
        self.oracle.tries(words.iter().map(String::as_str));
        let outcome = self.ledger(actor).append(Append::of(drafts)).await;
        assert!(outcome.is_ok() && !self.disk.spared());
        let stands = self.store().last().unwrap().0;
        assert_eq!(stands, stood + words.len() as u64);
        self.reboot(Some(point), stood, stands);
        let left = self.store().last().unwrap().0;
        assert_eq!(left, if point == Point::BeforeCommit { stood } else { stands });
    }

    /// Whoever has still something to say, a consumer that was given up for instance, has said it: the next commit is that
    /// of the one who appends.
    async fn calms_down(&mut self) {
        tokio::time::sleep(Duration::from_secs(3)).await;
        self.flush();
    }

    /// Everybody dies between two commits, and what was deferred with them.
    fn dies(&mut self, at: Option<Point>) {
        let stands = self.store().last().unwrap().0;
        self.reboot(at, stands, stands);
    }

    fn reboot(&mut self, at: Option<Point>, stood: u64, stands: u64) {
        // The image is what counts from here on; the end of the old handles writes only to the old files.
        let old = self.disk.die(at, stood, stands);
        self.actors.iter_mut().for_each(Actor::dies);
        // What was shown beyond the image was shown to the dead.
        self.processes.clear();
        drop(old);
        self.boot();
    }

    /// One process ends as it should and comes again; what it had deferred is committed.
    async fn restarts(&mut self, actor: usize) {
        let process = self.actors[actor].process;
        let of_it = self.actors.iter_mut().filter(|actor| actor.process == process);
        let mut consumed = false;
        for actor in of_it {
            consumed |= actor.consumer.is_some();
            actor.dies();
        }
        if consumed {
            self.awaits("its release", Self::is_released).await;
        }
        let ended = self.processes.remove(process);
        ended.ledger.store().flush();
        drop(ended);
        self.boot();
        // The new one is last in the list, and takes the place of the old one.
        let last = self.processes.len() - 1;
        self.processes.swap(process, last);
    }
}
