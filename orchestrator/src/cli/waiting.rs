//! `neuron waiting` and `neuron resolve`: what waits for a person or an envelope, and what they rule.

use neuron::{
    Fold as _, Json, Ledger,
    store::{Row, Select},
    topic::catalog,
    vocabulary::{
        Message as _,
        control::{ControlResolved, StepRuling},
    },
};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    moment,
    order::{self, Reason, Whom},
    outcome::{Failure, Outcome},
    table::{Cell, Column, Table},
    text::{means, short},
};
use crate::{
    shell::answer::Open,
    waiting::{Item, Waits, What},
};

/// Arguments of `waiting`.
#[derive(Clone, Debug, clap::Args)]
pub struct Waiting {}

/// Arguments of `resolve`.
#[derive(Clone, Debug, clap::Args)]
pub struct Resolve {
    /// The key of the step (`neuron waiting`), or its first digits
    #[arg(value_name = "STEP")]
    step: String,
    /// What is to become of it
    #[arg(value_name = "RULING")]
    ruling: Verdict,
    /// The run whose step it is, where a run and its forks have the same
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// What the step gave, with `done`; `null` if it gives nothing
    #[arg(long, value_name = "JSON")]
    output: Option<String>,
    #[command(flatten)]
    signature: Reason,
}

/// What is to become of a step that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Verdict {
    /// It has happened, and gave --output
    Done,
    /// It has not happened: run it again
    Redo,
    /// Give up on it
    Fail,
}

/// Something that waits, and the ruling on it that its process has not taken up yet.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    #[serde(flatten)]
    item: Item,
    #[serde(skip_serializing_if = "Option::is_none")]
    ruled: Option<ControlResolved>,
    /// Whether it was answered, and its process has not taken that up yet.
    #[serde(skip_serializing_if = "is_false")]
    answered: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// Everything that waits, longest first.
fn waiting(ledger: &Ledger) -> Outcome<Vec<Told>> {
    let told = items(ledger)?.into_iter().map(|item| {
        let ruled = ruling(ledger, &item)?;
        let answered = match Open::of(item.clone()) {
            Some(open) => open.answered(ledger)?.is_some(),
            None => false,
        };
        Ok(Told { item, ruled, answered })
    });
    told.collect()
}

/// What waits, longest first.
pub(super) fn items(ledger: &Ledger) -> Outcome<Vec<Item>> {
    let mut state = Waits.init();
    let mut reading = ledger.read(Select::All);
    loop {
        let rows = reading.page()?;
        if rows.is_empty() {
            break;
        }
        // What stands elsewhere makes nothing wait, and need not be read for it.
        let engines = |row: &&Row| matches!(row.topic.segments().next(), Some("orchestration" | "agent"));
        for row in rows.iter().filter(engines) {
            Waits.apply(&mut state, &row.checked()?)?;
        }
    }
    let mut items: Vec<_> = state.items().cloned().collect();
    items.sort_by_key(|item| item.since);
    Ok(items)
}

/// The last ruling on a step since it waits.
fn ruling(ledger: &Ledger, item: &Item) -> Outcome<Option<ControlResolved>> {
    let (Some(token), Some((key, _))) = (&item.token, step(&item.what)) else {
        return Ok(None);
    };
    let since = ledger.resolve(&item.said)?.pos + 1;
    let mut last = None;
    for envelope in ledger
        .read(Select::Topic(catalog::control(token)))
        .from(since)
        .envelopes()
    {
        let resolved = ControlResolved::read(&envelope?)?.filter(|resolved| resolved.key == key);
        last = resolved.or(last);
    }
    Ok(last)
}

/// The key and name of a step that a ruling settles.
fn step(what: &What) -> Option<(&str, &str)> {
    match what {
        What::InDoubt { key, name, .. } | What::OnceChanged { key, name, .. } => Some((key, name)),
        What::Paused { .. } | What::Envelope { .. } | What::Denied { .. } | What::Asked { .. } => None,
    }
}

/// The token, or the run, that was paused, and the thread if it is one.
fn paused(item: &Item) -> Option<String> {
    let What::Paused { thread, .. } = &item.what else {
        return None;
    };
    let token = item.token.as_ref().map(ToString::to_string);
    let named = token.or_else(|| item.run.as_ref().map(ToString::to_string))?;
    let thread = thread.as_ref().map(|thread| format!(" --thread {}", short(thread)));
    Some(named + &thread.unwrap_or_default())
}

/// The key of a question.
fn question(what: &What) -> Option<&str> {
    match what {
        What::Asked { key, .. } => Some(key),
        _ => None,
    }
}

impl Waiting {
    #[allow(clippy::unused_self, reason = "every command is run alike")]
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let waiting = waiting(ledger)?;
        if console.is_json() {
            return console.json(&waiting);
        }
        if waiting.is_empty() {
            return console.line("nothing waits for you");
        }
        print(&waiting, console)?;
        let mut steps = waiting.iter().filter(|told| told.ruled.is_none());
        if let Some((key, _)) = steps.find_map(|told| step(&told.item.what)) {
            let key = short(key);
            console.say(&format!(
                "rule with `neuron resolve {key} done --output JSON`, `redo` or `fail`"
            ));
        }
        if let Some(paused) = waiting.iter().find_map(|told| paused(&told.item)) {
            console.say(&format!("go on with `neuron resume {paused}`"));
        }
        let mut asked = waiting.iter().filter(|told| !told.answered);
        if let Some(key) = asked.find_map(|told| question(&told.item.what)) {
            let key = short(key);
            console.say(&format!(
                "answer with `neuron answer {key} ANSWER`; an answer is JSON, or plain text where a text is asked for"
            ));
        }
        Ok(())
    }
}

fn print(waiting: &[Told], console: &mut Console<'_>) -> Outcome {
    let mut table = Table::new([
        Column::Whole("KEY"),
        Column::Text("NAME"),
        Column::Whole("WHAT"),
        Column::Text("IN"),
        Column::Spare("SINCE"),
        Column::Text("BECAUSE"),
    ]);
    for Told { item, ruled, answered } in waiting {
        let run = item.run.as_ref().map(ToString::to_string);
        let token = item.token.as_ref().map(ToString::to_string);
        let within: Vec<_> = run.into_iter().chain(token).collect();
        let (key, name, word, because) = match &item.what {
            What::InDoubt { key, name, because } => (&**key, &**name, "in doubt", because.clone()),
            What::OnceChanged { key, name, recorded } => {
                let why = format!("the code no longer makes the recorded call {}", short(recorded));
                (&**key, &**name, "once changed", why)
            }
            What::Paused { thread, because } => {
                let key = thread.as_deref().unwrap_or("");
                (key, "", "paused", because.clone().unwrap_or_default())
            }
            What::Envelope { key, filter, until } => {
                let until = until.map(|until| format!(", until {}", moment::brief(until, console.local())));
                let what = format!("{filter}{}", until.unwrap_or_default());
                (&**key, "", "for an envelope", what)
            }
            What::Denied { key, because } => (&**key, "", "denied", because.clone()),
            What::Asked {
                key,
                question,
                deadline,
                ..
            } => {
                let until = deadline.map(|deadline| format!(" (until {})", moment::brief(deadline, console.local())));
                (&**key, "", "asked", question.clone() + &until.unwrap_or_default())
            }
        };
        let because = match ruled.as_ref().map(|ruled| ruled.ruling) {
            None if *answered => "answered: waits for its process to take that up".into(),
            None => because,
            Some(StepRuling::Done) => taken_up("done"),
            Some(StepRuling::Redo) => taken_up("redo"),
            Some(StepRuling::Fail) => taken_up("fail"),
        };
        table.row([
            Cell::painted(short(key), Paint::Strong),
            name.into(),
            Cell::painted(word, Paint::Open),
            within.join(", ").into(),
            Cell::painted(moment::brief(item.since, console.local()), Paint::Faint),
            because.into(),
        ]);
    }
    table.print(console)
}

fn taken_up(ruling: &str) -> String {
    format!("ruled {ruling}: waits for its process to take that up")
}

impl Resolve {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let (ruling, output) = self.ruling()?;
        let (item, key) = self.item(waiting(ledger)?)?;
        let whom = match (item.token, item.run) {
            (Some(token), _) => Whom::Token(token),
            (None, Some(run)) => Whom::Run(run),
            (None, None) => {
                return Err(Failure::Negative(format!(
                    "step `{key}` belongs to no run and no token"
                )));
            }
        };
        let resolved = ControlResolved {
            key,
            ruling,
            output,
            because: self.signature.because(),
        };
        order::give(&resolved, &whom, &self.signature, ledger, console)
    }

    /// The ruling with what it needs, and nothing that it has no use for.
    fn ruling(&self) -> Outcome<(StepRuling, Option<Json>)> {
        match (self.ruling, &self.output) {
            (Verdict::Done, None) => Err(Failure::Usage(
                "a step that is done gave something: say what with --output JSON (`--output null` if nothing)".into(),
            )),
            (Verdict::Done, Some(output)) => {
                let wrong = |error: neuron::Error| Failure::Usage(format!("--output is no JSON: {error}"));
                Ok((StepRuling::Done, Some(Json::parse(output).map_err(wrong)?)))
            }
            (_, Some(_)) => Err(Failure::Usage("--output is for `done` alone".into())),
            (Verdict::Redo, None) => Ok((StepRuling::Redo, None)),
            (Verdict::Fail, None) => Ok((StepRuling::Fail, None)),
        }
    }

    /// The one step that waits under this key.
    fn item(&self, waiting: Vec<Told>) -> Outcome<(Item, String)> {
        let named = waiting.into_iter().filter_map(|told| {
            let (key, name) = step(&told.item.what).map(|(key, name)| (key.to_owned(), name.to_owned()))?;
            let is_of_run = self
                .run
                .as_deref()
                .is_none_or(|run| told.item.run.as_ref().is_some_and(|of| of.as_str() == run));
            (is_of_run && means(&self.step, &key)).then_some((told.item, key, name))
        });
        let mut found: Vec<_> = named.collect();
        if found.len() > 1 {
            let line = |(item, key, name): &(Item, String, String)| {
                let run = item.run.as_ref().map_or("", |run| run.as_str());
                format!("  {key}  {name}  {run}")
            };
            let lines: Vec<_> = found.iter().map(line).collect();
            return Err(Failure::Usage(format!(
                "`{}` may mean any of these steps: give more digits, or --run\n{}",
                self.step,
                lines.join("\n")
            )));
        }
        let absent = || {
            let step = &self.step;
            Failure::Negative(format!(
                "no step `{step}` waits for a ruling (`neuron waiting` lists those that do)"
            ))
        };
        found.pop().map(|(item, key, _)| (item, key)).ok_or_else(absent)
    }
}
