//! `neuron causes`: why an envelope is there, and what came of it.

use std::collections::{BTreeMap, BTreeSet};

use neuron::{
    Ledger,
    ledger::{Direction, Step},
};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    find,
    line::{paint_of, place_of, what},
    log::Placed,
    outcome::Outcome,
    text::{SHORT, clean, cut, width},
};

/// Columns of what an envelope says, where no terminal sets an end.
const SAID_MAX: usize = 80;

/// Arguments of `causes`.
#[derive(Clone, Debug, clap::Args)]
pub struct Causes {
    /// An id, its first digits, or TOPIC@SEQ
    #[arg(value_name = "ID")]
    id: String,
    /// What came of it, in place of what it came of
    #[arg(long)]
    effects: bool,
    /// Show header injections too
    #[arg(long)]
    injections: bool,
    /// At most this many envelopes
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1_000)]
    limit: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    depth: usize,
    injection: bool,
    envelope: Placed<'a>,
}

impl Causes {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let start = find::envelope(ledger, &self.id)?;
        let direction = if self.effects {
            Direction::Effects
        } else {
            Direction::Causes
        };
        // One more than is shown, to know whether there is more.
        let limit = self.limit.max(1);
        let mut steps = ledger.walk(&start.reference(), direction, self.injections, limit.saturating_add(1))?;
        let more = steps.len() > limit;
        steps.truncate(limit);
        if console.is_json() {
            let told = steps.iter().map(|step| Told {
                depth: step.depth,
                injection: step.injection,
                envelope: Placed::new(&step.envelope),
            });
            return console.json(&told.collect::<Vec<_>>());
        }
        Tree::of(&steps, direction).print(console)?;
        if more {
            console.say(&format!(
                "there is more: {limit} envelopes are shown, --limit shows more"
            ));
        }
        Ok(())
    }
}

/// A walk as a tree: each envelope once, below the one it was reached from.
struct Tree<'a> {
    steps: &'a [Step],
    /// Below each place of the walk: which, and how they hang together.
    below: BTreeMap<usize, Vec<(usize, &'static str)>>,
}

impl<'a> Tree<'a> {
    fn of(steps: &'a [Step], direction: Direction) -> Self {
        let at = (0..).zip(steps);
        let places: BTreeMap<_, usize> = at
            .map(|(at, step)| ((&step.envelope.topic, step.envelope.seq), at))
            .collect();
        let mut below: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        let mut shown = BTreeSet::from([0]);
        for (later, step) in (0..).zip(steps) {
            let parent = step.envelope.parent_seq.map(|seq| (step.envelope.topic.clone(), seq));
            let cause = step.envelope.cause().map(|cause| (cause.topic, cause.seq));
            let mut earlier: Vec<_> = [(parent, "responds to", "response"), (cause, "caused by", "caused")]
                .into_iter()
                .filter_map(|(place, back, forth)| {
                    let (topic, seq) = place?;
                    Some((*places.get(&(&topic, seq))?, back, forth))
                })
                .collect();
            // Below the one that the walk met first.
            earlier.sort_unstable();
            for (earlier, back, forth) in earlier {
                let (above, under, how) = match direction {
                    Direction::Causes => (later, earlier, back),
                    Direction::Effects => (earlier, later, forth),
                };
                if shown.insert(under) {
                    below.entry(above).or_default().push((under, how));
                }
            }
        }
        Self { steps, below }
    }

    fn print(&self, console: &mut Console<'_>) -> Outcome {
        let mut waiting = vec![(0, String::new(), "")];
        while let Some((at, lead, how)) = waiting.pop() {
            self.line(at, &lead, how, console)?;
            let below = self.below.get(&at).map_or(&[][..], Vec::as_slice);
            // The line above may end in a corner or a fork; what is below goes on under it.
            let stem = lead.replace("├─ ", "│  ").replace("└─ ", "   ");
            for (nth, (child, how)) in below.iter().enumerate().rev() {
                // A chain needs no branches: it stays where it is, however long it grows.
                let corner = match below.len() {
                    1 => "",
                    count if nth + 1 == count => "└─ ",
                    _ => "├─ ",
                };
                waiting.push((*child, format!("{stem}{corner}"), how));
            }
        }
        Ok(())
    }

    fn line(&self, at: usize, lead: &str, how: &str, console: &mut Console<'_>) -> Outcome {
        let envelope = &self.steps[at].envelope;
        let (id, kind, place) = (
            envelope.id().to_string(),
            envelope.body.kind.as_str(),
            place_of(envelope),
        );
        let gap = if how.is_empty() { "" } else { " " };
        let used = width(lead) + width(how) + gap.len() + SHORT + width(kind) + width(&place) + 6;
        let line = [
            console.paint(Paint::Faint, &format!("{lead}{how}{gap}")),
            console.paint(Paint::Plain, &id[..SHORT]) + "  ",
            console.paint(paint_of(kind), kind) + "  ",
            console.paint(Paint::Strong, &place) + "  ",
        ];
        let room = console
            .columns()
            .map_or(SAID_MAX, |columns| columns.saturating_sub(used));
        let said = if room > 3 { what(envelope) } else { String::new() };
        console.line(&(line.concat() + &cut(&clean(&said), room)))
    }
}
