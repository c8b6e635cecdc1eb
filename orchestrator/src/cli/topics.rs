//! `neuron topics`: which topics hold something.

use neuron::{
    Ledger, Millis, Topic,
    store::{Range, Select},
};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    moment,
    outcome::Outcome,
    table::{Cell, Column, Table},
    text::bytes,
};

/// Arguments of `topics`.
#[derive(Clone, Debug, clap::Args)]
pub struct Topics {
    /// Also how many bytes the records of each take, and all of them: reads the whole store
    #[arg(long)]
    bytes: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    topic: Topic,
    envelopes: u64,
    last_pos: u64,
    last_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl Topics {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let store = ledger.store();
        let mut told = Vec::new();
        let archive = store.archive()?.is_some();
        for summary in store.topics()? {
            // Of a topic in an archive, the first envelopes may not be there.
            let first = Range { limit: 1, ..Range::ALL };
            let first = archive.then(|| store.page(&Select::Topic(summary.topic.clone()), first));
            let first = first.transpose()?.and_then(|page| page.rows.first().map(|row| row.seq));
            let last = store.page(&Select::All, Range::at(summary.last_pos))?.rows;
            let bytes = self
                .bytes
                .then(|| store.bytes(&summary.topic, summary.head))
                .transpose()?;
            told.push(Told {
                bytes,
                topic: summary.topic,
                envelopes: summary.head + 1 - first.unwrap_or(1),
                last_pos: summary.last_pos,
                last_at: last.first().map(|row| row.at),
            });
        }
        if console.is_json() {
            return console.json(&told);
        }
        if told.is_empty() {
            return console.line("this store holds no envelope yet");
        }
        let mut table = Table::new([
            Column::Text("TOPIC"),
            Column::Number("ENVELOPES"),
            Column::Number("BYTES"),
            Column::Whole("LAST"),
        ]);
        let all = told
            .iter()
            .filter_map(|topic| topic.bytes)
            .reduce(|all, bytes| all + bytes);
        let envelopes: u64 = told.iter().map(|topic| topic.envelopes).sum();
        for topic in told {
            let last = topic.last_at.map(|at| moment::full(at, console.local()));
            table.row([
                Cell::painted(topic.topic.as_str(), Paint::Strong),
                topic.envelopes.to_string().into(),
                topic.bytes.map(bytes).unwrap_or_default().into(),
                Cell::painted(last.unwrap_or_default(), Paint::Faint),
            ]);
        }
        if let Some(all) = all {
            table.row([
                "all".into(),
                envelopes.to_string().into(),
                bytes(all).into(),
                Cell::default(),
            ]);
        }
        table.print(console)
    }
}
