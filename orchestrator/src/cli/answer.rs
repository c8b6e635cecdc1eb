//! `neuron answer`: what a person says to a body that asks.

use neuron::{
    Error, ErrorKind, Json, Ledger, RunId,
    vocabulary::{Message as _, control::ControlAnswered},
};

use super::{
    console::Console,
    order::{self, Reason},
    outcome::{Failure, Outcome},
    text::means,
    waiting::items,
};
use crate::{
    shell::answer::Open,
    waiting::{Item, What},
};

/// Arguments of `answer`.
#[derive(Clone, Debug, clap::Args)]
pub struct Answer {
    /// The key of a question (`neuron waiting`), or its first digits; or a run that asks one question
    #[arg(value_name = "RUN|KEY")]
    whom: String,
    /// The answer: JSON, or plain text where a text is asked for
    #[arg(id = "answer", value_name = "ANSWER", allow_hyphen_values = true)]
    text: String,
    /// The run that asks, where a run and its forks ask the same
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    signature: Reason,
}

impl Answer {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let open = self.question(ledger)?;
        let answered = ControlAnswered {
            key: open.key.clone(),
            answer: self.value(&open, ledger)?,
            because: self.signature.because(),
        };
        let given = open.give(ledger, &answered, &self.signature.author()?);
        let receipt = given.map_err(|error| match error.kind() {
            ErrorKind::Conflict | ErrorKind::Timeout => Failure::Negative(error.to_string()),
            _ => error.into(),
        })?;
        order::told(ControlAnswered::TYPE, &receipt, console)
    }

    /// The one question that is meant.
    fn question(&self, ledger: &Ledger) -> Outcome<Open> {
        let run = order::run(ledger, &self.whom)?;
        let asked = |item: &Item| match &item.what {
            What::Asked { key, .. } => {
                let of = item.run.as_ref().map(RunId::as_str);
                let is_of_run = self.run.is_none() || self.run.as_deref() == of;
                is_of_run
                    && run
                        .as_ref()
                        .map_or_else(|| means(&self.whom, key), |run| of == Some(run.as_str()))
            }
            _ => false,
        };
        let mut found: Vec<Item> = items(ledger)?.into_iter().filter(asked).collect();
        if found.len() > 1 {
            let lines: Vec<_> = found.iter().filter_map(line).collect();
            let why = format!(
                "`{}` may mean any of these questions: name one by its key, or its run with --run\n{}",
                self.whom,
                lines.join("\n")
            );
            return Err(Failure::Usage(why));
        }
        match found.pop().and_then(Open::of) {
            Some(open) => Ok(open),
            None => Err(self.absent(ledger, run.is_some())),
        }
    }

    /// Why there is nothing to answer.
    fn absent(&self, ledger: &Ledger, is_run: bool) -> Failure {
        let whom = self.whom.escape_debug();
        if is_run {
            return Failure::Negative(format!(
                "run `{whom}` asks nothing (`neuron waiting` lists what is asked)"
            ));
        }
        // A whole key may be of a question that is over, which is another thing to be told.
        match Open::find(ledger, None, &self.whom).err() {
            Some(error) if error.kind() == ErrorKind::Conflict => Failure::Negative(error.to_string()),
            _ => Failure::Negative(format!(
                "no run `{whom}` and no open question of this key is here (`neuron waiting` lists what is asked)"
            )),
        }
    }

    /// JSON if that is an answer, else the text itself if that is one.
    fn value(&self, open: &Open, ledger: &Ledger) -> Outcome<Json> {
        let text = Json::of(&self.text)?;
        let wrong = match Json::parse(&self.text) {
            Ok(json) => match open.check(ledger, &json) {
                Ok(()) => return Ok(json),
                Err(error) => error,
            },
            Err(error) => Error::new(ErrorKind::Malformed, format!("it is no JSON: {error}")),
        };
        if open.check(ledger, &text).is_ok() {
            return Ok(text);
        }
        let schema = open.answer.to_string();
        Err(Failure::Usage(format!(
            "that is no answer to question {}: {wrong} (`neuron schema {}` shows what is asked for)",
            open.key,
            &schema[..12]
        )))
    }
}

fn line(item: &Item) -> Option<String> {
    match &item.what {
        What::Asked { key, question, .. } => Some(format!("  {key}  {}", question.escape_debug())),
        _ => None,
    }
}
