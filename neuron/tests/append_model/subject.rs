//! A store that is held to the model.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use neuron::{
    Append, Author, Digest, ENVELOPE_CONTEXT, EnvelopeRef, Error, ErrorKind, Json, ManualClock, Millis, Receipt, Topic,
    store::{
        self, Access, Durability, Memory, Options, Range, Select, Sqlite, Store,
        conformance::{self, Breaker},
        verify,
    },
};

use crate::{
    history::{Batch, Cause, Draft, Expectation, Kind, Parent, Step},
    model::{Model, Outcome, Row, payload_of, topic_of},
};

type Said = Result<Vec<Receipt>, Error>;

/// Two handles on one store, each with its own writer where the store has a file.
pub(crate) struct Subject {
    handles: Vec<Arc<dyn Store>>,
    file: Option<PathBuf>,
    clock: Arc<ManualClock>,
    fault: Arc<Breaker>,
    _folder: Option<tempfile::TempDir>,
}

/// An empty store, copied for each history.
pub(crate) struct Template {
    folder: tempfile::TempDir,
    made: AtomicUsize,
}

impl Template {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Sqlite::open(folder.path().join("template"), Options::default()).unwrap();
        Self {
            folder,
            made: AtomicUsize::new(0),
        }
    }

    pub(crate) fn sqlite(&self) -> Subject {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        let file = folder
            .path()
            .join(format!("{}", self.made.fetch_add(1, Ordering::Relaxed)));
        std::fs::copy(self.folder.path().join("template"), &file).unwrap();
        let mut subject = Subject {
            handles: Vec::new(),
            file: Some(file),
            clock: Arc::new(ManualClock::at(Millis(0))),
            fault: Arc::default(),
            _folder: Some(folder),
        };
        subject.handles = vec![subject.opened(), subject.opened()];
        subject
    }
}

impl Subject {
    pub(crate) fn memory() -> Self {
        let (clock, fault) = (Arc::new(ManualClock::at(Millis(0))), Arc::<Breaker>::default());
        let store: Arc<dyn Store> = Arc::new(Memory::with(clock.clone(), Some(fault.clone())).unwrap());
        Self {
            handles: vec![store],
            file: None,
            clock,
            fault,
            _folder: None,
        }
    }

    fn opened(&self) -> Arc<dyn Store> {
        let options = Options {
            access: Access::Write,
            durability: Durability::Process,
            clock: self.clock.clone(),
            fault: Some(self.fault.clone()),
            ..Options::default()
        };
        Arc::new(Sqlite::open_apart(self.file.as_ref().unwrap(), options).unwrap())
    }

    /// The handle of this number; a store without a file has one.
    fn store(&self, handle: usize) -> &Arc<dyn Store> {
        &self.handles[handle % self.handles.len()]
    }

    pub(crate) fn one_handle(&self) -> bool {
        self.file.is_none()
    }

    pub(crate) fn step(&mut self, step: &Step, model: &Model) -> Vec<Outcome> {
        match step {
            Step::Append { handle, batch, broken } => self.append(*handle, batch, *broken, model),
            Step::Group {
                handle,
                batches,
                broken,
            } => self.group(*handle, batches, *broken, model),
            Step::Again { handle, .. } => match &model.again {
                Some(batch) => self.append(*handle, batch, false, model),
                None => Vec::new(),
            },
            Step::Reopen { handle } => {
                if !self.one_handle() {
                    drop(self.handles.remove(*handle));
                    let opened = self.opened();
                    self.handles.insert(*handle, opened);
                }
                Vec::new()
            }
            Step::Clock { at } => {
                self.clock.set(Millis(*at));
                Vec::new()
            }
        }
    }

    fn append(&self, handle: usize, batch: &Batch, broken: bool, model: &Model) -> Vec<Outcome> {
        let store = self.store(handle);
        let batch = batched(store, batch, model);
        if broken {
            self.fault.arm();
        }
        let said = store.append_blocking(conformance::batch(batch, Millis(0)).unwrap());
        self.fault.disarm();
        vec![outcome(&said)]
    }

    /// Several batches in one commit: they are given while the commit before theirs is told.
    fn group(&self, handle: usize, batches: &[Batch], broken: bool, model: &Model) -> Vec<Outcome> {
        let (store, fault) = (self.store(handle), self.fault.clone());
        let said: Arc<Mutex<Vec<Option<Outcome>>>> = Arc::new(Mutex::new(vec![None; batches.len()]));
        let mut prepared = Vec::new();
        for (index, batch) in batches.iter().enumerate() {
            let said = said.clone();
            let append = batched(store, batch, model);
            let append = append.then(move |outcome_| said.lock().unwrap()[index] = Some(outcome(outcome_)));
            prepared.push(conformance::batch(append, Millis(0)).unwrap());
        }
        let marker = neuron::Draft::new(Topic::new("marker").unwrap(), Author::cli(), "plain").unwrap();
        let marker = Append::of([marker.json(Json::parse("0").unwrap(), None)]).owner("marker", 0);
        let same = store.clone();
        let marker = marker.then(move |_| {
            if broken {
                fault.arm();
            }
            for batch in prepared {
                same.defer(batch).unwrap();
            }
        });
        store
            .append_blocking(conformance::batch(marker, Millis(0)).unwrap())
            .unwrap();
        store.flush();
        self.fault.disarm();
        let said = said.lock().unwrap();
        said.iter().map(|outcome| outcome.clone().unwrap()).collect()
    }

    /// Holds every row and every look-up to the model.
    pub(crate) fn compare(&self, model: &Model) -> Result<(), String> {
        for store in &self.handles {
            let page = store.page(&Select::All, Range::ALL).unwrap();
            if page.rows.len() != model.rows.len().min(page.rows.len())
                || store.last().unwrap().0 != model.rows.len() as u64
            {
                return Err(format!("{} rows, wanted {}", page.rows.len(), model.rows.len()));
            }
            for (pos, (row, wanted)) in page.rows.iter().zip(&model.rows).enumerate() {
                let found = shown(row);
                if found != *wanted || row.pos != pos as u64 + 1 {
                    return Err(format!("at pos {}: found {found:?}, wanted {wanted:?}", row.pos));
                }
            }
            for topic in 0..3u8 {
                let name = topic_named(topic);
                let heads = (store.head(&name).unwrap(), model.head(name.as_str()));
                let keys = ["0", "1"].map(|key| (store.keyed(&name, key).unwrap(), model.keyed(name.as_str(), key)));
                if heads.0 != heads.1 || keys.iter().any(|(found, wanted)| found != wanted) {
                    return Err(format!("{name}: heads {heads:?}, keys {keys:?}"));
                }
            }
            for name in 0..2u8 {
                let epochs = (store.epoch(&name.to_string()).unwrap(), model.epoch(name));
                if epochs.0 != epochs.1 {
                    return Err(format!("epochs of {name}: {epochs:?}"));
                }
            }
        }
        Ok(())
    }

    /// What stands at the end is whole.
    pub(crate) fn finish(self, model: &Model) -> Result<(), String> {
        let store = self.store(0);
        let head = verify::verify(&**store).map_err(|error| error.to_string())?.head;
        if head.pos != model.rows.len() as u64 {
            return Err(format!("verified {head}, wanted {} rows", model.rows.len()));
        }
        Ok(())
    }
}

fn batched(store: &Arc<dyn Store>, batch: &Batch, model: &Model) -> Append {
    let drafts = batch.drafts.iter().map(|draft| drafted(store, draft, model));
    let mut append = Append::of(drafts.collect::<Vec<_>>());
    for expectation in &batch.expectations {
        append = append.expect(match expectation {
            Expectation::Head(topic, seq) => store::Expectation::Head(topic_named(*topic), *seq),
            Expectation::Key(topic, key, seq) => store::Expectation::Key(topic_named(*topic), key.to_string(), *seq),
            Expectation::Epoch(name, epoch) => store::Expectation::Epoch(name.to_string(), *epoch),
        });
    }
    if let Some(key) = batch.idempotency {
        append = append.idempotency_key(key.to_string()).unwrap();
    }
    match batch.owner {
        Some((name, epoch)) => append.owner(name.to_string(), epoch),
        None => append,
    }
}

fn drafted(store: &Arc<dyn Store>, draft: &Draft, model: &Model) -> neuron::Draft {
    let (kind, key) = match draft {
        Draft::Lease { name, .. } => ("lease.claimed", Some(name.to_string())),
        Draft::Said(said) => {
            let kind = match said.kind {
                Kind::Plain => "plain",
                Kind::Other => "other",
                Kind::Injection => "header.injected",
            };
            (kind, said.key.map(|key| key.to_string()))
        }
    };
    let mut made = neuron::Draft::new(Topic::new(topic_of(draft)).unwrap(), Author::cli(), kind).unwrap();
    made = made.json(Json::parse(&payload_of(draft)).unwrap(), None);
    if let Some(key) = key {
        made = made.key(key).unwrap();
    }
    let Draft::Said(said) = draft else { return made };
    made = match said.parent {
        Some(Parent::Seq(seq)) => made.parent(neuron::Parent::Seq(seq)),
        Some(Parent::Index(index)) => made.parent(neuron::Parent::Index(index)),
        None => made,
    };
    match said.cause {
        Some(Cause::Index(index)) => made.cause(neuron::Cause::Index(index)),
        Some(cause) => made.cause(neuron::Cause::Envelope(reference(store, cause, model))),
        None => made,
    }
}

/// What a cause means: a row counted back from the last one, or something that does not stand.
fn reference(store: &Arc<dyn Store>, cause: Cause, model: &Model) -> EnvelopeRef {
    let missing = EnvelopeRef {
        topic: topic_named(0),
        seq: 1_000,
        id: Digest::content(b"nobody"),
    };
    let row = match cause {
        Cause::Row(back) | Cause::Forged(back) => model.named(back),
        Cause::At(row) => Some(row),
        Cause::Missing | Cause::Index(_) => None,
    };
    let Some(row) = row else { return missing };
    let range = Range {
        from: row as u64 + 1,
        to: row as u64 + 1,
        ..Range::ALL
    };
    let mut page = store.page(&Select::All, range).unwrap();
    let Some(row) = page.rows.pop() else { return missing };
    EnvelopeRef {
        topic: row.topic,
        seq: row.seq,
        id: if matches!(cause, Cause::Forged(_)) {
            missing.id
        } else {
            row.id
        },
    }
}

fn topic_named(number: u8) -> Topic {
    Topic::new(format!("topic.{number}")).unwrap()
}

fn outcome(said: &Said) -> Outcome {
    match said {
        Ok(receipts) => Outcome::Stands(
            receipts.iter().map(|r| (r.pos, r.seq, r.at.0)).collect(),
            receipts.iter().any(|r| r.deduplicated),
        ),
        Err(error) => match error.kind() {
            ErrorKind::Malformed => Outcome::Malformed,
            ErrorKind::Conflict => Outcome::Conflict,
            ErrorKind::Fenced => Outcome::Fenced,
            ErrorKind::IdempotencyConflict => Outcome::IdempotencyConflict,
            ErrorKind::Full => Outcome::Full,
            other => panic!("{other:?} is no answer to an append: {error}"),
        },
    }
}

/// A stored row as the model writes it; the record and the columns each have their say.
fn shown(row: &store::Row) -> Row {
    let envelope = row.envelope().unwrap();
    assert_eq!(row.id, Digest::derive(ENVELOPE_CONTEXT, row.record.as_bytes()));
    assert_eq!(envelope.cause().is_some(), row.cause.is_some());
    assert_eq!(envelope.key().as_deref(), row.key.as_deref());
    Row {
        topic: envelope.topic.to_string(),
        seq: envelope.seq,
        at: envelope.at.0,
        kind: ["plain", "other", "header.injected", "lease.claimed"]
            .into_iter()
            .find(|kind| envelope.body.kind == *kind)
            .unwrap(),
        payload: envelope.body.payload.as_ref().unwrap().to_string(),
        key: envelope.key(),
        parent: envelope.parent_seq,
        cause: row.cause,
        idempotency: envelope.headers.decode("idempotency-key"),
        first: row.idempotency.is_some(),
        epoch: envelope.headers.decode("epoch"),
    }
}
