//! From what a person writes to the one thing they mean.

use neuron::{
    Digest, Envelope, Ledger, Topic,
    store::{Range, Row, Select},
};

use super::{
    outcome::{Failure, Outcome},
    text::{count, short},
};

/// The envelope that an id, the beginning of one, or TOPIC@SEQ names.
pub(super) fn envelope(ledger: &Ledger, name: &str) -> Outcome<Envelope> {
    let row = match name.rsplit_once('@') {
        Some((topic, seq)) => at_place(ledger, topic, seq)?,
        None if is_hex(name) => by_prefix(ledger, name)?,
        None => {
            return Err(Failure::Usage(format!(
                "`{name}` names no envelope: give an id, its first digits, or TOPIC@SEQ (for instance `{}@1`)",
                Topic::new(name).map_or("notes.today".into(), |topic| topic.to_string())
            )));
        }
    };
    Ok(row.checked()?)
}

fn at_place(ledger: &Ledger, topic: &str, seq: &str) -> Outcome<Row> {
    let topic = Topic::new(topic).map_err(|error| Failure::Usage(error.to_string()))?;
    let seq = seq.parse().ok().filter(|seq| *seq > 0);
    let seq: u64 = seq.ok_or_else(|| Failure::Usage(format!("`{topic}@…`: give a place in the topic, from 1")))?;
    if let Some(row) = ledger.store().row(&topic, seq)? {
        return Ok(row);
    }
    Err(Failure::Negative(match ledger.store().head(&topic)? {
        0 => format!("topic {topic} holds nothing in this store (`neuron topics` lists those that do)"),
        head => format!("topic {topic} holds {}: there is no {seq}", count(head, "envelope")),
    }))
}

fn by_prefix(ledger: &Ledger, prefix: &str) -> Outcome<Row> {
    let store = ledger.store();
    let places = store.with_id(&prefix.to_ascii_lowercase())?;
    let mut rows = Vec::new();
    for pos in &places {
        rows.extend(store.page(&Select::All, Range::at(*pos))?.rows);
    }
    if rows.len() > 1 {
        let named = |row: &Row| {
            format!(
                "  {}  {}@{}  {}",
                short(&row.id.to_string()),
                row.topic,
                row.seq,
                row.kind
            )
        };
        let lines: Vec<_> = rows.iter().map(named).collect();
        return Err(ambiguous("envelope", prefix, &lines));
    }
    rows.pop().ok_or_else(|| {
        Failure::Negative(format!(
            "no envelope of this store has an id that begins with `{prefix}`"
        ))
    })
}

/// The one hash of some that begins so; `noun` is what they are hashes of, `list` the command that shows all.
pub(super) fn hash(noun: &str, list: &str, prefix: &str, known: impl IntoIterator<Item = Digest>) -> Outcome<Digest> {
    if !is_hex(prefix) {
        return Err(Failure::Usage(format!(
            "`{prefix}` is no hash: give 64 hex digits or the first ones"
        )));
    }
    let lower = prefix.to_ascii_lowercase();
    let texts = known.into_iter().map(|hash| (hash.to_string(), hash));
    let mut found: Vec<_> = texts.filter(|(text, _)| text.starts_with(&lower)).collect();
    if found.len() > 1 {
        found.sort();
        let lines: Vec<_> = found.iter().take(SHOWN).map(|(text, _)| format!("  {text}")).collect();
        return Err(ambiguous(noun, prefix, &lines));
    }
    match found.pop() {
        Some((_, hash)) => Ok(hash),
        None => Err(Failure::Negative(format!(
            "no {noun} of this store has a hash that begins with `{prefix}` (`neuron {list}` lists them)"
        ))),
    }
}

/// Matches shown when a name means several things.
const SHOWN: usize = 16;

fn ambiguous(noun: &str, prefix: &str, matches: &[String]) -> Failure {
    Failure::Usage(format!(
        "`{prefix}` may mean any of these {noun}s: give more digits\n{}",
        matches.join("\n")
    ))
}

fn is_hex(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}
