//! `neuron board`: the packages of a run, what they wait for, and what was ruled on them.

use neuron::{
    Error, Ledger,
    vocabulary::orchestration::{Claims, EdgeDeclared, EdgeReason, PackageKind},
};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    moment, order,
    outcome::Outcome,
    runs::Told as ToldRun,
    table::{Cell, Column, Table},
};
use crate::{
    board::{BoardView, Package},
    package::Phase,
    ruling::Verdict,
};

/// Arguments of `board`.
#[derive(Clone, Debug, clap::Args)]
pub struct Board {
    /// The run (`neuron runs`)
    #[arg(value_name = "RUN")]
    run: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    #[serde(flatten)]
    run: &'a ToldRun,
    rounds: u64,
    board: Vec<ToldPackage<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldPackage<'a> {
    key: &'a str,
    name: &'a str,
    kind: PackageKind,
    token: &'a str,
    attempt: u32,
    priority: i32,
    phase: Phase,
    claims: Claims,
    waits_for: Vec<&'a EdgeDeclared>,
    words: Vec<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Error>,
}

/// One word on a package: what was ruled on it, and why.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Word {
    what: &'static str,
    because: String,
    /// The step, if the word is on one more step.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
}

impl Board {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let id = order::known_run(ledger, &self.run)?;
        let board = BoardView::of(ledger, &id)?;
        let Some(run) = ToldRun::one(ledger, &id)? else {
            return Err(order::no_run(ledger, &self.run)?);
        };
        if console.is_json() {
            let packages = board.packages().iter().map(|package| told(&board, package));
            return console.json(&Told {
                run: &run,
                rounds: board.rounds(),
                board: packages.collect(),
            });
        }
        headline(&run, console)?;
        packages(&board, console)?;
        words(&board, console)
    }
}

fn told<'a>(board: &'a BoardView, package: &'a Package) -> ToldPackage<'a> {
    let assigned = &package.assigned;
    ToldPackage {
        key: &assigned.key,
        name: &assigned.name,
        kind: assigned.kind,
        token: assigned.token.as_str(),
        attempt: assigned.attempt,
        priority: assigned.priority,
        phase: board.phase(package),
        claims: package.claims(),
        waits_for: board.before(package).collect(),
        words: words_on(package),
        error: package.outcome.as_ref().and_then(|outcome| outcome.as_ref().err()),
    }
}

/// One line about the run as a whole.
fn headline(run: &ToldRun, console: &mut Console<'_>) -> Outcome {
    let (word, paint) = run.standing();
    let started = moment::brief(run.summary.started, console.local());
    let end = match (run.took(), &run.owner) {
        (Some(took), _) => format!(", took {took}"),
        (None, Some(owner)) => format!(", process {}", owner.pid),
        (None, None) => String::new(),
    };
    let line = [
        console.paint(Paint::Faint, "run "),
        console.paint(Paint::Strong, run.run.as_str()),
        console.paint(Paint::Plain, &format!(" of {}: ", run.summary.name)),
        console.paint(paint, word),
        console.paint(Paint::Faint, &format!("  started {started}{end}")),
    ];
    console.line(&line.concat())?;
    if let Some(fork) = &run.summary.fork {
        console.line(&format!("it parts from {} at pos {}", fork.run, fork.at))?;
    }
    match &run.error {
        Some(error) => console.prose(&format!("it failed: {error}")),
        None => Ok(()),
    }
}

fn packages(board: &BoardView, console: &mut Console<'_>) -> Outcome {
    if board.packages().is_empty() {
        return console.line("no package is on the board yet");
    }
    let mut table = Table::new([
        Column::Number("#"),
        Column::Text("PACKAGE"),
        Column::Whole("STATE"),
        Column::Text("WAITS FOR"),
        Column::Text("HOLDS"),
        Column::Spare("KIND"),
        Column::Whole("TOKEN"),
    ]);
    for (nth, package) in (1..).zip(board.packages()) {
        let phase = board.phase(package);
        let assigned = &package.assigned;
        let name = match assigned.attempt {
            0 | 1 => assigned.name.clone(),
            attempt => format!("{} (attempt {attempt})", assigned.name),
        };
        table.row([
            u64::to_string(&nth).into(),
            Cell::painted(name, Paint::Strong),
            Cell::painted(phase.to_string(), paint_of(phase)),
            before(board, package).into(),
            holds(&package.claims()).into(),
            Cell::painted(kind_of(assigned.kind), Paint::Faint),
            Cell::painted(assigned.token.as_str(), Paint::Faint),
        ]);
    }
    table.print(console)
}

fn paint_of(phase: Phase) -> Paint {
    match phase {
        Phase::Done => Paint::Good,
        Phase::Failed | Phase::Denied => Paint::Bad,
        Phase::Running | Phase::Cancelled => Paint::Open,
        Phase::Waiting | Phase::Declared | Phase::Cleared => Paint::Plain,
    }
}

fn kind_of(kind: PackageKind) -> &'static str {
    match kind {
        PackageKind::Agent => "agent",
        PackageKind::Plan => "plan",
        PackageKind::Orchestrator => "orchestrator",
    }
}

/// What a package waits for, by number on the board, each with why.
fn before(board: &BoardView, package: &Package) -> String {
    let edges = board.before(package).map(|edge| {
        let nth = board
            .place(&edge.from)
            .map_or_else(|| "?".to_owned(), |place| (place + 1).to_string());
        let why = match (edge.why, &edge.parameter, &edge.resource) {
            (EdgeReason::Value, Some(parameter), _) => parameter.as_str(),
            (EdgeReason::Value, None, _) => "value",
            (EdgeReason::Clearance, _, Some(resource)) => resource.as_str(),
            (EdgeReason::Clearance, _, None) => "clearance",
            (EdgeReason::After, ..) => "after",
        };
        format!("{nth}({why})")
    });
    edges.collect::<Vec<_>>().join(", ")
}

fn holds(claims: &Claims) -> String {
    let owns = claims.owns.iter().map(|resource| format!("owns {resource}"));
    let uses = claims.uses.iter().map(|(resource, count)| match count {
        0 | 1 => format!("uses {resource}"),
        count => format!("uses {count} {resource}"),
    });
    let once = claims.once.iter().map(|step| format!("once {step}"));
    owns.chain(uses).chain(once).collect::<Vec<_>>().join(", ")
}

/// Everything that was ruled on the packages, with why.
fn words(board: &BoardView, console: &mut Console<'_>) -> Outcome {
    let mut table = Table::new([
        Column::Number("#"),
        Column::Text("PACKAGE"),
        Column::Whole("WORD"),
        Column::Text("STEP"),
        Column::Text("BECAUSE"),
    ]);
    let mut none = true;
    for (nth, package) in (1..).zip(board.packages()) {
        for word in words_on(package).into_iter().chain(orders_on(board, package)) {
            none = false;
            let paint = match word.what {
                "go" => Paint::Good,
                "denied" | "failed" => Paint::Bad,
                _ => Paint::Open,
            };
            table.row([
                u64::to_string(&nth).into(),
                package.assigned.name.clone().into(),
                Cell::painted(word.what, paint),
                word.step.unwrap_or_default().into(),
                word.because.into(),
            ]);
        }
    }
    if none {
        return Ok(());
    }
    console.line("")?;
    table.print(console)
}

/// What clearance put before a package.
fn orders_on(board: &BoardView, package: &Package) -> impl Iterator<Item = Word> {
    let because = board.before(package).filter_map(|edge| edge.because.clone());
    because.map(|because| Word {
        what: "after",
        because,
        step: None,
    })
}

fn words_on(package: &Package) -> Vec<Word> {
    let word = |what, because: &str| Word {
        what,
        because: because.to_owned(),
        step: None,
    };
    let mut words: Vec<_> = package.objections.iter().map(|why| word("objected", why)).collect();
    words.extend(package.ruling.as_ref().map(verdict));
    for amendment in package.amendments.values() {
        let ruled = amendment.verdict.as_ref().map(verdict);
        let ruled = ruled.unwrap_or_else(|| word("waits", "one more step waits for a ruling"));
        words.push(Word {
            step: Some(amendment.name.clone()),
            ..ruled
        });
    }
    if let Some(Err(error)) = &package.outcome {
        let what = match Phase::of(&Err(error.clone())) {
            Phase::Denied => "denied",
            Phase::Cancelled => "cancelled",
            _ => "failed",
        };
        // A denial that was ruled is told already.
        if what != "denied" || !matches!(package.ruling, Some(Verdict::Denied { .. })) {
            words.push(word(what, &error.to_string()));
        }
    }
    words
}

fn verdict(verdict: &Verdict) -> Word {
    let (what, because) = match verdict {
        Verdict::Go { because } => ("go", because),
        Verdict::Denied { because, .. } => ("denied", because),
    };
    Word {
        what,
        because: because.clone(),
        step: None,
    }
}
