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
};

/// Arguments of `topics`.
#[derive(Clone, Debug, clap::Args)]
pub struct Topics {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    topic: Topic,
    envelopes: u64,
    last_pos: u64,
    last_at: Option<Millis>,
}

impl Topics {
    #[allow(clippy::unused_self, reason = "every command is run alike")]
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let store = ledger.store();
        let mut told = Vec::new();
        for summary in store.topics()? {
            let range = Range {
                from: summary.last_pos,
                to: summary.last_pos,
                ..Range::ALL
            };
            let last = store.page(&Select::All, range)?.rows;
            told.push(Told {
                topic: summary.topic,
                envelopes: summary.head,
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
            Column::Whole("LAST"),
        ]);
        for topic in told {
            let last = topic.last_at.map(|at| moment::full(at, console.local()));
            table.row([
                Cell::painted(topic.topic.as_str(), Paint::Strong),
                topic.envelopes.to_string().into(),
                Cell::painted(last.unwrap_or_default(), Paint::Faint),
            ]);
        }
        table.print(console)
    }
}
