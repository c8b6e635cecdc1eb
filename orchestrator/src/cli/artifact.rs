//! `neuron artifacts` and `neuron cat`: the blobs beside the log.

use std::collections::BTreeMap;

use neuron::{
    Digest, Error, ErrorKind, Ledger, Millis,
    store::{Manifest, Select},
    topic::catalog,
};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    find,
    line::place_of,
    moment,
    outcome::{Failure, Outcome},
    table::{Cell, Column, Table},
    text::{bytes, short},
};

/// Arguments of `artifacts`.
#[derive(Clone, Debug, clap::Args)]
pub struct Artifacts {}

/// Arguments of `cat`.
#[derive(Clone, Debug, clap::Args)]
pub struct Cat {
    /// The hash of an artifact, or its first digits
    #[arg(value_name = "HASH")]
    hash: String,
}

/// An artifact and the first envelope that names it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    hash: Digest,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    named: Option<Named>,
    /// Others have taken its place.
    past: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    #[serde(rename = "ref", skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    by: String,
    at: Millis,
}

impl Artifacts {
    #[allow(clippy::unused_self, reason = "every command is run alike")]
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let mut names = names(ledger)?;
        let lineage = ledger.lineage()?;
        let manifests = ledger.store().manifests()?.into_iter();
        let mut told: Vec<_> = manifests
            .map(|(hash, bytes)| Told {
                hash,
                bytes,
                named: names.remove(&hash),
                past: lineage.successors.contains_key(&hash) || lineage.settled.contains(&hash),
            })
            .collect();
        // Those that nobody names come last.
        told.sort_by_key(|artifact| artifact.named.as_ref().map_or(Millis(i64::MAX), |named| named.at));
        if console.is_json() {
            return console.json(&told);
        }
        if told.is_empty() {
            return console.line("this store holds no artifact");
        }
        let mut table = Table::new([
            Column::Whole("ARTIFACT"),
            Column::Number("SIZE"),
            Column::Whole("KIND"),
            Column::Text("NAME"),
            Column::Text("NAMED BY"),
            Column::Whole("STATE"),
            Column::Spare("WHEN"),
        ]);
        for artifact in told {
            let when = artifact
                .named
                .as_ref()
                .map(|named| moment::full(named.at, console.local()));
            let state = match (&artifact.named, artifact.past) {
                (_, true) => Cell::painted("superseded", Paint::Open),
                (None, false) => Cell::painted("unnamed", Paint::Faint),
                (Some(_), false) => Cell::default(),
            };
            let (kind, name, by) = artifact.named.map_or_else(Default::default, |named| {
                (named.kind.unwrap_or_default(), named.name, named.by)
            });
            table.row([
                Cell::painted(short(&artifact.hash.to_string()), Paint::Strong),
                bytes(artifact.bytes).into(),
                Cell::painted(kind, Paint::Kind),
                name.into(),
                by.into(),
                state,
                Cell::painted(when.unwrap_or_default(), Paint::Faint),
            ]);
        }
        table.print(console)
    }
}

/// The first envelope that names each artifact; one that only tells of its descent gives it no name.
fn names(ledger: &Ledger) -> Outcome<BTreeMap<Digest, Named>> {
    let (mut names, mut descent) = (BTreeMap::new(), BTreeMap::new());
    let mut reading = ledger.read(Select::All);
    loop {
        let rows = reading.page()?;
        if rows.is_empty() {
            break;
        }
        // Most envelopes carry none, and need not be read for it.
        for row in rows.iter().filter(|row| row.record.contains(r#""artifacts":[{"#)) {
            let envelope = row.checked()?;
            let tells = envelope.topic == catalog::artifacts();
            for artifact in &envelope.body.artifacts {
                let Some(hash) = artifact.hash else { continue };
                let known = if tells { &mut descent } else { &mut names };
                known.entry(hash).or_insert_with(|| Named {
                    name: if tells { String::new() } else { artifact.name.clone() },
                    kind: artifact.kind.clone().filter(|_| !tells),
                    by: place_of(&envelope),
                    at: envelope.at,
                });
            }
        }
    }
    for (hash, told) in descent {
        names.entry(hash).or_insert(told);
    }
    Ok(names)
}

/// The artifact that a hash or its beginning names.
pub(super) fn manifest(ledger: &Ledger, hash: &str) -> Outcome<Manifest> {
    let known = ledger.store().manifests()?.into_iter().map(|(hash, _)| hash);
    let hash = find::hash("artifact", "artifacts", hash, known)?;
    let gone = || Failure::Negative(format!("artifact {hash} is not in this store"));
    ledger.store().manifest(&hash)?.ok_or_else(gone)
}

impl Cat {
    /// Writes the content, each chunk held to its hash; memory holds one chunk.
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let manifest = manifest(ledger, &self.hash)?;
        for hash in &manifest.chunks {
            let chunk = ledger.store().chunk(hash)?;
            let chunk = chunk.ok_or_else(|| broken(&manifest.hash, hash, "is missing"))?;
            if Digest::content(&chunk) != *hash {
                return Err(broken(&manifest.hash, hash, "is not what was stored").into());
            }
            console.raw(&chunk)?;
        }
        Ok(())
    }
}

fn broken(artifact: &Digest, chunk: &Digest, how: &str) -> Error {
    let why = format!("chunk {chunk} of artifact {artifact} {how}: `neuron verify` looks through the whole store");
    Error::new(ErrorKind::Corrupt, why)
}
