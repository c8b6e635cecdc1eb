//! L5: durable before visible.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use neuron::{
    Append, Digest, Error, ErrorKind, ManualClock, Pattern, Result,
    ledger::From,
    store::{Access, Durability, Fault, Observer, Options, Point, Row, Sqlite, Store},
};
use proptest::{collection::vec, prelude::any, prop_assert, prop_assert_eq, proptest};

use super::{BEGIN, Backend, Home, cases, note, rows, script, topic};

/// Looks, inside of every commit, at the store as another process sees it; and makes some commits fail.
#[derive(Debug, Default)]
struct Witness {
    path: Mutex<Option<PathBuf>>,
    /// What this process was shown so far, by `pos`.
    shown: Arc<Mutex<Vec<(u64, Digest)>>>,
    /// Commits that fail, by number.
    failing: Vec<bool>,
    commits: AtomicU64,
    /// Looks that found something that was not durable, or missed something that was.
    lies: Mutex<Vec<String>>,
    /// The last durable `pos`.
    durable: AtomicU64,
}

impl Witness {
    fn look(&self, point: Point) -> Option<()> {
        let path = self.path.lock().unwrap().clone()?;
        let reading = Options {
            access: Access::Read,
            durability: Durability::Process,
            clock: Arc::new(ManualClock::at(BEGIN)),
            ..Options::default()
        };
        let (last, _) = Sqlite::open_apart(path, reading).unwrap().last().unwrap();
        let before = self.durable.load(Ordering::SeqCst);
        let shown = self.shown.lock().unwrap().last().map_or(0, |(pos, _)| *pos);
        let honest = match point {
            Point::BeforeCommit => last == before && shown <= before,
            _ => last > before && shown <= before,
        };
        if !honest {
            self.lies.lock().unwrap().push(format!(
                "{point:?}: {before} durable, {last} for others, {shown} shown here"
            ));
        }
        if point != Point::BeforeCommit {
            self.durable.store(last, Ordering::SeqCst);
        }
        Some(())
    }
}

impl Fault for Witness {
    fn at(&self, point: Point) -> Result<(), Error> {
        self.look(point);
        if point == Point::BeforeCommit {
            let commit = usize::try_from(self.commits.fetch_add(1, Ordering::SeqCst)).unwrap();
            if self.failing.get(commit) == Some(&true) {
                return Err(Error::new(ErrorKind::Full, "the disk is full, says the test"));
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn nobody_in_any_process_sees_what_a_crash_could_take_back(script in script(), failing in vec(any::<bool>(), 8)) {
        // The declaration of the topics is the first commit, and stands.
        let failing = [vec![false], failing].concat();
        let witness = Arc::new(Witness { failing: failing.clone(), ..Witness::default() });
        let home = Home::with(Backend::Sqlite, Some(witness.clone()));
        witness.durable.store(home.ledger.store().last().unwrap().0, Ordering::SeqCst);
        let shown = witness.shown.clone();
        let watching: Arc<dyn Observer> = Arc::new(move |rows: &[Arc<Row>]| {
            shown.lock().unwrap().extend(rows.iter().map(|row| (row.pos, row.id)));
        });
        home.ledger.store().observe(Arc::downgrade(&watching));
        *witness.path.lock().unwrap() = Some(home.path());
        let everything = Pattern::new("law.*").unwrap();
        let mut here = home.ledger.subscribe(everything.clone(), From::Start).unwrap();
        let mut heard = home.ledger.bus().listen(everything.clone());
        let mut acknowledged = Vec::new();
        for (index, batch) in script.iter().enumerate() {
            let outcome = home.ledger.append_blocking(home.batch(batch));
            prop_assert_eq!(outcome.is_err(), failing[index + 1]);
            acknowledged.extend(outcome.unwrap_or_default().into_iter().map(|receipt| (receipt.pos, receipt.id)));
        }
        prop_assert_eq!(&*witness.lies.lock().unwrap(), &Vec::<String>::new());
        // What was acknowledged was shown, in order and once, on every way there is.
        prop_assert_eq!(&*witness.shown.lock().unwrap(), &acknowledged);
        let mut elsewhere = home.another().subscribe(everything, From::Start).unwrap();
        for (pos, id) in &acknowledged {
            prop_assert_eq!(here.try_next().unwrap().map(|e| (e.pos, e.id())), Some((*pos, *id)));
            prop_assert_eq!(elsewhere.try_next().unwrap().map(|e| (e.pos, e.id())), Some((*pos, *id)));
            prop_assert_eq!(heard.try_next().unwrap().map(|e| e.id()), Some(*id));
        }
        prop_assert!(here.try_next().unwrap().is_none() && heard.try_next().unwrap().is_none());
        *witness.path.lock().unwrap() = None;
        let home = home.reopened();
        let stored: Vec<_> = rows(&home.ledger).iter().skip(1).map(|row| (row.pos, row.id)).collect();
        prop_assert_eq!(stored, acknowledged);
    }
}

#[test]
fn an_appender_has_its_receipt_only_after_every_observer_has_seen_the_rows() {
    for backend in super::BOTH {
        let home = Home::new(backend);
        let seen = Arc::new(AtomicU64::new(0));
        let into = seen.clone();
        let watching: Arc<dyn Observer> = Arc::new(move |rows: &[Arc<Row>]| {
            into.store(rows.last().unwrap().pos, Ordering::SeqCst);
        });
        home.ledger.store().observe(Arc::downgrade(&watching));
        for text in ["one", "two"] {
            let receipts = home.ledger.append_blocking(Append::of([note(text)])).unwrap();
            assert_eq!(seen.load(Ordering::SeqCst), receipts[0].pos);
            assert_eq!(home.ledger.store().head(&topic(0)).unwrap(), receipts[0].seq);
        }
    }
}
