//! `neuron builds`: which builds the store knows, and orders about them.

use std::collections::BTreeMap;

use neuron::{Append, ErrorKind, Ledger, Millis, store::Access};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    moment,
    order::{Reason, told},
    outcome::{Failure, Outcome},
    table::{Cell, Column, Table},
};
use crate::{
    builds::{BuildOrder, Builds as Orders, Standing},
    runs::{RunState, Runs},
};

/// Arguments of `builds`.
#[derive(Clone, Debug, clap::Args)]
pub struct Builds {
    #[command(subcommand)]
    order: Option<Given>,
}

/// What is to hold for a build.
#[derive(Clone, Debug, clap::Subcommand)]
enum Given {
    /// Its open runs are taken up by processes of the same build only
    Pin(About),
    /// A process of it begins no new run and takes up those of its own build only; its handlers take no further message
    Drain(About),
    /// A process of it begins and takes up no run
    Retire(About),
    /// None of this holds any longer
    Release(About),
}

#[derive(Clone, Debug, clap::Args)]
struct About {
    /// The build, as `neuron builds` lists it
    #[arg(value_name = "BUILD")]
    build: String,
    #[command(flatten)]
    reason: Reason,
}

/// One build.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    build: String,
    /// Runs that it began and that have not ended.
    open: u64,
    /// Runs that it began.
    runs: u64,
    /// When it began its first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Millis>,
    /// When it began its last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Millis>,
    orders: Vec<Standing>,
}

impl Builds {
    pub(super) fn access(&self) -> Access {
        if self.order.is_some() {
            Access::Write
        } else {
            Access::Read
        }
    }

    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let (order, about) = match &self.order {
            None => return list(ledger, console),
            Some(Given::Pin(about)) => (BuildOrder::Pin, about),
            Some(Given::Drain(about)) => (BuildOrder::Drain, about),
            Some(Given::Retire(about)) => (BuildOrder::Retire, about),
            Some(Given::Release(about)) => (BuildOrder::Release, about),
        };
        let orders = Orders::of(ledger)?;
        if order == BuildOrder::Release && orders.standing(&about.build).next().is_none() {
            return Err(Failure::Negative(format!(
                "no order holds for build `{}` (`neuron builds` lists those that do)",
                about.build.escape_debug()
            )));
        }
        let draft = order.draft(&about.build, about.reason.because(), about.reason.author()?)?;
        let kind = draft.kind().to_string();
        let receipts = ledger.append_blocking(Append::of([draft]))?;
        let Some(receipt) = receipts.first() else {
            return Err(neuron::Error::new(ErrorKind::Corrupt, "the store gave no receipt").into());
        };
        told(&kind, receipt, console)?;
        let known = ledger.fold(&Runs, None)?.state;
        if !console.is_json() && known.values().all(|run| run.build != about.build) {
            console.say("no run of this store was begun by that build so far; the order stands for when one is");
        }
        Ok(())
    }
}

fn list(ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
    let orders = Orders::of(ledger)?;
    let mut builds: BTreeMap<String, Told> = BTreeMap::new();
    for run in ledger.fold(&Runs, None)?.state.into_values() {
        let told = builds.entry(run.build).or_default();
        told.runs += 1;
        told.open += u64::from(matches!(run.state, RunState::Open | RunState::Paused));
        told.first = Some(told.first.map_or(run.started, |first| first.min(run.started)));
        told.last = Some(told.last.map_or(run.started, |last| last.max(run.started)));
    }
    for name in orders.names() {
        builds.entry(name.to_owned()).or_default();
    }
    let mut told: Vec<_> = builds
        .into_iter()
        .map(|(build, told)| Told {
            orders: orders.standing(&build).cloned().collect(),
            build,
            ..told
        })
        .collect();
    told.sort_by_key(|told| std::cmp::Reverse(told.last));
    if console.is_json() {
        return console.json(&told);
    }
    if told.is_empty() {
        return console.line("this store holds no run, so it knows no build");
    }
    let mut table = Table::new([
        Column::Whole("BUILD"),
        Column::Number("OPEN"),
        Column::Number("RUNS"),
        Column::Whole("FIRST"),
        Column::Whole("LAST"),
        Column::Text("ORDERS"),
    ]);
    for told in told {
        let when = |at: Option<Millis>| at.map(|at| moment::brief(at, console.local())).unwrap_or_default();
        let words: Vec<_> = told.orders.iter().map(|order| order.order.to_string()).collect();
        let (first, last) = (when(told.first), when(told.last));
        table.row([
            Cell::painted(told.build, Paint::Strong),
            told.open.to_string().into(),
            told.runs.to_string().into(),
            Cell::painted(first, Paint::Faint),
            Cell::painted(last, Paint::Faint),
            Cell::painted(words.join(", "), Paint::Open),
        ]);
    }
    table.print(console)
}
