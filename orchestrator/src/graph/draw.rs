use std::fmt::Write as _;

use super::{Part, RunGraph, State, Work};

/// What stands on a part: its name, how many of it are done, and when it runs.
pub(super) fn label(part: &Part) -> String {
    let count = part.standing();
    match &part.manner {
        Some(manner) => format!("{} ({manner}): {count}", part.name),
        None => format!("{}: {count}", part.name),
    }
}

/// What stands on a package.
pub(super) fn title(nth: usize, work: &Work) -> String {
    format!("{} {}: {}", nth + 1, work.name, work.phase)
}

/// The colours of a state: of the ground and of the line.
pub(super) fn colours(state: State) -> (&'static str, &'static str) {
    match state {
        State::Done => ("#d9f2df", "#2f7d43"),
        State::Running => ("#d8e8fb", "#2a62a8"),
        State::Retrying => ("#fdeccb", "#a86a10"),
        State::Failed => ("#fadbd8", "#a93226"),
        State::Held | State::InDoubt => ("#f4d9f7", "#8e2f9e"),
        State::Waiting => ("#ffffff", "#7b8794"),
        State::Cancelled | State::Skipped => ("#eceff1", "#b0b8bf"),
    }
}

/// A state as a name without spaces.
fn class(state: State) -> String {
    state.to_string().replace(' ', "_")
}

impl RunGraph {
    /// As a flowchart of Mermaid, which Markdown on many sites draws.
    ///
    /// ```
    /// # use orchestrator::{graph::{RunGraph, State}, prelude::*};
    /// let graph = RunGraph {
    ///     run: RunId::new("digest-1")?,
    ///     name: "digest".into(),
    ///     state: State::Running,
    ///     packages: Vec::new(),
    /// };
    /// assert!(graph.mermaid().starts_with("flowchart LR\n"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn mermaid(&self) -> String {
        let mut text = "flowchart LR\n".to_owned();
        let run = format!("{} ({}): {}", self.run, self.name, self.state);
        line(
            &mut text,
            &format!("  run([\"{}\"]):::{}", entities(&run), class(self.state)),
        );
        for (nth, work) in self.packages.iter().enumerate() {
            let (state, name) = (class(work.phase.into()), entities(&title(nth, work)));
            if work.parts.is_empty() {
                line(&mut text, &format!("  p{nth}[\"{name}\"]:::{state}"));
                continue;
            }
            line(&mut text, &format!("  subgraph p{nth}[\"{name}\"]\n    direction TB"));
            for (at, part) in work.parts.iter().enumerate() {
                let (state, label) = (class(part.state), entities(&label(part)));
                line(&mut text, &format!("    p{nth}s{at}[\"{label}\"]:::{state}"));
            }
            for (from, to) in inner(work) {
                line(&mut text, &format!("    p{nth}s{from} --> p{nth}s{to}"));
            }
            if work.more > 0 {
                line(&mut text, &format!("    p{nth}more[\"{} more\"]:::skipped", work.more));
            }
            line(&mut text, "  end");
            line(&mut text, &format!("  class p{nth} {state}"));
        }
        for (nth, work) in self.packages.iter().enumerate() {
            let assigned = work
                .within
                .map_or_else(|| "run".to_owned(), |within| format!("p{within}"));
            line(&mut text, &format!("  {assigned} -.-> p{nth}"));
            for edge in &work.after {
                line(
                    &mut text,
                    &format!("  p{} -->|\"{}\"| p{nth}", edge.from, entities(&edge.why)),
                );
            }
        }
        for state in State::ALL {
            let (ground, stroke) = colours(state);
            let class = class(state);
            line(
                &mut text,
                &format!("  classDef {class} fill:{ground},stroke:{stroke},color:#1b1f23"),
            );
        }
        text
    }

    /// As a directed graph of Graphviz: `dot -Tpng`.
    ///
    /// ```
    /// # use orchestrator::{graph::{RunGraph, State}, prelude::*};
    /// # let run = RunId::new("digest-1")?;
    /// let graph = RunGraph { run, name: "digest".into(), state: State::Running, packages: Vec::new() };
    /// assert!(graph.dot().starts_with("digraph run {\n"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn dot(&self) -> String {
        let mut text =
            "digraph run {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n"
                .to_owned();
        let run = format!("{} ({}): {}", self.run, self.name, self.state);
        node(&mut text, "  run", &run, self.state);
        for (nth, work) in self.packages.iter().enumerate() {
            line(&mut text, &format!("  subgraph cluster_{nth} {{\n    style=rounded;"));
            node(&mut text, &format!("    p{nth}"), &title(nth, work), work.phase.into());
            for (at, part) in work.parts.iter().enumerate() {
                node(&mut text, &format!("    p{nth}s{at}"), &label(part), part.state);
                if !inner(work).any(|(_, to)| to == at) {
                    line(
                        &mut text,
                        &format!("    p{nth} -> p{nth}s{at} [style=dotted, arrowhead=none];"),
                    );
                }
            }
            for (from, to) in inner(work) {
                line(&mut text, &format!("    p{nth}s{from} -> p{nth}s{to};"));
            }
            if work.more > 0 {
                node(
                    &mut text,
                    &format!("    p{nth}more"),
                    &format!("{} more", work.more),
                    State::Skipped,
                );
            }
            line(&mut text, "  }");
        }
        for (nth, work) in self.packages.iter().enumerate() {
            let assigned = work
                .within
                .map_or_else(|| "run".to_owned(), |within| format!("p{within}"));
            line(&mut text, &format!("  {assigned} -> p{nth} [style=dashed];"));
            for edge in &work.after {
                line(
                    &mut text,
                    &format!("  p{} -> p{nth} [label=\"{}\"];", edge.from, quoted(&edge.why)),
                );
            }
        }
        text.push_str("}\n");
        text
    }
}

/// The edges between the parts of a package that are drawn: what flows, or else the order in which they began.
pub(super) fn inner(work: &Work) -> impl Iterator<Item = (usize, usize)> {
    let drawn = work.parts.len();
    let flows = (0..)
        .zip(&work.parts)
        .flat_map(|(to, part)| part.after.iter().map(move |from| (*from, to)));
    let turns = (1..drawn).map(|to| (to - 1, to)).filter(|_| !work.is_declared());
    flows.filter(move |(from, _)| *from < drawn).chain(turns)
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn node(text: &mut String, id: &str, label: &str, state: State) {
    let (ground, stroke) = colours(state);
    let label = quoted(label);
    line(
        text,
        &format!("{id} [label=\"{label}\", fillcolor=\"{ground}\", color=\"{stroke}\"];"),
    );
}

/// Text inside the quotes of Mermaid, in which everything that may mean something is a number.
fn entities(text: &str) -> String {
    text.chars().fold(String::new(), |mut safe, letter| {
        if letter.is_alphanumeric() || " -_.,:()$/+".contains(letter) {
            safe.push(letter);
        } else {
            let _ = write!(safe, "#{};", u32::from(letter));
        }
        safe
    })
}

/// Text inside the quotes of Graphviz. Line breaks and other control characters have no place in a name.
fn quoted(text: &str) -> String {
    text.chars().fold(String::new(), |mut safe, letter| {
        if matches!(letter, '"' | '\\') {
            safe.push('\\');
        }
        safe.push(if letter.is_control() { '\u{fffd}' } else { letter });
        safe
    })
}
