//! Commits that fail at random while schemas are registered and artifacts kept: what was told to have failed is not there,
//! what was told to stand is, and everything can be done again.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures::executor::block_on;
use neuron::{
    Append, Artifact, Author, Contract, Digest, Draft, Error, ErrorKind, Json, Ledger, Pattern, SchemaUse, SystemClock,
    Topic, limits,
    pipeline::Pipeline,
    store::{Durability, Fault, Memory, Options, Point, Select, Sqlite, Store, verify},
};
use proptest::{collection::vec, prelude::*};

/// Which of the commits to come fail; all others go through.
#[derive(Debug, Default)]
struct Failing(Mutex<VecDeque<bool>>);

impl Fault for Failing {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == Point::BeforeCommit && self.0.lock().unwrap().pop_front() == Some(true) {
            return Err(Error::new(ErrorKind::Full, "the disk is full, says the test"));
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Deed {
    /// Content of so many bytes, which go into chunks and then a manifest.
    Keep(usize, u8),
    /// An envelope that brings its schema along, and two that only name it.
    Register(u8),
    /// An envelope that names whatever was kept last.
    Name,
}

fn deed() -> impl Strategy<Value = Deed> {
    // In one chunk, in several, and in more than is written in one go.
    let bytes = prop_oneof![
        4 => 0..2_000_usize,
        2 => Just(limits::CHUNK_BYTES_MAX * 3 + 1),
        1 => Just(limits::ARTIFACT_SLICE_BYTES_MAX + 7),
    ];
    prop_oneof![
        (bytes, 0..3_u8).prop_map(|(bytes, fill)| Deed::Keep(bytes, fill)),
        (0..4_u8).prop_map(Deed::Register),
        Just(Deed::Name),
    ]
}

struct World {
    ledger: Ledger,
    fault: Arc<Failing>,
    kept: Option<Digest>,
    stands: u64,
}

fn topic() -> Topic {
    Topic::new("faults.a").unwrap()
}

fn schema(number: u8) -> SchemaUse {
    SchemaUse::inline(Json::parse(&format!(r#"{{"type":"integer","minimum":{number}}}"#)).unwrap()).unwrap()
}

fn draft() -> Draft {
    Draft::new(topic(), Author::cli(), "said").unwrap()
}

impl World {
    fn new(store: Arc<dyn Store>, fault: Arc<Failing>) -> Self {
        let ledger = Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap();
        let family = Pattern::new("faults.*").unwrap();
        block_on(ledger.declare(&family, Contract::Durable, &Author::cli())).unwrap();
        Self {
            ledger,
            fault,
            kept: None,
            stands: 0,
        }
    }

    /// Does it and holds the store to what was told. Gives whether it was done.
    fn does(&mut self, deed: &Deed) -> bool {
        let store = self.ledger.store().clone();
        let outcome = match deed {
            Deed::Keep(bytes, fill) => {
                let content = vec![*fill; *bytes];
                let hash = Digest::content(&content);
                let was_there = store.manifest(&hash).unwrap().is_some();
                let outcome = self.ledger.store_blob(&*content);
                let is_there = store.manifest(&hash).unwrap().is_some();
                assert_eq!(is_there, was_there || outcome.is_ok());
                if is_there {
                    let mut read = Vec::new();
                    std::io::copy(&mut self.ledger.blob(&hash).unwrap(), &mut read).unwrap();
                    assert!(read == content);
                }
                outcome.map(|hash| self.kept = Some(hash))
            }
            Deed::Register(number) => {
                let schema = schema(*number);
                let reference = schema.reference();
                let was_there = store.schema(&reference).unwrap().is_some();
                let payload = Json::of(&u64::from(*number)).unwrap();
                let drafts = (0..3).map(|_| draft().json(payload.clone(), Some(schema.clone())));
                let outcome = self.ledger.append_blocking(Append::of(drafts));
                let is_there = store.schema(&reference).unwrap().is_some();
                assert_eq!(is_there, was_there || outcome.is_ok());
                outcome.map(|receipts| self.stands += receipts.len() as u64)
            }
            Deed::Name => {
                let Some(hash) = self.kept else { return true };
                let named = draft().artifact(Artifact {
                    name: "kept".into(),
                    hash: Some(hash),
                    kind: None,
                });
                let outcome = self.ledger.append_blocking(Append::of([named]));
                outcome.map(|receipts| self.stands += receipts.len() as u64)
            }
        };
        assert_eq!(store.head(&topic()).unwrap(), self.stands);
        if let Err(error) = &outcome {
            assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        }
        outcome.is_ok()
    }

    fn follow(&mut self, deeds: &[Deed], failing: &[bool]) {
        self.fault.0.lock().unwrap().extend(failing);
        let done: Vec<bool> = deeds.iter().map(|deed| self.does(deed)).collect();
        // There is room again: what has failed is done, by the same handle.
        self.fault.0.lock().unwrap().clear();
        for (deed, _) in deeds.iter().zip(done).filter(|(_, done)| !done) {
            assert!(self.does(deed));
        }
        self.check(&**self.ledger.store());
    }

    fn check(&self, store: &dyn Store) {
        let verified = verify::verify(store).unwrap();
        assert_eq!(verified.schemas, store.schemas().unwrap().len() as u64);
        assert_eq!(store.head(&topic()).unwrap(), self.stands);
        let said = self.ledger.read(Select::Topic(topic())).envelopes();
        assert_eq!(said.map(Result::unwrap).count() as u64, self.stands);
    }
}

fn cases(count: u32) -> ProptestConfig {
    let long = std::env::var_os("NEURON_LONG").is_some_and(|value| value != "0");
    ProptestConfig {
        cases: if long { count * 20 } else { count },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn in_memory_what_has_failed_is_not_there_and_can_be_done_again(
        deeds in vec(deed(), 1..10), failing in vec(prop::bool::weighted(0.4), 0..20),
    ) {
        let fault = Arc::<Failing>::default();
        let store = Memory::with(Arc::new(SystemClock), Some(fault.clone())).unwrap();
        World::new(Arc::new(store), fault).follow(&deeds, &failing);
    }

    #[test]
    fn in_a_file_what_has_failed_is_not_there_and_can_be_done_again_also_by_whoever_opens_it_next(
        deeds in vec(deed(), 1..10), failing in vec(prop::bool::weighted(0.4), 0..20),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faults.db");
        let fault = Arc::<Failing>::default();
        let options = Options {
            durability: Durability::Process,
            fault: Some(fault.clone()),
            ..Options::default()
        };
        let store = Sqlite::open(&path, options.clone()).unwrap();
        let mut world = World::new(Arc::new(store), fault);
        world.follow(&deeds, &failing);
        world.check(&Sqlite::open_apart(&path, options).unwrap());
    }
}
