//! `neuron show`: one envelope, whole.

use neuron::{Envelope, Headers, Ledger, envelope::Header};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    find,
    line::{paint_of, place_of},
    log::Placed,
    moment,
    outcome::Outcome,
    text::{clean, width},
};

/// Arguments of `show`.
#[derive(Clone, Debug, clap::Args)]
pub struct Show {
    /// An id, its first digits, or TOPIC@SEQ
    #[arg(value_name = "ID")]
    id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    #[serde(flatten)]
    placed: Placed<'a>,
    /// Headers that came after birth.
    injected: Vec<&'a Header>,
}

impl Show {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let envelope = find::envelope(ledger, &self.id)?;
        let headers = ledger.headers(&envelope, None)?;
        if console.is_json() {
            return console.json(&Told {
                placed: Placed::new(&envelope),
                injected: headers.iter().skip(envelope.headers.iter().count()).collect(),
            });
        }
        facts(ledger, &envelope, console)?;
        print_headers(&envelope, &headers, console)?;
        if let Some(payload) = &envelope.body.payload {
            title("payload", console)?;
            print_json(&payload.to_value(), console)?;
        }
        print_artifacts(&envelope, console)
    }
}

fn facts(ledger: &Ledger, envelope: &Envelope, console: &mut Console<'_>) -> Outcome {
    let kind = envelope.body.kind.as_str();
    fact("id", Paint::Plain, &envelope.id().to_string(), console)?;
    fact("type", paint_of(kind), kind, console)?;
    let place = format!("{} (pos {})", place_of(envelope), envelope.pos);
    fact("where", Paint::Strong, &place, console)?;
    let when = moment::exact(envelope.at, console.local());
    fact("when", Paint::Plain, &when, console)?;
    fact("author", Paint::Plain, envelope.author.as_str(), console)?;
    if let Some(parent) = envelope.parent_seq {
        let row = ledger.store().row(&envelope.topic, parent)?;
        let kind = row.map_or("not in this store".into(), |row| row.kind.to_string());
        let place = format!("{}@{parent}  {kind}", envelope.topic);
        fact("responds to", Paint::Plain, &place, console)?;
    }
    if let Some(cause) = envelope.cause() {
        let row = ledger.store().row(&cause.topic, cause.seq)?;
        let kind = row.map_or("not in this store".into(), |row| row.kind.to_string());
        let place = format!("{}@{}  {kind}", cause.topic, cause.seq);
        fact("caused by", Paint::Plain, &place, console)?;
    }
    if let Some(schema) = &envelope.body.payload_schema {
        fact("schema", Paint::Plain, &schema.to_string(), console)?;
    }
    if let Some(contract) = &envelope.body.contract {
        fact("contract", Paint::Plain, &contract.to_string(), console)?;
    }
    Ok(())
}

fn fact(name: &str, paint: Paint, value: &str, console: &mut Console<'_>) -> Outcome {
    let line = console.paint(Paint::Faint, &format!("{name:<11}")) + "  " + &console.paint(paint, value);
    console.line(&line)
}

fn print_headers(envelope: &Envelope, headers: &Headers, console: &mut Console<'_>) -> Outcome {
    if headers.is_empty() {
        return Ok(());
    }
    title("headers", console)?;
    let birth = envelope.headers.iter().count();
    let widest = headers
        .iter()
        .map(|header| width(&clean(&header.key)))
        .max()
        .unwrap_or(0);
    for (nth, header) in headers.iter().enumerate() {
        let key = clean(&header.key);
        let gap = widest - width(&key) + 2;
        let mut line = format!("  {key}{:gap$}{}", "", clean(header.value.as_str()));
        if nth >= birth {
            let when = moment::full(header.at, console.local());
            line += &console.paint(Paint::Faint, &format!("  injected by {} at {when}", header.author));
        }
        console.line(&line)?;
    }
    Ok(())
}

fn print_artifacts(envelope: &Envelope, console: &mut Console<'_>) -> Outcome {
    if envelope.body.artifacts.is_empty() {
        return Ok(());
    }
    title("artifacts", console)?;
    for artifact in &envelope.body.artifacts {
        let kind = artifact.kind.as_deref().unwrap_or("-");
        let hash = artifact.hash.map_or("(outside)".into(), |hash| hash.to_string());
        console.line(&format!("  {hash}  {}  {}", clean(kind), clean(&artifact.name)))?;
    }
    Ok(())
}

fn title(name: &str, console: &mut Console<'_>) -> Outcome {
    let line = console.paint(Paint::Faint, name);
    console.line(&line)
}

/// A value over several lines, indented.
pub(super) fn print_json(value: &serde_json::Value, console: &mut Console<'_>) -> Outcome {
    let text = format!("{value:#}");
    text.lines()
        .try_for_each(|line| console.line(&format!("  {}", clean(line))))
}
