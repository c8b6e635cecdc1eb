//! Answers to questions, given from whatever process.

use neuron::{
    Append, Author, Error, ErrorKind, Expectation, Json, Kind, Ledger, Millis, Receipt, Result, RunId, SchemaRef,
    Topic,
    schema::Validator,
    store::Select,
    topic::catalog,
    vocabulary::{Message as _, control::ControlAnswered, dialogue::QuestionAsked},
};

use crate::waiting::{Item, Waits, What};

/// A question that is open.
pub(crate) struct Open {
    pub(crate) key: String,
    pub(crate) answer: SchemaRef,
    /// Where answers to it stand.
    topic: Topic,
    /// What was given up to here is none.
    heard: u64,
    item: Item,
}

impl Open {
    /// The question that waits here, if one does.
    pub(crate) fn of(item: Item) -> Option<Self> {
        let What::Asked { key, answer, heard, .. } = &item.what else {
            return None;
        };
        let topic = match (&item.token, &item.run) {
            (Some(token), _) => catalog::control(token),
            (None, Some(run)) => catalog::run_control(run),
            (None, None) => return None,
        };
        Some(Self {
            key: key.clone(),
            answer: *answer,
            topic,
            heard: *heard,
            item,
        })
    }

    /// The question with this key, in this run if one is named. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Conflict`] for one that is no longer open; [`ErrorKind::Misuse`] if several
    /// runs ask it.
    pub(crate) fn find(ledger: &Ledger, run: Option<&RunId>, key: &str) -> Result<Self, Error> {
        let waiting = ledger.fold(&Waits, None)?.state;
        let is_meant = |open: &Self| open.key == key && run.is_none_or(|run| open.item.run.as_ref() == Some(run));
        let mut open: Vec<Self> = waiting.items().cloned().filter_map(Self::of).filter(is_meant).collect();
        if open.len() > 1 {
            let runs = open.iter().filter_map(|open| open.item.run.as_ref());
            let runs: Vec<&str> = runs.map(RunId::as_str).collect();
            let why = format!(
                "question {key} is asked by several runs: name one of {}",
                runs.join(", ")
            );
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        match open.pop() {
            Some(open) => Ok(open),
            None => Err(absent(ledger, key)?),
        }
    }

    /// Holds a value to the schema of an answer.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] naming what is wrong.
    pub(crate) fn check(&self, ledger: &Ledger, answer: &Json) -> Result<(), Error> {
        check(ledger, &self.answer, answer)
    }

    /// Puts an answer on the log. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`]; [`ErrorKind::Conflict`] if another answer stands already; [`ErrorKind::Timeout`] once its
    /// time is over.
    pub(crate) fn give(&self, ledger: &Ledger, answered: &ControlAnswered, author: &Author) -> Result<Receipt, Error> {
        self.check(ledger, &answered.answer)
            .map_err(|error| error.context(format!("question {}", self.key)))?;
        loop {
            let head = ledger.store().head(&self.topic)?;
            if let Some(by) = self.answered(ledger)? {
                let why = format!(
                    "question {} was answered by {by} already, and the first answer stands",
                    self.key
                );
                return Err(Error::new(ErrorKind::Conflict, why));
            }
            self.in_time(ledger.clock().now())?;
            let draft = answered.draft(self.topic.clone(), author.clone())?;
            let append = Append::of([draft]).expect(Expectation::Head(self.topic.clone(), head));
            match ledger.append_blocking(append) {
                // Something else came in between: it may be an answer.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                given => {
                    let receipt = first(given?)?;
                    // Its body goes by this time, so whoever answers is told by it.
                    self.in_time(receipt.at)?;
                    return Ok(receipt);
                }
            }
        }
    }

    fn in_time(&self, at: Millis) -> Result<(), Error> {
        match self.item.what {
            What::Asked {
                deadline: Some(deadline),
                ..
            } if at >= deadline => {
                let why = format!("the time to answer question {} is over", self.key);
                Err(Error::new(ErrorKind::Timeout, why))
            }
            _ => Ok(()),
        }
    }

    /// Who gave an answer that its process has not taken up yet, if somebody did.
    pub(crate) fn answered(&self, ledger: &Ledger) -> Result<Option<Author>, Error> {
        let given = ledger.read(Select::Topic(self.topic.clone())).from(self.heard + 1);
        for envelope in given.envelopes() {
            let envelope = envelope?;
            let answered = ControlAnswered::read(&envelope)?.filter(|answered| answered.key == self.key);
            if answered.is_some_and(|answered| self.check(ledger, &answered.answer).is_ok()) {
                return Ok(Some(envelope.author));
            }
        }
        Ok(None)
    }
}

/// Holds a value to a registered schema.
///
/// # Errors
/// [`ErrorKind::Schema`] naming what is wrong.
pub(crate) fn check(ledger: &Ledger, schema: &SchemaRef, value: &Json) -> Result<(), Error> {
    Validator::of(schema, &|reference| ledger.store().schema(reference))?.check(value)
}

pub(crate) fn first(receipts: Vec<Receipt>) -> Result<Receipt, Error> {
    let first = receipts.into_iter().next();
    first.ok_or_else(|| Error::new(ErrorKind::Corrupt, "the store gave no receipt"))
}

/// Why a question cannot be answered.
fn absent(ledger: &Ledger, key: &str) -> Result<Error, Error> {
    let asked = Select::Kind(Kind::new(QuestionAsked::TYPE)?);
    for envelope in ledger.read(asked).newest_first().envelopes() {
        if QuestionAsked::read(&envelope?)?.is_some_and(|asked| asked.key == key) {
            let why = format!(
                "question {key} is no longer open: it was answered or withdrawn, its time is over, or its run has ended"
            );
            return Ok(Error::new(ErrorKind::Conflict, why));
        }
    }
    let why = format!(
        "nobody asked a question `{}` (`neuron waiting` lists those that are open)",
        key.escape_debug()
    );
    Ok(Error::new(ErrorKind::NotFound, why))
}
