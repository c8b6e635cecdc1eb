//! `neuron verify`, `head` and `check`: whether the store says what was written into it.

use neuron::{
    Error, ErrorKind, Ledger,
    store::verify::{self, Bad, Head as StoreHead},
};
use serde_json::json;

use super::{
    console::{Console, Paint},
    outcome::{Failure, Outcome},
    text::{bytes, count},
};

/// Arguments of `verify`.
#[derive(Clone, Debug, clap::Args)]
pub struct Verify {}

/// Arguments of `head`.
#[derive(Clone, Debug, clap::Args)]
pub struct Head {}

/// Arguments of `check`.
#[derive(Clone, Debug, clap::Args)]
pub struct Check {
    /// What `neuron head` printed before: POS:HASH
    #[arg(long, value_name = "HEAD")]
    since: StoreHead,
}

impl Verify {
    #[allow(clippy::unused_self, reason = "every command is run alike")]
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let verified = match verify::verify(&**ledger.store()) {
            Ok(verified) => verified,
            Err(error) => return judged(error, console),
        };
        if console.is_json() {
            return console.json(&json!({ "intact": true, "found": verified }));
        }
        let line = console.paint(Paint::Good, "intact: ")
            + &[
                count(verified.head.pos, "envelope"),
                count(verified.topics.len() as u64, "topic"),
                count(verified.schemas, "schema"),
                format!(
                    "{} ({})",
                    count(verified.artifacts, "artifact"),
                    bytes(verified.artifact_bytes)
                ),
            ]
            .join(", ");
        console.line(&line)?;
        console.line(&format!("head {}", verified.head))?;
        console
            .say("rows cut from the very end are seen only by `neuron check --since HEAD` with a head kept elsewhere");
        Ok(())
    }
}

impl Head {
    #[allow(clippy::unused_self, reason = "every command is run alike")]
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let head = verify::head(&**ledger.store())?;
        if console.is_json() {
            return console.json(&json!({ "head": head, "pos": head.pos, "hash": head.hash }));
        }
        console.line(&head.to_string())
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
