//! The command line: what a person asks of a store, and the orders they give.
//!
//! A program of its own (the stock binary `neuron`), or part of another one's command line:
//!
//! ```
//! use clap::Parser;
//! use orchestrator::cli;
//!
//! #[derive(Parser)]
//! struct App {
//!     #[command(flatten)]
//!     options: cli::Options,
//!     #[command(subcommand)]
//!     command: AppCommand,
//! }
//!
//! #[derive(clap::Subcommand)]
//! enum AppCommand {
//!     /// Runs the agents
//!     Serve,
//!     #[command(flatten)]
//!     Neuron(cli::Command),
//! }
//!
//! let app = App::parse_from(["app", "log", "notes.*", "--store", "notes.db"]);
//! assert!(matches!(app.command, AppCommand::Neuron(cli::Command::Log(_))));
//! ```
//!
//! Asking never claims, appends or makes a store, and works while another process has it open. The program ends with 0
//! if the question was answered or the order given, with 1 if the answer is no, with 2 if the question was wrong or
//! something is broken.

mod answer;
mod artifact;
mod board;
mod builds;
mod causes;
mod command;
mod console;
mod consumers;
mod copy;
mod cost;
mod doctor;
mod find;
mod fork;
mod graph;
mod integrity;
mod line;
mod lineage;
mod log;
mod moment;
mod order;
mod outcome;
mod owner;
mod place;
mod replay;
mod runs;
mod schema;
mod show;
mod table;
mod text;
mod topics;
mod update;
mod waiting;

use std::{
    env,
    ffi::OsString,
    io::{self, BufWriter, IsTerminal as _, Write},
    process::ExitCode,
};

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::shell::Builder;

pub use artifact::{Artifacts, Cat};
pub use board::Board;
pub use builds::Builds;
pub use causes::Causes;
pub use command::{Color, Command, Options};
pub use console::Console;
pub use consumers::{Consumer, Consumers, Redrive};
pub use copy::{Backup, Export, Import};
pub use cost::Cost;
pub use doctor::Doctor;
pub use graph::{Format, Graph};
pub use integrity::{Check, Head, Verify};
pub use lineage::Lineage;
pub use log::Log;
pub use order::{Order, Reason};
pub use outcome::Exit;
pub use replay::Replay;
pub use runs::Runs;
pub use schema::Schema;
pub use show::Show;
pub use topics::Topics;
pub use waiting::{Resolve, Waiting};

/// Looks into a store of neuron, and gives orders to what runs in it.
#[derive(Clone, Debug, Parser)]
#[command(name = "neuron", version)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub options: Options,
    /// What is asked or ordered.
    #[command(subcommand)]
    pub command: Command,
}

/// The whole program: arguments, output and exit code of this process.
pub fn main() -> ExitCode {
    run_here(env::args_os()).into()
}

/// As [`main`], for a program whose bodies need a state or an upcaster: `replay` drives runs with what this builder
/// says.
///
/// ```no_run
/// use orchestrator::{Neuron, cli};
///
/// struct Prices(u64);
/// fn main() -> std::process::ExitCode {
///     cli::main_of(Neuron::builder().state(Prices(5)))
/// }
/// ```
pub fn main_of(builder: Builder) -> ExitCode {
    here(env::args_os(), |console| console.program(builder)).into()
}

/// Runs with these arguments on the output of this process, as a program does that ends with an answer of `neuron`.
pub fn run_here<A>(args: impl IntoIterator<Item = A>) -> Exit
where
    A: Into<OsString> + Clone,
{
    here(args, |console| console)
}

fn here<A>(args: impl IntoIterator<Item = A>, furnish: impl FnOnce(Console<'_>) -> Console<'_>) -> Exit
where
    A: Into<OsString> + Clone,
{
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let (mut out, mut err) = (BufWriter::new(stdout.lock()), stderr.lock());
    let console = furnish(on_terminal(Console::new(&mut out, &mut err)));
    let exit = run_on(args, console);
    // What could not be written has been told; a reader that has gone is no failure.
    let _ = out.flush();
    exit
}

/// Runs with these arguments, the name of the program first; writes plain text.
///
/// ```
/// let (mut out, mut err) = (Vec::new(), Vec::new());
/// let exit = orchestrator::cli::run(["neuron", "log", "--store", "no/such.db"], &mut out, &mut err);
/// assert_eq!(exit.code(), 2);
/// assert!(String::from_utf8(err)?.starts_with("neuron: the folder no of the store no/such.db"));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
pub fn run<A>(args: impl IntoIterator<Item = A>, out: &mut dyn Write, err: &mut dyn Write) -> Exit
where
    A: Into<OsString> + Clone,
{
    run_on(args, Console::new(out, err))
}

/// Runs with these arguments on this console.
pub fn run_on<A>(args: impl IntoIterator<Item = A>, mut console: Console<'_>) -> Exit
where
    A: Into<OsString> + Clone,
{
    let parsed = Cli::command()
        .term_width(console.columns().unwrap_or(100))
        .try_get_matches_from(args)
        .and_then(|it| Cli::from_arg_matches(&it));
    match parsed {
        Ok(Cli { options, command }) => command.run(&options, &mut console),
        Err(told) => {
            let fault = told.use_stderr();
            console.parser(&told.render(), fault);
            if fault { Exit::Fault } else { Exit::Success }
        }
    }
}

/// The console as a terminal, if the process writes to one.
fn on_terminal(console: Console<'_>) -> Console<'_> {
    if !io::stdout().is_terminal() {
        return console;
    }
    let unset = |name| env::var_os(name).is_none_or(|value| value.is_empty());
    let colour = unset("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb");
    let columns = comfy_table::Table::new().width().unwrap_or(80);
    console.terminal(columns, colour)
}
