//! `neuron runs`: what was run, and how far it came.

use neuron::{
    Fold as _, Ledger, Millis, RunId,
    store::Select,
    token::Control,
    topic::catalog,
    vocabulary::{
        Message as _,
        orchestration::{OrchestrationFailed, PackageAssigned},
    },
};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    moment,
    outcome::Outcome,
    owner::{self, Owner},
    table::{Cell, Column, Table},
    text::{bytes, span},
};
use crate::runs::{RunState, RunSummary, Runs as Summaries};

/// Arguments of `runs`.
#[derive(Clone, Debug, clap::Args)]
pub struct Runs {
    /// At most this many, the newest ones
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Also how many bytes the records of each take: reads all that is listed
    #[arg(long)]
    bytes: bool,
}

/// A run, and what its summary alone does not say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told {
    pub(super) run: RunId,
    #[serde(flatten)]
    pub(super) summary: RunSummary,
    /// The process that works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Owner>,
    /// Whether it is to stop for good, and has not ended yet.
    cancelling: bool,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Bytes of its records.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// It is told as it stood at some time, when nobody knows which process worked on it.
    #[serde(skip)]
    past: bool,
}

impl Told {
    /// One run, from its own topics alone.
    pub(super) fn one(ledger: &Ledger, run: &RunId) -> Outcome<Option<Self>> {
        let mut runs = Summaries.init();
        // Orders count until the end of the run, and change nothing after it.
        for topic in [catalog::lifecycle(run), catalog::run_control(run)] {
            for envelope in ledger.read(Select::Topic(topic)).checked().envelopes() {
                Summaries.apply(&mut runs, &envelope?)?;
            }
        }
        let summary = runs.remove(run);
        summary
            .map(|summary| Self::of(ledger, run.clone(), summary))
            .transpose()
    }

    fn of(ledger: &Ledger, run: RunId, summary: RunSummary) -> Outcome<Self> {
        let (mut owner, mut cancelling, mut error) = (None, false, None);
        match summary.state {
            RunState::Open | RunState::Paused => {
                owner = owner::of(ledger, &run)?;
                let orders = ledger.fold(&Control::new(catalog::run_control(&run)), None)?.state;
                cancelling = orders.cancelled.is_some();
            }
            RunState::Failed => error = failure(ledger, &run)?,
            RunState::Completed | RunState::Cancelled => {}
        }
        Ok(Self {
            run,
            summary,
            owner,
            cancelling,
            error,
            bytes: None,
            past: ledger.store().path().is_none(),
        })
    }

    /// How it stands, in a word and a colour.
    pub(super) fn standing(&self) -> (&'static str, Paint) {
        match (self.summary.state, &self.owner) {
            (RunState::Open | RunState::Paused, _) if self.cancelling => ("cancelling", Paint::Open),
            (RunState::Open, Some(_)) => ("running", Paint::Open),
            (RunState::Open, None) if self.past => ("open", Paint::Open),
            (RunState::Open, None) => ("interrupted", Paint::Bad),
            (RunState::Paused, _) => ("paused", Paint::Open),
            (RunState::Completed, _) => ("completed", Paint::Good),
            (RunState::Failed, _) => ("failed", Paint::Bad),
            (RunState::Cancelled, _) => ("cancelled", Paint::Open),
        }
    }

    /// How long it took, if it has ended.
    pub(super) fn took(&self) -> Option<String> {
        let ended: Millis = self.summary.ended?;
        let took = ended.0.saturating_sub(self.summary.started.0);
        Some(span(u64::try_from(took).unwrap_or(0)))
    }
}

/// Why a run failed: its last word.
fn failure(ledger: &Ledger, run: &RunId) -> Outcome<Option<String>> {
    for envelope in ledger
        .read(Select::Topic(catalog::lifecycle(run)))
        .newest_first()
        .envelopes()
    {
        if let Some(OrchestrationFailed { error }) = OrchestrationFailed::read(&envelope?)? {
            return Ok(Some(error.to_string()));
        }
    }
    Ok(None)
}

/// Bytes of the records on the topics of a run and of its packages.
fn size(ledger: &Ledger, run: &RunId) -> Outcome<u64> {
    let mut topics = vec![
        catalog::lifecycle(run),
        catalog::packages(run),
        catalog::clearance(run),
        catalog::run_control(run),
        catalog::steer(run),
    ];
    for envelope in ledger.read(Select::Topic(catalog::packages(run))).checked().envelopes() {
        if let Some(PackageAssigned { token, .. }) = PackageAssigned::read(&envelope?)? {
            topics.extend([catalog::steps(&token), catalog::plan(&token), catalog::control(&token)]);
        }
    }
    let store = ledger.store();
    let bytes = topics.iter().map(|topic| store.bytes(topic, store.head(topic)?));
    Ok(bytes.sum::<Result<u64, _>>()?)
}

impl Runs {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let mut runs: Vec<_> = ledger.fold(&Summaries, None)?.state.into_iter().collect();
        runs.sort_by(|(one, first), (other, second)| (second.started, other).cmp(&(first.started, one)));
        runs.truncate(self.limit.unwrap_or(usize::MAX));
        let told = runs.into_iter().map(|(run, summary)| Told::of(ledger, run, summary));
        let mut told = told.collect::<Outcome<Vec<_>>>()?;
        if self.bytes {
            for told in &mut told {
                told.bytes = Some(size(ledger, &told.run)?);
            }
        }
        if console.is_json() {
            return console.json(&told);
        }
        if told.is_empty() {
            return console.line("this store holds no run");
        }
        print(&told, console)
    }
}

fn print(told: &[Told], console: &mut Console<'_>) -> Outcome {
    let mut table = Table::new([
        Column::Whole("RUN"),
        Column::Whole("WHAT"),
        Column::Whole("STATE"),
        Column::Number("PACKAGES"),
        Column::Whole("STARTED"),
        Column::Number("TOOK"),
        Column::Number("BYTES"),
        Column::Spare("PROCESS"),
        Column::Spare("BUILD"),
        Column::Text("WHY"),
    ]);
    for told in told {
        let (word, paint) = told.standing();
        let started = moment::brief(told.summary.started, console.local());
        let process = told.owner.as_ref().map(|owner| owner.pid.to_string());
        table.row([
            Cell::painted(told.run.as_str(), Paint::Strong),
            told.summary.name.clone().into(),
            Cell::painted(word, paint),
            format!("{}/{}", told.summary.answered, told.summary.packages).into(),
            Cell::painted(started, Paint::Faint),
            told.took().unwrap_or_default().into(),
            told.bytes.map(bytes).unwrap_or_default().into(),
            process.unwrap_or_default().into(),
            Cell::painted(told.summary.build.clone(), Paint::Faint),
            told.error.clone().unwrap_or_default().into(),
        ]);
    }
    table.print(console)
}
