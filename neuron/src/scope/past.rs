use std::{collections::HashMap, sync::Arc};

use super::{
    Committed,
    incarnation::Incarnation,
    known::{Known, Open, Past, Request},
    recorded::{Answer, lapsed},
    updates::Reach,
};
use crate::{
    Error, ErrorKind, Json, Result,
    vocabulary::{
        Message as _,
        dialogue::{
            QuestionAnswered, QuestionAsked, QuestionLapsed, QuestionRefused, QuestionWithdrawn, UpdateAccepting,
            UpdateAnswered, UpdateRefused, UpdateReturned, UpdateTaken,
        },
        orchestration::PackageAssigned,
        step::{
            AgentContinued, EmitCompleted, EmitFailed, PackageCompleted, PackageFailed, ReplayOnceChanged,
            StepAbandoned, StepArtifact, StepAttempted, StepCompleted, StepDoubted, StepFailed, StepStarted,
            ThreadCompleted, ThreadFailed, ThreadStarted, TimerFired, TimerStarted, TransactionCommitted,
            TransactionFailed, WaitAbandoned, WaitEnded, WaitStarted,
        },
    },
};

/// What is on the log of a run, by scope. A resumed body is answered from it.
#[derive(Debug, Default)]
pub struct History {
    scopes: HashMap<Arc<str>, Past>,
    /// By name of update, how far requests were taken or refused.
    updates: HashMap<Arc<str>, Reach>,
    /// The last time that the body has begun again.
    continued: Option<Incarnation>,
    /// Envelopes that were taken into account.
    taken: u64,
}

impl History {
    /// A history of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one recorded envelope into account. They come by `pos`; types that say nothing about a scope are passed
    /// over. `seq` is its place in its topic, to which an end responds. `large` is the value that stands as an artifact
    /// beside the payload; of `step.artifact`, what names it; of `emit.completed`, the envelope that is its cause.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if the payload is not what its type says.
    pub fn add(
        &mut self,
        place: Committed,
        seq: u64,
        kind: &str,
        payload: &Json,
        large: Option<Json>,
    ) -> Result<(), Error> {
        self.taken += 1;
        match kind {
            AgentContinued::TYPE => {
                let word: AgentContinued = payload.decode()?;
                self.goes_on(place, word, large);
            }
            StepStarted::TYPE => {
                let word: StepStarted = payload.decode()?;
                let call = self.call(&word.scope, &word.key);
                call.started(&word, large, place.pos);
                call.begun = seq;
            }
            StepAttempted::TYPE => {
                let word: StepAttempted = payload.decode()?;
                self.call(&word.scope, &word.key).attempted(&word, place.pos);
            }
            StepAbandoned::TYPE => {
                let word: StepAbandoned = payload.decode()?;
                self.call(&word.scope, &word.key).abandoned();
            }
            StepDoubted::TYPE => {
                let word: StepDoubted = payload.decode()?;
                self.call(&word.scope, &word.key).doubted = Some(place.pos);
            }
            ReplayOnceChanged::TYPE => {
                let word: ReplayOnceChanged = payload.decode()?;
                self.call(&word.scope, &word.key).changed = Some(place.pos);
            }
            PackageAssigned::TYPE => {
                let word: PackageAssigned = payload.decode()?;
                let call = self.call(&word.scope, &word.key);
                call.name = word.name;
                call.assigned = true;
                call.born = place.pos;
            }
            TimerStarted::TYPE => {
                let word: TimerStarted = payload.decode()?;
                let call = self.call(&word.scope, &word.key);
                call.name = word.name;
                (call.deadline, call.begun) = (Some(word.deadline), seq);
            }
            ThreadStarted::TYPE => {
                let word: ThreadStarted = payload.decode()?;
                self.call(&word.scope, &word.key).thread = true;
            }
            WaitStarted::TYPE => {
                let word: WaitStarted = payload.decode()?;
                let call = self.call(&word.scope, &word.key);
                call.name = word.name;
                call.begins_anew();
                (call.born, call.deadline, call.begun) = (place.pos, word.deadline, seq);
            }
            EmitCompleted::TYPE => {
                let word: EmitCompleted = payload.decode()?;
                let Some(said) = large else {
                    return Err(Error::new(ErrorKind::Schema, "an `emit.completed` names no cause"));
                };
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, Ok(said)));
            }
            WaitAbandoned::TYPE => {
                let word: WaitAbandoned = payload.decode()?;
                self.call(&word.scope, &word.key).waits_no_more();
            }
            QuestionAsked::TYPE => {
                let word: QuestionAsked = payload.decode()?;
                let call = self.call(&word.scope, &word.key);
                call.name = word.name;
                (call.heard, call.deadline, call.begun) = (Some(place.pos), word.deadline, seq);
            }
            QuestionRefused::TYPE => {
                let word: QuestionRefused = payload.decode()?;
                self.call(&word.scope, &word.key).heard = Some(word.given);
            }
            QuestionWithdrawn::TYPE => {
                let word: QuestionWithdrawn = payload.decode()?;
                self.call(&word.scope, &word.key).withdrawn();
            }
            UpdateAccepting::TYPE => {
                let word: UpdateAccepting = payload.decode()?;
                self.call(&word.scope, &word.key).heard = Some(place.pos);
            }
            UpdateRefused::TYPE => {
                let word: UpdateRefused = payload.decode()?;
                self.updates.entry(word.update.into()).or_default().take(word.asked);
            }
            UpdateReturned::TYPE => {
                let word: UpdateReturned = payload.decode()?;
                let reach = self.updates.entry(word.update.into()).or_default();
                reach.give_back(word.asked);
                self.call(&word.scope, &word.key).given_back = true;
            }
            _ => self.add_answer(place, kind, payload, large)?,
        }
        Ok(())
    }

    /// The body begins again: what came before is answered for.
    fn goes_on(&mut self, place: Committed, word: AgentContinued, large: Option<Json>) {
        self.scopes.clear();
        let mut returned = word.returned;
        let reaches = word.updates.into_iter().map(|(name, upto)| {
            let returned = returned.remove(&name).unwrap_or_default();
            (name.into(), Reach::new(upto, returned))
        });
        self.updates = reaches.collect();
        let args = word.args.or(large).unwrap_or_else(Json::null);
        self.continued = Some(Incarnation {
            scope: word.key.into(),
            number: word.incarnation,
            args: (args, word.args_schema),
            at: place.at,
        });
    }

    /// Forgets what has no answer, as if it had never begun.
    pub(crate) fn keep_answers(&mut self) {
        self.scopes.values_mut().for_each(Past::keep_answers);
    }

    /// How many envelopes it was made of.
    pub fn envelopes(&self) -> u64 {
        self.taken
    }

    /// Where the body has begun again last, if it has.
    pub(crate) fn take_continued(&mut self) -> Option<Incarnation> {
        self.continued.take()
    }

    /// Calls of `once` steps that began and have no answer: key, name, and whether their body let go of them.
    pub(crate) fn unsettled_once(&self) -> impl Iterator<Item = (Arc<str>, Open)> {
        let calls = self.scopes.values().flat_map(Past::iter);
        let open =
            calls.filter(|(_, call)| call.once && call.answer.is_none() && (call.open > 0 || call.doubted.is_some()));
        open.map(|(key, call)| {
            let open = Open {
                name: call.name.clone(),
                let_go: call.let_go,
            };
            (key.clone(), open)
        })
    }

    /// How far requests were taken, by name of update.
    pub(crate) fn take_updates(&mut self) -> HashMap<Arc<str>, Reach> {
        std::mem::take(&mut self.updates)
    }

    fn add_answer(&mut self, place: Committed, kind: &str, payload: &Json, large: Option<Json>) -> Result<(), Error> {
        let output = |inline: Option<Json>, schema| Answer {
            schema,
            ..Answer::new(place, Ok(inline.or(large).unwrap_or_else(Json::null)))
        };
        match kind {
            StepCompleted::TYPE => {
                let word: StepCompleted = payload.decode()?;
                self.answer(
                    &word.scope,
                    &word.key,
                    &word.name,
                    output(word.output, word.output_schema),
                );
            }
            PackageCompleted::TYPE => {
                let word: PackageCompleted = payload.decode()?;
                self.answer(
                    &word.scope,
                    &word.key,
                    &word.name,
                    output(word.output, word.output_schema),
                );
            }
            ThreadCompleted::TYPE => {
                let word: ThreadCompleted = payload.decode()?;
                self.answer(&word.scope, &word.key, &word.name, output(word.output, None));
            }
            StepArtifact::TYPE => {
                let word: StepArtifact = payload.decode()?;
                // A step that was run again may have kept something else: the last word counts.
                self.call(&word.scope, &word.key)
                    .answers(&word.name, output(None, None));
            }
            TimerFired::TYPE => {
                let word: TimerFired = payload.decode()?;
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, Ok(Json::null())));
            }
            EmitFailed::TYPE => {
                let word: EmitFailed = payload.decode()?;
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, Err(word.error)));
            }
            TransactionCommitted::TYPE => {
                let word: TransactionCommitted = payload.decode()?;
                let answer = Answer::new(place, Ok(word.output));
                self.answer(&word.scope, &word.key, &word.name, answer);
            }
            TransactionFailed::TYPE => {
                let word: TransactionFailed = payload.decode()?;
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, Err(word.error)));
            }
            WaitEnded::TYPE => {
                let word: WaitEnded = payload.decode()?;
                let outcome = match word.error {
                    Some(error) => Err(error),
                    None => Json::of(&word.envelope),
                };
                self.call(&word.scope, &word.key).came = word.envelope;
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, outcome));
            }
            StepFailed::TYPE => {
                let word: StepFailed = payload.decode()?;
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, Err(word.error)));
            }
            ThreadFailed::TYPE => {
                let word: ThreadFailed = payload.decode()?;
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, Err(word.error)));
            }
            PackageFailed::TYPE => {
                let word: PackageFailed = payload.decode()?;
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, Err(word.error)));
            }
            QuestionAnswered::TYPE => {
                let word: QuestionAnswered = payload.decode()?;
                let schema = Some(word.answer_schema);
                self.answer(&word.scope, &word.key, &word.name, output(word.answer, schema));
            }
            QuestionLapsed::TYPE => {
                let word: QuestionLapsed = payload.decode()?;
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, Err(lapsed())));
            }
            UpdateTaken::TYPE => {
                let word: UpdateTaken = payload.decode()?;
                let schema = Some(word.request_schema);
                let request = output(word.request, schema);
                let took = Request::named(&word.update, word.asked);
                self.updates.entry(took.update.clone()).or_default().take(word.asked);
                let call = self.call(&word.scope, &word.key);
                call.begins_anew();
                call.took = Some(took);
                self.answer(&word.scope, &word.key, &word.name, request.asked(word.asked)?);
            }
            UpdateAnswered::TYPE => {
                let word: UpdateAnswered = payload.decode()?;
                self.call(&word.scope, &word.key).took = Some(Request::named("", word.asked));
                self.answer(&word.scope, &word.key, &word.name, Answer::new(place, Ok(Json::null())));
            }
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, scope: &str, key: &str) -> &mut Known {
        self.scopes.entry(scope.into()).or_default().call(key)
    }

    /// The first answer of a call stands: a relay may repeat one.
    fn answer(&mut self, scope: &str, key: &str, name: &str, answer: Answer) {
        let call = self.call(scope, key);
        if call.answer.is_none() {
            call.answers(name, answer);
        }
    }

    /// The starts that have no end: the call, and the `seq`.
    pub(crate) fn begun(&self) -> impl Iterator<Item = (Arc<str>, u64)> {
        let calls = self.scopes.values().flat_map(Past::iter);
        calls
            .filter(|(_, call)| call.begun > 0)
            .map(|(key, call)| (key.clone(), call.begun))
    }

    /// Takes what is known of a scope out, for the body that is about to be driven in it.
    pub(crate) fn take(&mut self, scope: &str) -> Past {
        self.scopes.remove(scope).unwrap_or_default()
    }
}
