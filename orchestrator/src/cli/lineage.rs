//! `neuron lineage`: how an artifact came to be, and what became of it.

use std::collections::BTreeSet;

use neuron::{
    Author, Digest, Envelope, Ledger, Millis,
    ledger::{ArtifactSettled, ArtifactSuperseded},
    store::Select,
    topic::catalog,
    vocabulary::Message as _,
};
use serde::Serialize;

use super::{
    artifact,
    console::{Console, Paint},
    line::place_of,
    moment,
    outcome::Outcome,
    table::{Cell, Column, Table},
    text::{bytes, short},
};

/// Arguments of `lineage`.
#[derive(Clone, Debug, clap::Args)]
pub struct Lineage {
    /// The hash of an artifact, or its first digits
    #[arg(value_name = "HASH")]
    hash: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    members: Vec<Member>,
    heads: BTreeSet<Digest>,
    history: Vec<Event>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Member {
    hash: Digest,
    bytes: Option<u64>,
    head: bool,
    settled: bool,
    successors: BTreeSet<Digest>,
}

/// One word on the family: a supersession or a settlement.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    settled: bool,
    old: Vec<Digest>,
    new: Vec<Digest>,
    reason: String,
    author: Author,
    at: Millis,
    envelope: String,
}

impl Lineage {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let asked = artifact::manifest(ledger, &self.hash)?.hash;
        let lineage = ledger.lineage()?;
        let family = lineage.family(&asked);
        let heads = lineage.heads(&asked);
        let mut members = Vec::new();
        for hash in &family {
            members.push(Member {
                hash: *hash,
                bytes: ledger.store().manifest(hash)?.map(|manifest| manifest.bytes),
                head: heads.contains(hash),
                settled: lineage.settled.contains(hash),
                successors: lineage.successors.get(hash).cloned().unwrap_or_default(),
            });
        }
        let history = history(ledger, &family)?;
        // Those that were superseded first stand first, the heads last.
        let place = |hash: &Digest| history.iter().position(|event| event.old.contains(hash));
        members.sort_by_key(|member| (member.head, place(&member.hash).unwrap_or(usize::MAX)));
        let told = Told {
            members,
            heads,
            history,
        };
        if console.is_json() {
            return console.json(&told);
        }
        told.print(&asked, console)
    }
}

fn history(ledger: &Ledger, family: &BTreeSet<Digest>) -> Outcome<Vec<Event>> {
    let mut history = Vec::new();
    for envelope in ledger.read(Select::Topic(catalog::artifacts())).checked().envelopes() {
        let envelope = envelope?;
        let of = |kind: &str| hashes(&envelope, kind);
        let (settled, old, reason) = if let Some(said) = ArtifactSuperseded::read(&envelope)? {
            (false, of("superseded"), said.reason)
        } else if let Some(said) = ArtifactSettled::read(&envelope)? {
            (true, of("member"), said.reason)
        } else {
            continue;
        };
        let new = of("head");
        if old.iter().chain(&new).any(|hash| family.contains(hash)) {
            history.push(Event {
                settled,
                old,
                new,
                reason,
                author: envelope.author.clone(),
                at: envelope.at,
                envelope: place_of(&envelope),
            });
        }
    }
    Ok(history)
}

fn hashes(envelope: &Envelope, kind: &str) -> Vec<Digest> {
    let artifacts = envelope.body.artifacts.iter();
    let of_kind = artifacts.filter(|artifact| artifact.kind.as_deref() == Some(kind));
    of_kind.filter_map(|artifact| artifact.hash).collect()
}

fn listed<'a>(hashes: impl IntoIterator<Item = &'a Digest>) -> String {
    let hashes: Vec<_> = hashes.into_iter().map(|hash| short(&hash.to_string())).collect();
    hashes.join(" ")
}

impl Told {
    fn print(self, asked: &Digest, console: &mut Console<'_>) -> Outcome {
        let mut table = Table::new([
            Column::Whole(""),
            Column::Whole("ARTIFACT"),
            Column::Number("SIZE"),
            Column::Whole("STATE"),
            Column::Text("SUPERSEDED BY"),
        ]);
        for member in self.members {
            let state = match (member.head, member.settled) {
                (true, _) => Cell::painted("head", Paint::Good),
                (false, true) => Cell::painted("put aside", Paint::Open),
                (false, false) => Cell::painted("superseded", Paint::Open),
            };
            table.row([
                if member.hash == *asked { "→" } else { " " }.into(),
                Cell::painted(short(&member.hash.to_string()), Paint::Strong),
                member.bytes.map_or("not here".into(), bytes).into(),
                state,
                listed(&member.successors).into(),
            ]);
        }
        table.print(console)?;
        for event in self.history {
            let when = moment::full(event.at, console.local());
            let (old, new) = (listed(&event.old), listed(&event.new));
            let what = if event.settled {
                format!("settled on {new}, aside {old}")
            } else {
                format!("{old} superseded by {new}")
            };
            console.prose(&format!("{when}  {what}: {} ({})", event.reason, event.author))?;
        }
        if self.heads.len() > 1 {
            let heads = self.heads.len();
            console.prose(&format!(
                "a fork: {heads} of them are current, and nobody has settled which one counts"
            ))?;
        }
        Ok(())
    }
}
