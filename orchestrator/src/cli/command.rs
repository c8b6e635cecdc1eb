//! All commands, and how each is given what it needs.

use std::path::PathBuf;

use neuron::{Ledger, doctor, store::Access};

use super::{
    answer::Answer,
    artifact::{Artifacts, Cat},
    board::Board,
    builds::Builds,
    causes::Causes,
    console::Console,
    consumers::{Consumer, Consumers, Redrive},
    copy::{Backup, Export, Import},
    cost::Cost,
    doctor::Doctor,
    fork::{Fork, Place},
    graph::Graph,
    integrity::{self, Check, Head, Verify},
    lineage::Lineage,
    log::Log,
    moment,
    order::{Order, Verb},
    outcome::{Exit, Failure, Outcome},
    place,
    replay::Replay,
    runs::Runs,
    schema::Schema,
    show::Show,
    topics::Topics,
    update::Update,
    waiting::{Resolve, Waiting},
};

/// What holds for every command.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Options {
    /// The store; else the environment variable NEURON_STORE, else the one `*.db` of this folder
    #[arg(long, value_name = "PATH", global = true)]
    pub store: Option<PathBuf>,
    /// Answer as of this moment, as if nothing had been committed since: RFC 3339, 2026-11-30, 10m or 2h ago, or
    /// milliseconds since the epoch. Schemas and artifacts have no place on the log: they are those of now
    #[arg(long, value_name = "T", global = true, conflicts_with = "at_pos")]
    pub at: Option<String>,
    /// As --at, by place: as if this pos were the last
    #[arg(long, value_name = "POS", global = true)]
    pub at_pos: Option<u64>,
    /// Answer in JSON: one value, or one per line for streams. Moments are milliseconds since the epoch, hashes whole
    #[arg(long, global = true)]
    pub json: bool,
    /// Colours: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub color: Color,
}

/// Whether to write in colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What is asked or ordered.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// What was run, and how far it came, newest first
    Runs(Runs),
    /// The packages of a run, what they wait for, and what was ruled on them
    Board(Board),
    /// The work of a run, drawn: its packages, their steps, and how far each has come
    Graph(Graph),
    /// What a run has burnt, by package and by step
    Cost(Cost),
    /// What waits for a person
    Waiting(Waiting),
    /// Rule on a step that waits
    Resolve(Resolve),
    /// Answer a question that a body asks
    Answer(Answer),
    /// Ask something of a body that runs, and wait for its response
    Update(Update),
    /// Start nothing more of a run or of one package
    Pause(Order),
    /// Go on with a run or one package
    Resume(Order),
    /// Stop a run or one package for good
    Cancel(Order),
    /// What this program's code would do with a run that is recorded: would it go on, or run something again, hold or fail
    /// to read something? A dry run: nothing is appended, no step runs. Ends with 0 only if all go on
    Replay(Replay),
    /// Begin a run that parts from another one: what that had been answered holds, up to --at POS (or TOPIC@SEQ, or a
    /// moment) or --before ENVELOPE, and the rest is done anew. Without a place, all that is recorded holds
    Fork(Fork),
    /// Which builds began runs here, and orders about them: pin, drain, retire, release
    Builds(Builds),
    /// Who handles messages, and how far they came
    Consumers(Consumers),
    /// One consumer: its setup, what it tries again, what it laid aside
    Consumer(Consumer),
    /// Let a consumer have a parked message again, or all
    Redrive(Redrive),
    /// Which topics hold something
    Topics(Topics),
    /// The log, oldest first
    Log(Log),
    /// One envelope, whole
    Show(Show),
    /// Why an envelope is there: what it responds to and what caused it, back to the beginning
    Causes(Causes),
    /// What payloads are held to
    Schema(Schema),
    /// The artifacts of the store
    Artifacts(Artifacts),
    /// The content of an artifact
    Cat(Cat),
    /// How an artifact came to be, and what superseded it
    Lineage(Lineage),
    /// Whether the store is what was written: ids, places, columns, schemas and artifacts are computed anew
    Verify(Verify),
    /// The head of the store, to be kept elsewhere
    Head(Head),
    /// Whether the store still begins with what a head was taken of
    Check(Check),
    /// What is wrong with a store, and what can be done. Ends with 0 if it is sound, 1 if it can be put right, 2 if what
    /// was recorded is damaged or that could not be found out
    Doctor(Doctor),
    /// Copy the whole store to a new file, while others write
    Backup(Backup),
    /// Write the store, or a part of it, as lines of JSON
    Export(Export),
    /// Make a sealed archive of an export: a file that all questions can be asked of, and nothing is appended to
    Import(Import),
}

impl Command {
    /// Does it. What is wrong is said on the console.
    pub fn run(&self, options: &Options, console: &mut Console<'_>) -> Exit {
        match options.color {
            Color::Auto => {}
            Color::Always => console.coloured(true),
            Color::Never => console.coloured(false),
        }
        console.machine(options.json);
        let outcome = self.answer(options, console).and_then(|()| console.flush());
        match outcome {
            Ok(()) | Err(Failure::Closed) => Exit::Success,
            Err(Failure::Broken) => console.flush().map_or(Exit::Fault, |()| Exit::Fault),
            Err(Failure::Answered) => console.flush().map_or(Exit::Negative, |()| Exit::Negative),
            Err(failure) => {
                // What was answered so far comes before what went wrong.
                let _ = console.flush();
                let (exit, why) = match failure {
                    Failure::Negative(why) => (Exit::Negative, why),
                    Failure::Usage(why) => (Exit::Fault, why),
                    Failure::Fault(error) => (Exit::Fault, error.to_string()),
                    Failure::Answered | Failure::Broken | Failure::Closed => return Exit::Success,
                };
                console.say(&format!("neuron: {why}"));
                exit
            }
        }
    }

    fn answer(&self, options: &Options, console: &mut Console<'_>) -> Outcome {
        if matches!(self, Self::Doctor(_) | Self::Backup(_) | Self::Import(_)) {
            self.now(options)?;
        }
        match self {
            Self::Doctor(it) => return it.run(&place::path(options.store.as_deref(), console)?, console),
            Self::Import(it) => return it.run(console),
            _ => {}
        }
        let ledger = match place::open(options.store.as_deref(), self.access(), console) {
            // A file too damaged to be opened is what is asked here.
            Err(Failure::Fault(error)) if matches!(self, Self::Verify(_) | Self::Check(_)) => {
                return integrity::judged(integrity::salvaged(error, options.store.as_deref(), console), console);
            }
            opened => opened?,
        };
        let lost = self.lost(&ledger, console);
        if let Self::Fork(it) = self {
            // Its place is no question of what stood then.
            let (at, pos) = (options.at.as_deref(), options.at_pos);
            return it.run(&Place { at, pos }, &ledger, console);
        }
        let ledger = self.travel(ledger, options, console)?;
        self.ask(&ledger, console)?;
        if lost { Err(Failure::Answered) } else { Ok(()) }
    }

    /// Whether the answer may leave out what was recorded, which is said before it.
    fn lost(&self, ledger: &Ledger, console: &mut Console<'_>) -> bool {
        let path = ledger.store().path().filter(|_| !matches!(self, Self::Verify(_)));
        let error = path.and_then(|path| doctor::log(path).err());
        if let Some(error) = &error {
            console.say(&format!("neuron: what follows is not all that was recorded: {error}"));
        }
        error.is_some()
    }

    fn ask(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        match self {
            Self::Runs(it) => it.run(ledger, console),
            Self::Board(it) => it.run(ledger, console),
            Self::Graph(it) => it.run(ledger, console),
            Self::Cost(it) => it.run(ledger, console),
            Self::Waiting(it) => it.run(ledger, console),
            Self::Resolve(it) => it.run(ledger, console),
            Self::Builds(it) => it.run(ledger, console),
            Self::Replay(it) => it.run(ledger, console),
            Self::Answer(it) => it.run(ledger, console),
            Self::Update(it) => it.run(ledger, console),
            Self::Consumers(it) => it.run(ledger, console),
            Self::Consumer(it) => it.run(ledger, console),
            Self::Redrive(it) => it.run(ledger, console),
            Self::Verify(it) => it.run(ledger, console),
            Self::Head(it) => it.run(ledger, console),
            Self::Check(it) => it.run(ledger, console),
            Self::Backup(it) => it.run(ledger, console),
            Self::Export(it) => it.run(ledger, console),
            Self::Doctor(_) | Self::Import(_) | Self::Fork(_) => Ok(()),
            Self::Topics(it) => it.run(ledger, console),
            Self::Log(it) => it.run(ledger, console),
            Self::Show(it) => it.run(ledger, console),
            Self::Causes(it) => it.run(ledger, console),
            Self::Schema(it) => it.run(ledger, console),
            Self::Artifacts(it) => it.run(ledger, console),
            Self::Cat(it) => it.run(ledger, console),
            Self::Lineage(it) => it.run(ledger, console),
            Self::Pause(it) => it.run(Verb::Pause, ledger, console),
            Self::Resume(it) => it.run(Verb::Resume, ledger, console),
            Self::Cancel(it) => it.run(Verb::Cancel, ledger, console),
        }
    }

    /// What is of files, and not of what was said, is done now.
    fn now(&self, options: &Options) -> Outcome {
        if options.at.is_none() && options.at_pos.is_none() {
            return Ok(());
        }
        let why = match self {
            Self::Backup(_) => "a backup is of the store as it stands; `export` takes what stood then",
            _ => "this is about a file as it stands",
        };
        Err(Failure::Usage(format!("{why}: leave out --at and --at-pos")))
    }

    /// The ledger as it stood when the options say.
    fn travel(&self, ledger: Ledger, options: &Options, console: &Console<'_>) -> Outcome<Ledger> {
        if options.at.is_none() && options.at_pos.is_none() {
            return Ok(ledger);
        }
        let now = match self {
            Self::Log(log) => log
                .follows()
                .then_some("--follow goes on with what is committed from now on"),
            Self::Check(_) => Some(Verify::COMPARES),
            Self::Verify(verify) if verify.goes_on() => Some(Verify::COMPARES),
            _ => (self.access() == Access::Write).then_some("an order is given now"),
        };
        if let Some(why) = now {
            return Err(Failure::Usage(format!("{why}: leave out --at and --at-pos")));
        }
        Ok(match (&options.at, options.at_pos) {
            (Some(at), _) => ledger.as_of_time(moment::parse(at, console.now(), console.local())?)?,
            (None, pos) => ledger.as_of(pos.unwrap_or_default())?,
        })
    }

    /// Questions only read; orders write, into a store that is there.
    fn access(&self) -> Access {
        match self {
            Self::Answer(_)
            | Self::Fork(_)
            | Self::Update(_)
            | Self::Resolve(_)
            | Self::Redrive(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Cancel(_) => Access::Write,
            Self::Builds(it) => it.access(),
            _ => Access::Read,
        }
    }
}
