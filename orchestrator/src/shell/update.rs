//! Updates: requests into bodies that run, made from whatever process.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::{Either, select};
use neuron::{
    Author, Draft, Envelope, Error, ErrorKind, Json, Ledger, Pattern, Receipt, Result, RunId, SchemaRef, TokenId,
    Topic,
    ledger::From,
    store::Select,
    topic::catalog,
    vocabulary::{
        Message as _,
        control::ControlRequested,
        dialogue::{UpdateAccepting, UpdateAnswered, UpdateRefused},
        orchestration::PackageAssigned,
        step::{PackageCompleted, PackageFailed},
    },
};

use super::{
    answer::check,
    standing::{Standing, end, standing, value},
};

/// Whoever takes updates of a name: one package of a run.
pub(crate) struct Taker {
    run: RunId,
    token: TokenId,
    /// The package.
    key: String,
    name: String,
    request: SchemaRef,
    /// Where it says that it takes them.
    pos: u64,
}

impl Taker {
    /// Who takes updates of this name in a run that goes on; of several the one with this token. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if nobody does, naming what is taken, and as [`Taker::look`].
    pub(crate) fn find(ledger: &Ledger, run: &RunId, token: Option<&TokenId>, name: &str) -> Result<Self, Error> {
        match Self::look(ledger, run, token, name)? {
            Some(taker) => Ok(taker),
            None => Err(nobody(ledger, run, token, name)?),
        }
    }

    /// As [`Taker::find`], for whoever waits for one: `None` while nobody does.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such run; [`ErrorKind::Conflict`] if it has ended; [`ErrorKind::Misuse`] if
    /// it is in question who is meant.
    pub(crate) fn look(
        ledger: &Ledger,
        run: &RunId,
        token: Option<&TokenId>,
        name: &str,
    ) -> Result<Option<Self>, Error> {
        match standing(ledger, run)? {
            Standing::New => return Err(Error::new(ErrorKind::NotFound, format!("there is no run `{run}`"))),
            Standing::Ended(..) => return Err(over(run)),
            Standing::Open(_) => {}
        }
        let mut open = open(ledger, run)?;
        open.retain(|taker, _| token.is_none_or(|token| token == taker));
        let mut takers = Vec::new();
        for (taker, key) in &open {
            let Some(envelope) = accepting(ledger, taker, name)? else {
                continue;
            };
            takers.push(Self {
                run: run.clone(),
                token: taker.clone(),
                key: key.clone(),
                name: name.into(),
                request: envelope.decode::<UpdateAccepting>()?.request,
                pos: envelope.pos,
            });
        }
        if takers.len() > 1 {
            let tokens: Vec<_> = takers.iter().map(|taker| taker.token.to_string()).collect();
            let why = format!(
                "several agents of run `{run}` take updates `{name}`: name one by its token ({})",
                tokens.join(", ")
            );
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        Ok(takers.pop())
    }

    /// What is to go on the log, if it is a request at all.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] naming what is wrong.
    pub(crate) fn draft(&self, ledger: &Ledger, request: Json, author: Author) -> Result<Draft, Error> {
        check(ledger, &self.request, &request).map_err(|error| error.context(format!("update `{}`", self.name)))?;
        let requested = ControlRequested {
            update: self.name.clone(),
            request,
        };
        requested.draft(catalog::control(&self.token), author)
    }

    /// Waits for the response to a request that stands.
    ///
    /// # Errors
    /// The refusal; [`ErrorKind::Conflict`] if whoever took updates has ended without a response.
    pub(crate) async fn response(&self, ledger: &Ledger, asked: &Receipt) -> Result<Json, Error> {
        let steps = catalog::steps(&self.token);
        let mut said = ledger.subscribe(Pattern::exactly(&steps), From::After(asked.pos))?;
        // It may have ended before the request stood, which nobody will take then.
        let mut ends = ledger.subscribe(Pattern::exactly(&catalog::lifecycle(&self.run)), From::After(self.pos))?;
        loop {
            let next = {
                let (response, ended) = (Box::pin(said.next()), Box::pin(ends.next()));
                match select(response, ended).await {
                    Either::Left((said, _)) => Either::Left(said?),
                    Either::Right((ended, _)) => Either::Right(ended?),
                }
            };
            match next {
                Either::Left(envelope) => {
                    if let Some(response) = responds(ledger, &envelope, asked.pos)? {
                        return response;
                    }
                }
                Either::Right(envelope) => {
                    if !self.is_end(ledger, &envelope)? {
                        continue;
                    }
                    // What was said before the end was said.
                    for envelope in ledger.read(Select::Topic(steps.clone())).from(asked.pos).envelopes() {
                        if let Some(response) = responds(ledger, &envelope?, asked.pos)? {
                            return response;
                        }
                    }
                    let (name, run) = (&self.name, &self.run);
                    let why = format!("whoever took updates `{name}` in run `{run}` has ended without a response");
                    return Err(Error::new(ErrorKind::Conflict, why));
                }
            }
        }
    }

    fn is_end(&self, ledger: &Ledger, envelope: &Envelope) -> Result<bool, Error> {
        Ok(ended(envelope)?.is_some_and(|key| key == self.key) || end(ledger, envelope)?.is_some())
    }
}

/// What waiting for somebody to take updates is woken by.
pub(crate) fn changes(ledger: &Ledger, run: &RunId) -> Result<[neuron::ledger::Subscription; 2], Error> {
    Ok([
        ledger.subscribe(Pattern::new("agent.*.steps")?, From::Now)?,
        ledger.subscribe(Pattern::exactly(&catalog::lifecycle(run)), From::Now)?,
    ])
}

/// Waits until somebody may have begun to take updates, or the run may have ended.
pub(crate) async fn changed([steps, life]: &mut [neuron::ledger::Subscription; 2]) -> Result<(), Error> {
    loop {
        let (step, life) = (Box::pin(steps.next()), Box::pin(life.next()));
        match select(step, life).await {
            Either::Left((step, _)) if step.as_ref().is_ok_and(|step| step.body.kind != *UpdateAccepting::TYPE) => {}
            Either::Left((changed, _)) | Either::Right((changed, _)) => return changed.map(drop),
        }
    }
}

pub(crate) fn over(run: &RunId) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("run `{run}` has ended: it takes no updates any more"),
    )
}

/// The packages of a run that have no answer, by token.
fn open(ledger: &Ledger, run: &RunId) -> Result<BTreeMap<TokenId, String>, Error> {
    let read = |topic: Topic| ledger.read(Select::Topic(topic)).envelopes();
    let mut over = BTreeSet::new();
    for envelope in read(catalog::lifecycle(run)) {
        over.extend(ended(&envelope?)?);
    }
    let mut open = BTreeMap::new();
    for envelope in read(catalog::packages(run)) {
        if let Some(assigned) = PackageAssigned::read(&envelope?)?.filter(|package| !over.contains(&package.key)) {
            open.insert(assigned.token, assigned.key);
        }
    }
    Ok(open)
}

/// Where a package has said last that it takes updates of this name.
fn accepting(ledger: &Ledger, token: &TokenId, name: &str) -> Result<Option<Envelope>, Error> {
    let topic = catalog::steps(token);
    let Some(seq) = ledger.store().keyed(&topic, &UpdateAccepting::keyed(name))? else {
        return Ok(None);
    };
    let row = ledger.store().row(&topic, seq)?;
    row.map(|row| row.envelope()).transpose()
}

/// None of these takes updates of this name: what they take instead.
fn nobody(ledger: &Ledger, run: &RunId, token: Option<&TokenId>, name: &str) -> Result<Error, Error> {
    let mut others = BTreeSet::new();
    let open = open(ledger, run)?;
    for token in open.keys().filter(|taker| token.is_none_or(|token| token == *taker)) {
        for envelope in ledger.read(Select::Topic(catalog::steps(token))).envelopes() {
            others.extend(UpdateAccepting::read(&envelope?)?.map(|accepting| accepting.update));
        }
    }
    let others: Vec<_> = others.into_iter().collect();
    let known = if others.is_empty() {
        "it takes none now".into()
    } else {
        format!("it takes {}", others.join(", "))
    };
    let (name, of) = (name.escape_debug(), format!("run `{run}`"));
    let whom = token.map_or_else(|| of.clone(), |token| format!("`{token}` of {of}"));
    let why = format!("{whom} takes no updates `{name}`: {known}");
    Ok(Error::new(ErrorKind::NotFound, why))
}

/// The package whose answer an envelope is.
fn ended(envelope: &Envelope) -> Result<Option<String>, Error> {
    let completed = PackageCompleted::read(envelope)?.map(|completed| completed.key);
    Ok(completed.or(PackageFailed::read(envelope)?.map(|failed| failed.key)))
}

/// What an envelope says to whoever made the request at `asked`.
fn responds(ledger: &Ledger, envelope: &Envelope, asked: u64) -> Result<Option<Result<Json, Error>>, Error> {
    if let Some(refused) = UpdateRefused::read(envelope)?.filter(|refused| refused.asked == asked) {
        return Ok(Some(Err(Error::new(ErrorKind::Schema, refused.reason))));
    }
    let Some(answered) = UpdateAnswered::read(envelope)?.filter(|answered| answered.asked == asked) else {
        return Ok(None);
    };
    Ok(Some(match answered.error {
        Some(error) => Err(error),
        None => Ok(value(ledger, envelope, answered.response)?),
    }))
}
