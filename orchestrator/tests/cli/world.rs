//! A small store whose every byte is known: written through the ledger, on a clock that stands still.

use std::{path::PathBuf, sync::Arc, time::Duration};

use jiff::tz::TimeZone;
use neuron::{
    Append, Artifact, Author, Cause, Contract, Digest, Draft, Json, Ledger, ManualClock, Millis, Pattern, Topic,
    pipeline::Pipeline,
    store::{Options, Sqlite},
};
use orchestrator::cli::{self, Console, Exit};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

/// When the first envelope of a store was committed: 2026-09-21, 16:13:20 in Berlin.
pub const START: Millis = Millis(1_790_000_000_000);

pub struct World {
    folder: TempDir,
    clock: Arc<ManualClock>,
    ledger: Option<Ledger>,
}

/// Something that was noted.
#[derive(Serialize, JsonSchema)]
pub struct Note {
    /// What it says.
    pub text: String,
}

/// What a command said.
pub struct Said {
    pub exit: Exit,
    pub out: String,
    pub err: String,
}

impl Said {
    /// All of it, for a snapshot.
    pub fn whole(&self) -> String {
        format!("{}-- {} --\n{}", self.out, self.exit.code(), self.err)
    }

    /// The answer, one JSON value per line.
    pub fn values(&self) -> Vec<Value> {
        let values = self.out.lines().map(|line| serde_json::from_str(line).unwrap());
        values.collect()
    }
}

impl World {
    /// A folder without a store.
    pub fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::new(ManualClock::at(START)),
            ledger: None,
        }
    }

    /// A store with a few notes.
    pub fn with_notes() -> Self {
        let world = Self::empty().opened();
        for text in ["buy bread", "write home", "call \u{1b}[31mred\u{1b}[0m"] {
            world.append([note(text)]);
        }
        let reply = Draft::new(topic("notes.replies"), Author::human("bob").unwrap(), "note.answered").unwrap();
        let answered = world
            .ledger()
            .read(neuron::store::Select::Topic(topic("notes.today")))
            .envelopes()
            .next();
        let cause = Cause::Envelope(answered.unwrap().unwrap().reference());
        world.append([reply
            .json(Json::of(&json!({"name": "bread", "done": true})).unwrap(), None)
            .cause(cause)]);
        world
    }

    /// Opens the store for writing, and makes it if need be.
    pub fn opened(mut self) -> Self {
        let options = Options {
            clock: self.clock.clone(),
            ..Options::default()
        };
        let store = Sqlite::open(self.path(), options).unwrap();
        let ledger = Ledger::over(Arc::new(store), self.clock.clone(), Pipeline::default()).unwrap();
        let (notes, author) = (Pattern::new("notes.*").unwrap(), ada());
        futures::executor::block_on(ledger.declare(&notes, Contract::Durable, &author)).unwrap();
        self.ledger = Some(ledger);
        self
    }

    /// Lets go of the store, as a process that ends.
    pub fn closed(mut self) -> Self {
        self.ledger = None;
        self
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub fn ledger(&self) -> &Ledger {
        self.ledger.as_ref().unwrap()
    }

    /// Appends a batch; a second passes.
    pub fn append(&self, drafts: impl IntoIterator<Item = Draft>) {
        self.ledger().append_blocking(Append::of(drafts)).unwrap();
        self.clock.advance(Duration::from_millis(1_001));
    }

    pub fn ask(&self, args: &[&str]) -> Said {
        self.ask_at(None, args)
    }

    /// As on a terminal of so many columns, without colour.
    pub fn ask_on(&self, columns: u16, args: &[&str]) -> Said {
        self.ask_at(Some(columns), args)
    }

    fn ask_at(&self, columns: Option<u16>, args: &[&str]) -> Said {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = self.console(Console::new(&mut out, &mut err));
        if let Some(columns) = columns {
            console = console.terminal(columns, false);
        }
        let exit = cli::run_on([&["neuron"], args].concat(), console);
        let folder = self.folder().canonicalize().unwrap().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&folder, "<folder>");
        let (out, err) = (text(out), text(err));
        Said {
            exit,
            out,
            err: err.replace(&self.folder().display().to_string(), "<folder>"),
        }
    }

    /// A console whose surroundings are those of this world.
    pub fn console<'a>(&self, console: Console<'a>) -> Console<'a> {
        console
            .zone(TimeZone::get("Europe/Berlin").unwrap())
            .clock(self.clock.clone())
            .folder(self.folder())
            .store(None)
    }
}

pub fn ada() -> Author {
    Author::human("ada").unwrap()
}

pub fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

/// A note of today.
pub fn note(text: &str) -> Draft {
    let draft = Draft::new(topic("notes.today"), ada(), "note.taken").unwrap();
    draft.payload(&Note { text: text.into() }).unwrap()
}

/// An artifact of a draft.
pub fn evidence(name: &str, hash: Digest, kind: &str) -> Artifact {
    Artifact {
        name: name.into(),
        hash: Some(hash),
        kind: Some(kind.into()),
    }
}
