//! `neuron cost`: what a run has burnt.

use std::collections::BTreeMap;

use neuron::{Ledger, TokenId, vocabulary::orchestration::Expected};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    order,
    outcome::Outcome,
    table::{Cell, Column, Table},
    text::{count, span},
};
use crate::{
    account::{Account, Burn},
    board::BoardView,
};

/// Arguments of `cost`.
#[derive(Clone, Debug, clap::Args)]
pub struct Cost {
    /// The run (`neuron runs`)
    #[arg(value_name = "RUN")]
    run: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    total: Burn,
    packages: Vec<Package<'a>>,
    agents: BTreeMap<&'a str, Burn>,
    steps: BTreeMap<&'a str, Burn>,
}

/// One attempt of a package.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Package<'a> {
    name: &'a str,
    token: &'a TokenId,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Expected>,
    burn: Burn,
}

impl Cost {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let run = order::known_run(ledger, &self.run)?;
        let account = Account::of(ledger, &run)?;
        let board = BoardView::of(ledger, &run)?;
        let assigned = board.packages().iter().map(|package| &package.assigned);
        let estimates: BTreeMap<_, _> = assigned.map(|it| (&it.token, it.estimate)).collect();
        let packages = account.by_package().into_iter().map(|(token, name, burn)| Package {
            name,
            token,
            estimate: estimates.get(token).copied().flatten(),
            burn,
        });
        let told = Told {
            total: account.total(),
            packages: packages.collect(),
            agents: account.by_agent(),
            steps: account.by_step(),
        };
        if console.is_json() {
            return console.json(&told);
        }
        told.print(console)
    }
}

impl Told<'_> {
    fn print(self, console: &mut Console<'_>) -> Outcome {
        if self.packages.is_empty() {
            return console.line("this run has no package yet, and has burnt nothing");
        }
        let mut packages = table("PACKAGE");
        for package in &self.packages {
            let expected = package.estimate.map_or_else(String::new, expected);
            packages.row(cells(package.name, package.burn, expected, package.token.as_str()));
        }
        packages.row(cells("all", self.total, String::new(), ""));
        packages.print(console)?;
        if self.steps.is_empty() {
            return Ok(());
        }
        console.line("")?;
        let mut steps = table("STEP");
        for (name, burn) in self.steps {
            steps.row(cells(name, burn, String::new(), ""));
        }
        steps.print(console)
    }
}

fn table(of: &'static str) -> Table<8> {
    Table::new([
        Column::Text(of),
        Column::Number("STEPS"),
        Column::Number("TIME"),
        Column::Number("TOKENS IN"),
        Column::Number("TOKENS OUT"),
        Column::Number("TOOL CALLS"),
        Column::Spare("EXPECTED"),
        Column::Spare("TOKEN"),
    ])
}

fn cells(name: &str, burn: Burn, expected: String, token: &str) -> [Cell; 8] {
    // What nothing of was burnt is left blank, so that columns without any fall away.
    let some = |number: u64| if number > 0 { grouped(number) } else { String::new() };
    [
        Cell::painted(name, Paint::Strong),
        grouped(burn.steps).into(),
        span(burn.duration_ms).into(),
        some(burn.tokens_in).into(),
        some(burn.tokens_out).into(),
        some(burn.tool_calls).into(),
        Cell::painted(expected, Paint::Faint),
        Cell::painted(token, Paint::Faint),
    ]
}

fn expected(estimate: Expected) -> String {
    let parts = [
        (estimate.tokens > 0).then(|| format!("{} tokens", grouped(estimate.tokens))),
        (estimate.seconds > 0).then(|| span(estimate.seconds.saturating_mul(1_000))),
        (estimate.tool_calls > 0).then(|| count(estimate.tool_calls, "tool call")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
