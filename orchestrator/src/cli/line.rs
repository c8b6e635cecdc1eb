//! An envelope as one line for a person, in columns that hold for a whole stream.

use neuron::{Envelope, Json, Millis};
use serde_json::Value;

use super::{
    console::{Console, Paint},
    moment,
    outcome::Outcome,
    text::{SHORT, clean, count, cut, ends, shortened, width},
};

/// Columns between two columns.
const GAP: &str = "  ";
/// Columns of what an envelope says, where no terminal sets an end.
const WHAT_MAX: usize = 160;
/// A terminal narrower than this shows seconds only, and no authors.
const NARROW: usize = 110;

/// Columns of a stream, set by its first envelopes: what comes later keeps to them.
#[derive(Debug)]
pub(super) struct Lines {
    kind: usize,
    place: usize,
    author: usize,
    day: Option<String>,
}

impl Lines {
    /// Columns that suit these envelopes.
    pub(super) fn for_page(page: &[Envelope], console: &Console<'_>) -> Self {
        let widest = |of: &dyn Fn(&Envelope) -> usize| page.iter().map(of).max().unwrap_or(0);
        let (mut kind, mut place) = (
            widest(&|it| width(it.body.kind.as_str())),
            widest(&|it| width(&place_of(it))),
        );
        let mut author = widest(&|it| width(author_of(it)));
        if let Some(columns) = console.columns() {
            let left = columns.saturating_sub(time_width(columns) + SHORT + 4 * GAP.len());
            kind = kind.min((left * 3 / 10).max(16).min(left / 2));
            place = place.min(left * 45 / 100);
            author = if columns < NARROW { 0 } else { author.min(left / 8) };
        }
        Self {
            kind,
            place,
            author,
            day: None,
        }
    }

    /// Writes one envelope; on a terminal also the day, when it is another than before.
    pub(super) fn print(&mut self, envelope: &Envelope, console: &mut Console<'_>) -> Outcome {
        let time = self.time(envelope.at, console)?;
        let id = envelope.id().to_string();
        let mut used = width(&time);
        let mut line = console.paint(Paint::Faint, &time);
        let kind = envelope.body.kind.as_str();
        let columns = [
            (id.as_str(), SHORT, Paint::Plain),
            (kind, self.kind, paint_of(kind)),
            (&place_of(envelope), self.place, Paint::Strong),
            (author_of(envelope), self.author, Paint::Faint),
        ];
        for (text, room, paint) in columns.into_iter().filter(|(_, room, _)| *room > 0) {
            let clean = clean(text);
            let shown = match room {
                SHORT if text.len() == 64 => (&clean[..SHORT]).into(),
                room if console.columns().is_some() => ends(&clean, room),
                _ => (&*clean).into(),
            };
            line += GAP;
            line += &console.paint(paint, &shown);
            line.extend(std::iter::repeat_n(' ', room.saturating_sub(width(&shown))));
            used += GAP.len() + room.max(width(&shown));
        }
        let room = console
            .columns()
            .map_or(WHAT_MAX, |columns| columns.saturating_sub(used + GAP.len()));
        if room > 3 {
            line += GAP;
            line += &cut(&clean(&what(envelope)), room);
        }
        console.line(&line)
    }

    fn time(&mut self, at: Millis, console: &mut Console<'_>) -> Outcome<String> {
        let Some(columns) = console.columns() else {
            return Ok(moment::full(at, console.local()));
        };
        let day = moment::day(at, console.local());
        if self.day.as_ref() != Some(&day) {
            let line = console.paint(Paint::Faint, &format!("── {day} ──"));
            console.line(&line)?;
            self.day = Some(day);
        }
        let mut hour = moment::hour(at, console.local());
        hour.truncate(time_width(columns));
        Ok(hour)
    }
}

fn time_width(columns: usize) -> usize {
    if columns < NARROW {
        "00:00:00".len()
    } else {
        "00:00:00.000".len()
    }
}

/// `TOPIC@SEQ`, as other commands take it.
pub(super) fn place_of(envelope: &Envelope) -> String {
    format!("{}@{}", envelope.topic, envelope.seq)
}

/// The colour of a type: whether what it says is good.
pub(super) fn paint_of(kind: &str) -> Paint {
    match kind.rsplit('.').next().unwrap_or(kind) {
        "completed" | "go" | "fired" => Paint::Good,
        "failed" | "denied" | "diverged" => Paint::Bad,
        "cancelled" | "abandoned" | "doubted" | "objected" | "paused" | "amended" | "deviated" => Paint::Open,
        _ => Paint::Kind,
    }
}

/// The author, where the topic does not name it already.
fn author_of(envelope: &Envelope) -> &str {
    let author = envelope.author.as_str();
    if envelope.topic.segments().any(|segment| segment == author) {
        return "";
    }
    author
}

/// Fields that a person looks for first.
const FIRST: [&str; 8] = [
    "because", "reason", "error", "ruling", "output", "args", "value", "text",
];
/// Fields that only tie an envelope to others.
const LAST: [&str; 8] = [
    "scope",
    "key",
    "package",
    "token",
    "registry",
    "argsSchema",
    "outputSchema",
    "occurrence",
];

/// What an envelope says, in short: the name it is about first, what ties it to others last, hashes cut.
pub(super) fn what(envelope: &Envelope) -> String {
    let mut said = Vec::new();
    match envelope.body.payload.as_ref().map(Json::to_value) {
        None => {}
        Some(Value::Object(mut fields)) => {
            said.extend(fields.remove("name").map(|name| plain(&name)));
            let says = |value: &Value| match value {
                Value::Null | Value::Bool(false) => false,
                Value::Object(fields) => !fields.is_empty(),
                Value::Array(items) => !items.is_empty(),
                _ => true,
            };
            let mut fields: Vec<_> = fields.into_iter().filter(|(_, value)| says(value)).collect();
            let among = |list: &[&str], name: &str| list.iter().position(|known| *known == name);
            fields.sort_by_key(|(name, _)| {
                let first = among(&FIRST, name).unwrap_or(FIRST.len());
                (among(&LAST, name).map_or(0, |place| place + 1), first)
            });
            said.extend(fields.iter().map(|(name, value)| format!("{name}={}", plain(value))));
        }
        Some(value) => said.push(plain(&value)),
    }
    if !envelope.body.artifacts.is_empty() {
        said.push(format!("+{}", count(envelope.body.artifacts.len() as u64, "artifact")));
    }
    said.join(" ")
}

/// A value in short: a word as it is, an error by its message, all else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains([' ', '"', '=', '\\']) => shortened(text),
        Value::Object(fields) if fields.contains_key("kind") && fields.contains_key("message") => {
            fields.get("message").map_or_else(String::new, Value::to_string)
        }
        value => shortened(&value.to_string()),
    }
}
