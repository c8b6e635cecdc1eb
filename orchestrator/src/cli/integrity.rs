//! `neuron verify`, `head` and `check`: whether the store says what was written into it.

use std::path::Path;

use neuron::{
    Error, ErrorKind, Ledger, Topic, doctor,
    store::verify::{self, Bad, Head as StoreHead, Past},
};
use serde_json::json;

use super::{
    console::{Console, Paint},
    outcome::{Failure, Outcome},
    place,
    text::{bytes, count},
};

/// Arguments of `verify`.
#[derive(Clone, Debug, clap::Args)]
pub struct Verify {
    /// Only what came after what `neuron head` printed before, POS:HASH; of all before it, that its ids are those
    #[arg(long, value_name = "HEAD")]
    since: Option<StoreHead>,
    /// Do not even read the ids before that head: whoever kept it vouches for them
    #[arg(long, requires = "since")]
    trust: bool,
}

/// Arguments of `head`.
#[derive(Clone, Debug, clap::Args)]
pub struct Head {
    /// The head of one topic instead
    #[arg(value_name = "TOPIC")]
    topic: Option<Topic>,
}

/// Arguments of `check`.
#[derive(Clone, Debug, clap::Args)]
pub struct Check {
    /// What `neuron head` printed before: POS:HASH
    #[arg(long, value_name = "HEAD")]
    since: StoreHead,
}

impl Verify {
    /// Why a head that was kept is compared with nothing but the present.
    pub(super) const COMPARES: &str = "a head that was kept is compared with the store as it stands now";

    /// Whether it goes on after a head that was kept.
    pub(super) fn goes_on(&self) -> bool {
        self.since.is_some()
    }

    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let store = &**ledger.store();
        let past = if self.trust { Past::Trusted } else { Past::Chained };
        let verified = match &self.since {
            Some(since) => verify::verify_since(store, since, past),
            None => verify::verify(store),
        };
        let verified = match verified {
            Ok(verified) => verified,
            Err(error) => return judged(error, console),
        };
        if console.is_json() {
            return console.json(&json!({ "intact": true, "since": self.since, "found": verified }));
        }
        let artifacts = count(verified.artifacts, "artifact");
        let found = [
            count(verified.envelopes, "envelope"),
            count(verified.topics, "topic"),
            count(verified.schemas, "schema"),
            format!("{artifacts} ({})", bytes(verified.artifact_bytes)),
        ];
        let line = console.paint(Paint::Good, "intact: ") + &found.join(", ");
        console.line(&line)?;
        console.line(&format!("head {}", verified.head))?;
        match &self.since {
            None if store.archive()?.is_some() => {}
            None => console.say(
                "rows cut from the very end are seen only by `neuron check --since HEAD` with a head kept elsewhere",
            ),
            Some(since) if self.trust => console.say(&format!(
                "what stands up to pos {} was not read: that the store began with {since} is your word",
                since.pos
            )),
            Some(since) => console.say(&format!(
                "up to pos {} ids were compared, not what stands behind them: that is for `neuron verify` to say",
                since.pos
            )),
        }
        Ok(())
    }
}

impl Head {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let store = &**ledger.store();
        let head = match &self.topic {
            Some(topic) => verify::head_of(store, topic)?,
            None => verify::head(store)?,
        };
        if console.is_json() {
            return console.json(&json!({ "head": head, "pos": head.pos, "hash": head.hash }));
        }
        console.line(&head.to_string())?;
        if let Some(archive) = store.archive()?.filter(|_| self.topic.is_none()) {
            console.say(&format!(
                "this is the head of the {} in the archive; that of the store it was taken of was {}",
                count(head.pos, "envelope"),
                archive.head
            ));
        }
        Ok(())
    }
}

impl Check {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let head = match verify::check(&**ledger.store(), &self.since) {
            Ok(head) => head,
            Err(error) => return judged(error, console),
        };
        let more = head.pos - self.since.pos;
        if console.is_json() {
            return console.json(&json!({ "extends": true, "since": self.since, "head": head, "more": more }));
        }
        let line = console.paint(Paint::Good, "extends it") + &format!(" by {}", count(more, "envelope"));
        console.line(&line)?;
        console.line(&format!("head {head}"))?;
        console.say("ids were compared, not what stands behind them: that is for `neuron verify` to say");
        Ok(())
    }
}

/// The error of a file that cannot be opened, with what can still be read of it.
pub(super) fn salvaged(error: Error, named: Option<&Path>, console: &Console<'_>) -> Error {
    let left = place::path(named, console).ok().and_then(|path| doctor::left(&path));
    match left {
        Some(left) if error.kind() == ErrorKind::Corrupt => error.context(left),
        _ => error,
    }
}

/// A store that contradicts itself is an answer; all else is a fault.
pub(super) fn judged(error: Error, console: &mut Console<'_>) -> Outcome {
    if error.kind() != ErrorKind::Corrupt {
        return Err(error.into());
    }
    if console.is_json() {
        let bad = error.detail::<Bad>();
        console.json(&json!({ "intact": false, "why": error.to_string(), "envelope": bad }))?;
        return Err(Failure::Answered);
    }
    Err(Failure::Negative(error.to_string()))
}
