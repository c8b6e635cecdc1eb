//! `neuron replay`: what this program's code would do with recorded runs, by a dry run.

use std::{sync::Arc, thread};

use neuron::{Error, ErrorKind, Ledger, Result, RunId};

use super::{
    console::{Console, Paint},
    order::known_run,
    outcome::{Failure, Outcome},
    table::{Cell, Column, Table},
    text::count,
};
use crate::shell::{Outlook, Replay as Dry, Replayed};

/// Arguments of `replay`.
#[derive(Clone, Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Replay {
    /// The run (`neuron runs`)
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Every run that has not ended
    #[arg(long)]
    all_open: bool,
}

impl Replay {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let (code, state) = console.code()?;
        let dry = Dry::new(ledger, Arc::new(code.0), Arc::new(code.1), state)?;
        if !dry.has_code() {
            return Err(Failure::Usage(
                "this program holds no orchestrator, so it has no code to replay a run with: mount \
                 `orchestrator::cli` in your own program (`orchestrator::cli::main()`) and ask that"
                    .into(),
            ));
        }
        let run = match &self.run {
            Some(name) => Some(known_run(ledger, name)?),
            None => None,
        };
        let told = replayed(&dry, run.as_ref())?;
        if console.is_json() {
            console.json(&told)?;
        } else {
            print(&told, console)?;
        }
        if told.iter().all(Replayed::goes_on) {
            Ok(())
        } else {
            Err(Failure::Answered)
        }
    }
}

/// The dry run, on a thread of its own: whoever mounts this may be inside a runtime already.
fn replayed(dry: &Dry, run: Option<&RunId>) -> Result<Vec<Replayed>, Error> {
    let io = |error| Error::new(ErrorKind::Io, error);
    thread::scope(|scope| {
        let replayed = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(io)?;
            runtime.block_on(async {
                match run {
                    Some(run) => Ok(vec![dry.run(run).await?]),
                    None => dry.open().await,
                }
            })
        });
        let panicked = |_| Err(Error::new(ErrorKind::Panicked, "the dry run panicked"));
        replayed.join().unwrap_or_else(panicked)
    })
}

fn print(told: &[Replayed], console: &mut Console<'_>) -> Outcome {
    if told.is_empty() {
        return console.line("no run is open");
    }
    let mut table = Table::new([
        Column::Whole("RUN"),
        Column::Whole("WHAT"),
        Column::Whole("OUTLOOK"),
        Column::Spare("BUILD"),
        Column::Whole("IN"),
        Column::Text("WHY"),
    ]);
    for told in told {
        let paint = |outlook| match outlook {
            Outlook::GoesOn => Paint::Good,
            Outlook::RunsFirst => Paint::Open,
            _ => Paint::Bad,
        };
        let head = [
            Cell::painted(told.run.as_str(), Paint::Strong),
            told.name.clone().into(),
            Cell::painted(told.outlook.to_string(), paint(told.outlook)),
            Cell::painted(told.build.clone(), Paint::Faint),
        ];
        let mut findings = told.findings.iter();
        let first = findings.next();
        let [run, what, outlook, build] = head;
        let token = first.and_then(|found| found.token.clone()).unwrap_or_default();
        let why = first.map(|found| found.message.clone()).unwrap_or_default();
        table.row([run, what, outlook, build, token.into(), why.into()]);
        for found in findings {
            let outlook = Cell::painted(found.outlook.to_string(), paint(found.outlook));
            let token = found.token.clone().unwrap_or_default();
            let empty = Cell::default;
            table.row([
                empty(),
                empty(),
                outlook,
                empty(),
                token.into(),
                found.message.clone().into(),
            ]);
        }
    }
    table.print(console)?;
    let on = told.iter().filter(|told| told.goes_on()).count();
    let all = count(told.len() as u64, "run");
    console.say(&format!("{on} of {all} would go on as recorded"));
    Ok(())
}
