use std::fmt::Write as _;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::{Envelope, Error, Ledger, Result, store::Select};

/// One line of what is expected: a type, perhaps a name, perhaps fields.
#[derive(Debug)]
struct Line {
    text: String,
    kind: String,
    name: Option<String>,
    fields: Vec<(String, Value)>,
}

impl Line {
    /// Reads `type [name] [path=json …]`.
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = words(text).into_iter();
        let kind = words.next().unwrap_or_default();
        let mut line = Self {
            text: text.into(),
            kind,
            name: None,
            fields: Vec::new(),
        };
        for word in words {
            match word.split_once('=') {
                None if line.name.is_none() && line.fields.is_empty() => line.name = Some(word),
                None => {
                    return Err(format!(
                        "`{word}` in `{text}`: after the name come fields, as `path=json`"
                    ));
                }
                Some((path, json)) => {
                    let value = serde_json::from_str(json).map_err(|error| {
                        format!("`{json}` in `{text}` is no JSON (a text stands in quotes): {error}")
                    })?;
                    line.fields.push((path.into(), value));
                }
            }
        }
        Ok(line)
    }

    fn fits(&self, said: &Said) -> bool {
        self.kind == said.kind
            && self.name.as_ref().is_none_or(|name| Some(name) == said.name.as_ref())
            && self
                .fields
                .iter()
                .all(|(path, value)| at(&said.payload, path) == Some(value))
    }
}

/// The words of a line; blanks inside quotes and brackets part none.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut depth, mut quoted, mut escaped) = (Vec::new(), String::new(), 0_i32, false, false);
    for c in text.trim().chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            c if c.is_whitespace() && !quoted && depth == 0 => {
                words.push(std::mem::take(&mut word));
                continue;
            }
            _ => {}
        }
        word.push(c);
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn at<'a>(payload: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(payload, |value, segment| match value {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        value => value.get(segment),
    })
}

/// One envelope, as far as it is compared.
struct Said {
    kind: String,
    name: Option<String>,
    payload: Value,
    place: String,
}

impl Said {
    fn of(envelope: &Envelope) -> Self {
        let payload = envelope
            .body
            .payload
            .as_ref()
            .map_or(Value::Null, crate::Json::to_value);
        Self {
            kind: envelope.body.kind.to_string(),
            name: payload.get("name").and_then(Value::as_str).map(Into::into),
            payload,
            place: format!("pos {} {}", envelope.pos, envelope.topic),
        }
    }

    /// As a line that would fit, with these fields.
    fn line(&self, paths: &[&str]) -> String {
        let mut line = self.kind.clone();
        if let Some(name) = &self.name {
            let _ = write!(line, " {name}");
        }
        for path in paths {
            if let Some(value) = at(&self.payload, path) {
                let _ = write!(line, " {path}={value}");
            }
        }
        line
    }
}

fn family(kind: &str) -> &str {
    kind.split('.').next().unwrap_or(kind)
}

/// Compares a log with what is expected of it; the text is what [`assert_log!`](crate::assert_log) takes.
///
/// # Errors
/// What differs, for a person: a diff, where each envelope stands, and the log as a text that would fit.
pub fn compare(ledger: &Ledger, expected: &str) -> Result<(), String> {
    let lines = expected.lines().map(str::trim).filter(|line| !line.is_empty());
    let expected = lines.map(Line::parse).collect::<Result<Vec<_>, String>>()?;
    let said = all(ledger).map_err(|error| format!("the log cannot be read: {error}"))?;
    let is_named = |said: &Said| expected.iter().any(|line| family(&line.kind) == family(&said.kind));
    let said: Vec<Said> = said.into_iter().filter(|said| is_named(said)).collect();
    let fits_all = said.len() == expected.len() && expected.iter().zip(&said).all(|(line, said)| line.fits(said));
    if fits_all {
        Ok(())
    } else {
        Err(difference(&expected, &said))
    }
}

fn difference(expected: &[Line], said: &[Said]) -> String {
    let paths = |kind: &str| {
        let lines = expected.iter().filter(|line| line.kind == kind);
        let mut paths: Vec<&str> = lines
            .flat_map(|line| line.fields.iter().map(|(path, _)| &**path))
            .collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    };
    // What fits is shown as it was expected, so that only what does not fit is a difference.
    let shown = |(nth, said): (usize, &Said)| {
        let same_place = expected.get(nth).filter(|line| line.fits(said));
        let fitting = same_place.or_else(|| expected.iter().find(|line| line.fits(said)));
        fitting.map_or_else(|| said.line(&paths(&said.kind)), |line| line.text.clone())
    };
    let found: Vec<String> = said.iter().enumerate().map(shown).collect();
    let expected: Vec<&str> = expected.iter().map(|line| &*line.text).collect();
    let found: Vec<&str> = found.iter().map(|line| &**line).collect();
    let width = expected
        .iter()
        .chain(&found)
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::from("the log is not as expected (- expected, + found):\n");
    for change in TextDiff::from_slices(&expected, &found).iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        let place = change.new_index().and_then(|nth| said.get(nth));
        let place = place.map_or("", |said| &*said.place);
        let line = format!("{sign} {:width$}  {place}", change.value());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push_str("the log, as a text that fits:\n");
    for said in said {
        let _ = writeln!(text, "    {}", said.line(&paths(&said.kind)));
    }
    text
}

fn all(ledger: &Ledger) -> Result<Vec<Said>, Error> {
    let all = ledger.read(Select::All).envelopes();
    all.map(|envelope| Ok(Said::of(&envelope?))).collect()
}

/// The last lines of a log, as [`assert_log!`](crate::assert_log) shows them, each with its place.
///
/// # Errors
/// A kind of the disk.
pub fn tail(ledger: &Ledger, count: u64) -> Result<String, Error> {
    let last = ledger.read(Select::All).newest_first().limit(count).envelopes();
    let mut lines = Vec::new();
    for envelope in last {
        let said = Said::of(&envelope?);
        lines.push(format!("    {}  {}", said.line(&["key"]), said.place));
    }
    lines.reverse();
    Ok(lines.join("\n"))
}

/// Asserts what a log says, one envelope a line, in the order of the log.
///
/// A line is a type, perhaps the `name` of the payload, perhaps fields of the payload as `path=json`, where a path goes
/// inward by dots. What a line does not name (ids, times, the rest of the payload) is not compared. Nor are envelopes of
/// families that the text does not name: a text with `step.started` is about all that is called `step.`, and about nothing
/// else. A failure shows a diff with the `pos` and the topic of each envelope, and the log as a text that would fit.
///
/// ```
/// # use neuron::{Append, Author, Draft, Json, Ledger, SystemClock, Topic, store::Memory, testing::assert_log};
/// # use std::sync::Arc;
/// # fn main() -> neuron::Result<()> {
/// # let ledger = Ledger::over(Arc::new(Memory::new()?), Arc::new(SystemClock), Default::default())?;
/// # for (kind, payload) in [("order.placed", r#"{"name":"tea","grams":100}"#), ("order.paid", r#"{"name":"tea"}"#)] {
/// #     let draft = Draft::new(Topic::new("agent.shop-a.steps")?, Author::new("shop")?, kind)?;
/// #     ledger.append_blocking(Append::of([draft.json(Json::parse(payload)?, None)]))?;
/// # }
/// assert_log!(&ledger, "
///     order.placed tea grams=100
///     order.paid tea
/// ");
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! assert_log {
    ($ledger:expr, $expected:expr $(,)?) => {
        if let Err(difference) = $crate::testing::compare($ledger, $expected) {
            panic!("{difference}");
        }
    };
}
