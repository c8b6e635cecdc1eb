use std::{collections::HashMap, sync::Arc};

use neuron::{
    Append, Artifact, Author, Cause, Draft, Envelope, EnvelopeRef, Error, ErrorKind, Json, Ledger, Millis, Parent,
    Receipt, Result, RunId, SchemaRef, limits,
    scope::{Committed, Scope},
    topic::catalog,
    vocabulary::{
        Message as _,
        orchestration::{OrchestrationCancelled, OrchestrationCompleted, OrchestrationFailed},
        step::{PackageCompleted, PackageFailed},
    },
};

use crate::{
    fact::{Conclusion, Fact},
    package::Key,
};

/// Writes what the protocol records, in batches under the run's epoch, each envelope with its cause.
pub(crate) struct Scribe {
    ledger: Ledger,
    run: RunId,
    owner: (String, u64),
    drafts: Vec<Draft>,
    /// What the drafts become a mark of, once they stand.
    marking: Vec<(usize, Key, Beat)>,
    marks: HashMap<(Key, Beat), Mark>,
    answers: Vec<Answer>,
}

/// What of a package later envelopes name as their cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Beat {
    /// Its assignment.
    Assigned,
    /// Its plan.
    Planned,
    /// The ruling on its plan.
    Ruled,
}

#[derive(Clone, Debug)]
enum Mark {
    /// A draft of the batch that is being written.
    Pending(usize),
    Stands(EnvelopeRef, Millis),
}

/// An answer that is handed to the body that waits for it, once it stands.
struct Answer {
    at: usize,
    scope: Arc<Scope>,
    key: Key,
    name: &'static str,
    outcome: Result<Json, Error>,
}

impl Scribe {
    pub(crate) fn new(ledger: Ledger, run: RunId, owner: (String, u64)) -> Self {
        Self {
            ledger,
            run,
            owner,
            drafts: Vec::new(),
            marking: Vec::new(),
            marks: HashMap::new(),
            answers: Vec::new(),
        }
    }

    /// Remembers what stands on the log already.
    pub(crate) fn stands(&mut self, envelope: &Envelope, fact: &Fact) {
        if let Some((key, beat)) = beat(fact) {
            let mark = Mark::Stands(envelope.reference(), envelope.at);
            self.marks.insert((key, beat), mark);
        }
    }

    /// What names an envelope of a package as a cause.
    pub(crate) fn cause(&self, key: &Key, beat: Beat) -> Option<Cause> {
        self.marks.get(&(key.clone(), beat)).map(|mark| match mark {
            Mark::Pending(index) => Cause::Index(*index),
            Mark::Stands(reference, _) => Cause::Envelope(reference.clone()),
        })
    }

    /// When a package was assigned, once that stands.
    pub(crate) fn born(&self, key: &Key) -> Option<Millis> {
        match self.marks.get(&(key.clone(), Beat::Assigned)) {
            Some(Mark::Stands(_, at)) => Some(*at),
            _ => None,
        }
    }

    /// Adds a fact that the orchestrator writes itself.
    pub(crate) async fn record(&mut self, fact: &Fact, large: Option<(&'static str, Json)>) -> Result<(), Error> {
        let Some(mut draft) = fact.draft(&self.run)? else {
            return Err(Error::new(
                ErrorKind::Misuse,
                "a fact that its holder writes was recorded",
            ));
        };
        if let Some(cause) = self.cause_of(fact) {
            draft = draft.cause(cause);
        }
        if let Some(large) = large {
            draft = draft.artifact(self.blob(large).await?);
        }
        if let Some((key, beat)) = beat(fact) {
            self.marks.insert((key.clone(), beat), Mark::Pending(self.drafts.len()));
            self.marking.push((self.drafts.len(), key, beat));
        }
        self.drafts.push(draft);
        if self.drafts.len() >= limits::BATCH_MAX / 2 {
            self.commit().await?;
        }
        Ok(())
    }

    /// Adds the answer of a package, for the body that assigned it.
    pub(crate) async fn answer(
        &mut self,
        scope: &Arc<Scope>,
        key: &Key,
        name: &'static str,
        outcome: Result<Json, Error>,
        schema: Option<SchemaRef>,
    ) -> Result<(), Error> {
        let (topic, author) = (catalog::lifecycle(&self.run), Author::from(&self.run));
        let (scope_id, key_text, name_text) = (scope.id().to_string(), key.to_string(), name.to_string());
        let mut large = None;
        let mut draft = match &outcome {
            Ok(output) => {
                let output = sized("output", output.clone(), &mut large);
                let completed = PackageCompleted {
                    scope: scope_id,
                    key: key_text,
                    name: name_text,
                    output,
                    output_schema: schema,
                };
                completed.draft(topic, author)?
            }
            Err(error) => {
                let failed = PackageFailed {
                    scope: scope_id,
                    key: key_text,
                    name: name_text,
                    error: error.clone(),
                };
                failed.draft(topic, author)?
            }
        };
        if let Some(large) = large {
            draft = draft.artifact(self.blob(large).await?);
        }
        if let Some(cause) = self.cause(key, Beat::Ruled).or_else(|| self.cause(key, Beat::Assigned)) {
            draft = draft.cause(cause);
        }
        self.answers.push(Answer {
            at: self.drafts.len(),
            scope: scope.clone(),
            key: key.clone(),
            name,
            outcome,
        });
        self.drafts.push(draft);
        Ok(())
    }

    /// Adds the end of the run; its start is the first envelope of the topic.
    pub(crate) async fn conclude(&mut self, conclusion: &Conclusion, output: Option<Json>) -> Result<(), Error> {
        let (topic, author) = (catalog::lifecycle(&self.run), Author::from(&self.run));
        let mut large = None;
        let mut draft = match conclusion {
            Conclusion::Completed => {
                let output = output.and_then(|output| sized("output", output, &mut large));
                OrchestrationCompleted { output }.draft(topic, author)?
            }
            Conclusion::Failed(error) => OrchestrationFailed { error: error.clone() }.draft(topic, author)?,
            Conclusion::Cancelled { because } => OrchestrationCancelled {
                because: because.clone(),
            }
            .draft(topic, author)?,
        };
        if let Some(large) = large {
            draft = draft.artifact(self.blob(large).await?);
        }
        self.drafts.push(draft.parent(Parent::Seq(1)));
        Ok(())
    }

    /// Whether an answer waits to be appended.
    pub(crate) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Appends what was added, as one batch, and hands the answers over in the order of the log.
    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        if self.drafts.is_empty() {
            return Ok(());
        }
        let (name, epoch) = &self.owner;
        let answers = std::mem::take(&mut self.answers);
        let append = Append::of(std::mem::take(&mut self.drafts)).owner(name, *epoch);
        let append = append.then(move |outcome| {
            let Ok(receipts) = outcome else { return };
            for Answer {
                at,
                scope,
                key,
                name,
                outcome,
            } in answers
            {
                let Receipt { pos, at, .. } = receipts[at];
                scope.answer(&key, name, Committed { pos, at }, outcome);
            }
        });
        let receipts = self.ledger.append(append).await?;
        for (at, key, beat) in self.marking.drain(..) {
            let Receipt { topic, seq, id, at, .. } = receipts[at].clone();
            self.marks
                .insert((key, beat), Mark::Stands(EnvelopeRef { topic, seq, id }, at));
        }
        Ok(())
    }

    /// What brought a fact about.
    fn cause_of(&self, fact: &Fact) -> Option<Cause> {
        let cause = |key: &str, beat| self.cause(&Key::from(key), beat);
        match fact {
            Fact::Declared(plan) | Fact::Redeclared(plan) => cause(&plan.package, Beat::Assigned),
            Fact::Go(go) => cause(&go.package, Beat::Planned),
            Fact::Denied(denied) => cause(&denied.package, Beat::Planned),
            Fact::Objected(objected) => cause(&objected.package, Beat::Planned),
            _ => None,
        }
    }

    async fn blob(&self, (field, value): (&'static str, Json)) -> Result<Artifact, Error> {
        let ledger = self.ledger.clone();
        let stored = tokio::task::spawn_blocking(move || ledger.store_blob(value.as_str().as_bytes())).await;
        Ok(Artifact {
            name: field.into(),
            hash: Some(stored.map_err(|error| Error::new(ErrorKind::Io, error))??),
            kind: Some("payload".into()),
        })
    }
}

/// A value for the payload, unless it is so large that it stands as an artifact beside it.
fn sized(field: &'static str, value: Json, large: &mut Option<(&'static str, Json)>) -> Option<Json> {
    if value.len() <= limits::INLINE_VALUE_BYTES_MAX {
        return Some(value);
    }
    *large = Some((field, value));
    None
}

fn beat(fact: &Fact) -> Option<(Key, Beat)> {
    Some(match fact {
        Fact::Assigned(assigned) => (assigned.key.as_str().into(), Beat::Assigned),
        Fact::Declared(plan) | Fact::Redeclared(plan) => (plan.package.as_str().into(), Beat::Planned),
        Fact::Go(go) if go.amendment.is_none() => (go.package.as_str().into(), Beat::Ruled),
        _ => return None,
    })
}
