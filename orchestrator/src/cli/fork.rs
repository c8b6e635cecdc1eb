//! `neuron fork`: a run that begins with what is recorded for another one.

use neuron::{Ledger, RunId};
use serde::Serialize;

use super::{
    console::Console,
    find, moment,
    order::{Reason, known_run},
    outcome::{Failure, Outcome},
};
use crate::shell::fork::{Program, begin, recorded};

/// Arguments of `fork`.
#[derive(Clone, Debug, clap::Args)]
pub struct Fork {
    /// The run (`neuron runs`)
    #[arg(value_name = "RUN")]
    run: String,
    /// All that came before this envelope holds, and nothing from there on: its id or the beginning of one, or TOPIC@SEQ
    #[arg(long, value_name = "ENVELOPE", conflicts_with_all = ["at", "at_pos"])]
    before: Option<String>,
    /// The id of the new run; one of its own unless said otherwise
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    signature: Reason,
}

/// What was begun.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    run: &'a RunId,
    fork: &'a RunId,
    at: u64,
    pos: u64,
}

impl Fork {
    pub(super) fn run(&self, place: &Place<'_>, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let run = known_run(ledger, &self.run)?;
        let at = match &self.before {
            Some(envelope) => Some(find::envelope(ledger, envelope)?.pos.saturating_sub(1)),
            None => place.on(ledger, console)?,
        };
        let id = self.id.as_ref().map(RunId::new).transpose();
        let id = id.map_err(|error| Failure::Usage(format!("--id: {error}")))?;
        let from = recorded(ledger, &run, at).map_err(refused)?;
        let at = from.at();
        let program = program(console, from.program())?;
        let author = self.signature.author()?;
        let (id, receipt) = begin(ledger, &from, id, &program, &author).map_err(refused)?;
        if console.is_json() {
            return console.json(&Told {
                run: &id,
                fork: &run,
                at,
                pos: receipt.pos,
            });
        }
        console.line(&format!("run {id} parts from {run} at pos {at}"))?;
        console.say("it goes on where a process serves, or where a program runs that id on the same arguments");
        Ok(())
    }
}

/// The program that mounts this command; the one that began the other run, if this holds no code.
fn program(console: &mut Console<'_>, before: Program) -> Outcome<Program> {
    let build = console.build();
    let ((registry, _), _) = console.code()?;
    if registry.entries().all(|entry| entry.meta().kind != "orchestrator") {
        return Ok(before);
    }
    Ok(Program::with(build, &registry)?)
}

fn refused(error: neuron::Error) -> Failure {
    use neuron::ErrorKind::{Denied, Misuse, RunIdConflict};
    match error.kind() {
        Denied | Misuse | RunIdConflict => Failure::Negative(error.to_string()),
        _ => error.into(),
    }
}

/// The last place that counts, as it was given.
pub(super) struct Place<'a> {
    /// A moment; or a place, if it is TOPIC@SEQ or a number that no moment of a store can be.
    pub(super) at: Option<&'a str>,
    pub(super) pos: Option<u64>,
}

impl Place<'_> {
    fn on(&self, ledger: &Ledger, console: &Console<'_>) -> Outcome<Option<u64>> {
        let Some(at) = self.at else {
            return Ok(self.pos);
        };
        if let Some(pos) = at.trim().parse().ok().filter(|pos| *pos < FIRST_MOMENT) {
            return Ok(Some(pos));
        }
        if at.contains('@') {
            return Ok(Some(find::envelope(ledger, at)?.pos));
        }
        let then = ledger.as_of_time(moment::parse(at, console.now(), console.local())?)?;
        Ok(Some(then.store().last()?.0))
    }
}

/// Ten thousand days after the epoch, in milliseconds: there was no store then.
const FIRST_MOMENT: u64 = 864_000_000_000;
