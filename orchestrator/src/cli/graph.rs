//! `neuron graph`: the work of a run, drawn.

use neuron::{Ledger, vocabulary::orchestration::PackageKind};

use super::{
    console::{Console, Paint},
    order,
    outcome::Outcome,
};
use crate::graph::{Part, RunGraph, State, Work};

/// Arguments of `graph`.
#[derive(Clone, Debug, clap::Args)]
pub struct Graph {
    /// The run (`neuron runs`)
    #[arg(value_name = "RUN")]
    run: String,
    /// How it is drawn
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For a terminal: packages with their steps, each with the numbers and letters of what comes before it.
    Text,
    /// A flowchart, for Markdown.
    Mermaid,
    /// A picture.
    Svg,
    /// For Graphviz.
    Dot,
}

impl Graph {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let run = order::known_run(ledger, &self.run)?;
        let graph = RunGraph::of(ledger, &run)?;
        if console.is_json() {
            return console.json(&graph);
        }
        match self.format {
            Format::Text => text(&graph, console),
            Format::Mermaid => whole(&graph.mermaid(), console),
            Format::Svg => whole(&graph.svg(), console),
            Format::Dot => whole(&graph.dot(), console),
        }
    }
}

fn whole(document: &str, console: &mut Console<'_>) -> Outcome {
    console.raw(document.as_bytes())
}

fn text(graph: &RunGraph, console: &mut Console<'_>) -> Outcome {
    let line = [
        console.paint(Paint::Faint, "run "),
        console.paint(Paint::Strong, graph.run.as_str()),
        console.paint(Paint::Plain, &format!(" of {}: ", graph.name)),
        console.paint(paint_of(graph.state), &graph.state.to_string()),
    ];
    console.line(&line.concat())?;
    if graph.packages.is_empty() {
        return console.line("no package is on the board yet");
    }
    (0..)
        .zip(&graph.packages)
        .try_for_each(|(nth, work)| package(graph, nth, work, console))
}

fn package(graph: &RunGraph, nth: usize, work: &Work, console: &mut Console<'_>) -> Outcome {
    let kind = match work.kind {
        PackageKind::Agent => "agent",
        PackageKind::Plan => "plan",
        PackageKind::Orchestrator => "orchestrator",
    };
    let mut line = vec![
        console.paint(Paint::Plain, &format!("{:>3} ", nth + 1)),
        console.paint(Paint::Strong, &work.name),
        console.paint(Paint::Faint, &format!(" {kind}")),
        ": ".to_owned(),
        console.paint(paint_of(work.phase.into()), &work.phase.to_string()),
    ];
    let after = work
        .after
        .iter()
        .map(|edge| format!("{} ({})", edge.from + 1, edge.why));
    let after: Vec<_> = after.collect();
    if !after.is_empty() {
        line.push(console.paint(Paint::Faint, &format!("  after {}", after.join(", "))));
    }
    if let Some(within) = work
        .within
        .and_then(|within| Some((within + 1, graph.packages.get(within)?)))
    {
        let (number, work) = within;
        line.push(console.paint(Paint::Faint, &format!("  of {number} {}", work.name)));
    }
    console.line(&line.concat())?;
    for (at, drawn) in work.parts.iter().enumerate() {
        let last = at + 1 == work.parts.len() && work.more == 0;
        part(work, (at, drawn), last, console)?;
    }
    if work.more > 0 {
        console.line(&console.paint(Paint::Faint, &format!("      └ {} more", work.more)))?;
    }
    Ok(())
}

fn part(work: &Work, (at, part): (usize, &Part), last: bool, console: &mut Console<'_>) -> Outcome {
    let branch = if last { "      └ " } else { "      ├ " };
    let mut line = vec![console.paint(Paint::Faint, branch)];
    if work.is_declared() {
        line.push(console.paint(Paint::Faint, &format!("{} ", RunGraph::letter(at))));
    }
    line.push(console.paint(Paint::Plain, &part.name));
    if let Some(manner) = &part.manner {
        line.push(console.paint(Paint::Faint, &format!(" ({manner})")));
    }
    line.push(": ".to_owned());
    line.push(console.paint(paint_of(part.state), &part.standing()));
    if !part.after.is_empty() {
        let letters: Vec<_> = part.after.iter().map(|from| RunGraph::letter(*from)).collect();
        line.push(console.paint(Paint::Faint, &format!("  ← {}", letters.join(" "))));
    }
    console.line(&line.concat())
}

fn paint_of(state: State) -> Paint {
    match state {
        State::Done => Paint::Good,
        State::Failed | State::Held | State::InDoubt => Paint::Bad,
        State::Running | State::Retrying | State::Cancelled => Paint::Open,
        State::Waiting => Paint::Plain,
        State::Skipped => Paint::Faint,
    }
}
