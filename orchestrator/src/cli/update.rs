//! `neuron update`: a request into a body that runs, and what it responds.

use futures::executor::block_on;
use neuron::{
    Append, ErrorKind, Json, Ledger, RunId, TokenId,
    store::Select,
    vocabulary::{Message as _, orchestration::PackageAssigned},
};

use super::{
    console::Console,
    order::{self, Reason},
    outcome::{Failure, Outcome},
    show::print_json,
};
use crate::{
    runs::run_of,
    shell::{answer::first, update::Taker},
};

/// Arguments of `update`.
#[derive(Clone, Debug, clap::Args)]
pub struct Update {
    /// A run (`neuron runs`), or the token of one package (`neuron board RUN`)
    #[arg(value_name = "RUN|TOKEN")]
    whom: String,
    /// The name of the update
    #[arg(value_name = "NAME")]
    name: String,
    /// What is asked, as JSON
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    request: String,
    #[command(flatten)]
    signature: Reason,
}

impl Update {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let wrong = |error: neuron::Error| Failure::Usage(format!("the request is no JSON: {error}"));
        let request = Json::parse(&self.request).map_err(wrong)?;
        let (run, token) = self.whom(ledger)?;
        let taker = Taker::find(ledger, &run, token.as_ref(), &self.name).map_err(negative)?;
        let draft = taker.draft(ledger, request, self.signature.author()?);
        let draft = draft.map_err(|error| Failure::Usage(error.to_string()))?;
        let asked = first(ledger.append_blocking(Append::of([draft]))?)?;
        console.say("asked; waiting for the response");
        console.flush()?;
        let response = block_on(taker.response(ledger, &asked)).map_err(|error| match error.kind() {
            ErrorKind::Io | ErrorKind::Corrupt => Failure::Fault(error),
            _ => Failure::Negative(error.to_string()),
        })?;
        if console.is_json() {
            return console.json(&response);
        }
        print_json(&response.to_value(), console)
    }

    fn whom(&self, ledger: &Ledger) -> Outcome<(RunId, Option<TokenId>)> {
        if let Some(run) = order::run(ledger, &self.whom)? {
            return Ok((run, None));
        }
        if let Ok(token) = TokenId::new(&self.whom) {
            let assigned = Select::Kind(neuron::Kind::new(PackageAssigned::TYPE)?);
            for envelope in ledger.read(assigned).newest_first().envelopes() {
                let envelope = envelope?;
                let found = PackageAssigned::read(&envelope)?.is_some_and(|package| package.token == token);
                if let Some(run) = run_of(&envelope).filter(|_| found) {
                    return Ok((run, Some(token)));
                }
            }
        }
        Err(order::no_run(ledger, &self.whom)?)
    }
}

fn negative(error: neuron::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::Conflict => Failure::Negative(error.to_string()),
        ErrorKind::Misuse => Failure::Usage(error.to_string()),
        _ => error.into(),
    }
}
