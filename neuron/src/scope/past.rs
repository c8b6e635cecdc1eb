use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    Committed,
    incarnation::Incarnation,
    recorded::{Answer, lapsed},
};
use crate::{
    EnvelopeRef, Error, ErrorKind, Json, Millis, Result, SchemaRef,
    vocabulary::{
        Message as _,
        dialogue::{
            QuestionAnswered, QuestionAsked, QuestionLapsed, QuestionRefused, UpdateAccepting, UpdateAnswered,
            UpdateRefused, UpdateTaken,
        },
        orchestration::PackageAssigned,
        step::{
            AgentContinued, EmitCompleted, EmitFailed, PackageCompleted, PackageFailed, ReplayOnceChanged,
            StepAbandoned, StepArtifact, StepAttempted, StepCompleted, StepDoubted, StepFailed, StepStarted,
            ThreadCompleted, ThreadFailed, TimerFired, TimerStarted, WaitAbandoned, WaitEnded, WaitStarted,
        },
    },
};

/// What is on the log of a run, by scope. A resumed body is answered from it.
#[derive(Debug, Default)]
pub struct History {
    scopes: HashMap<Arc<str>, Past>,
    /// By name of update, the `pos` of the last request that was taken or refused.
    updates: HashMap<Arc<str>, u64>,
    /// The last time that the body has begun again.
    continued: Option<Incarnation>,
    /// Envelopes that were taken into account.
    taken: u64,
}

/// What is on the log of one scope. Live records change it by the same methods as those read at a resume.
#[derive(Debug, Default)]
pub struct Past(HashMap<Arc<str>, Known>);

/// What is known of one call.
#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a word of the log that stands or does not"
)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) once: bool,
    /// Whether it is a package that stands on the board.
    pub(crate) assigned: bool,
    /// Whether its arguments are on the log.
    pub(crate) told: bool,
    /// The recorded arguments, until they were compared with today's form.
    pub(crate) args: Option<Json>,
    pub(crate) args_schema: Option<SchemaRef>,
    /// The `pos` of its first start; 0 if only its end is on the log.
    pub(crate) born: u64,
    /// Starts since the last end.
    pub(crate) open: u32,
    /// Whether its body let go of it since it last began.
    pub(crate) let_go: bool,
    /// Attempts that ended.
    pub(crate) attempts: u32,
    /// The `pos` of the last end of an attempt that was no answer.
    pub(crate) attempted: u64,
    pub(crate) retry_at: Option<Millis>,
    /// How long its last failure asked to wait.
    pub(crate) retry_wait: Option<Duration>,
    /// The `pos` of a doubt that is not settled.
    pub(crate) doubted: Option<u64>,
    /// The `pos` at which it was held because another `once` call of its name is on the log.
    pub(crate) changed: Option<u64>,
    pub(crate) deadline: Option<Millis>,
    /// The envelope that answered it, if it is a wait.
    pub(crate) came: Option<EnvelopeRef>,
    /// The `pos` up to which what was given to it from outside was looked at.
    pub(crate) heard: Option<u64>,
    pub(crate) answer: Option<Answer>,
}

/// A call of a `once` step that began and has no answer.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) name: String,
    /// Whether its body let go of it, so that nobody will settle it.
    pub(crate) let_go: bool,
}

impl History {
    /// A history of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one recorded envelope into account. They come by `pos`; types that say nothing about a scope are passed
    /// over. `large` is the value that stands as an artifact beside the payload; of `step.artifact`, what names it; of
    /// `emit.completed`, the envelope that is its cause.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if the payload is not what its type says.
    pub fn add(&mut self, place: Committed, kind: &str, payload: &Json, large: Option<Json>) -> Result<(), Error> {
        self.taken += 1;
        match kind {
            AgentContinued::TYPE => {
                let word: AgentContinued = payload.decode()?;
                let args = word.args.or(large).unwrap_or_else(Json::null);
                // What came before is answered for.
                self.scopes.clear();
                self.updates = word.updates.into_iter().map(|(name, pos)| (name.into(), pos)).collect();
                self.continued = Some(Incarnation {
                    scope: word.key.into(),
                    number: word.incarnation,
                    args: (args, word.args_schema),
                    at: place.at,
                });
            }
            StepStarted::TYPE => {
                let word: StepStarted = payload.decode()?;
                let call = self.call(&word.scope, &word.key);
                call.started(&word, large, place.pos);
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
                call.deadline = Some(word.deadline);
            }
            WaitStarted::TYPE => {
                let word: WaitStarted = payload.decode()?;
                let call = self.call(&word.scope, &word.key);
                call.name = word.name;
                (call.born, call.deadline) = (place.pos, word.deadline);
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
                self.call(&word.scope, &word.key).born = 0;
            }
            QuestionAsked::TYPE => {
                let word: QuestionAsked = payload.decode()?;
                let call = self.call(&word.scope, &word.key);
                call.name = word.name;
                (call.heard, call.deadline) = (Some(place.pos), word.deadline);
            }
            QuestionRefused::TYPE => {
                let word: QuestionRefused = payload.decode()?;
                self.call(&word.scope, &word.key).heard = Some(word.given);
            }
            UpdateAccepting::TYPE => {
                let word: UpdateAccepting = payload.decode()?;
                self.call(&word.scope, &word.key).heard = Some(place.pos);
            }
            UpdateRefused::TYPE => {
                let word: UpdateRefused = payload.decode()?;
                self.updates.insert(word.update.into(), word.asked);
            }
            _ => self.add_answer(place, kind, payload, large)?,
        }
        Ok(())
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

    /// Up to where requests were taken, by name of update.
    pub(crate) fn take_updates(&mut self) -> HashMap<Arc<str>, u64> {
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
                self.updates.insert(word.update.into(), word.asked);
                self.answer(&word.scope, &word.key, &word.name, request.asked(word.asked)?);
            }
            UpdateAnswered::TYPE => {
                let word: UpdateAnswered = payload.decode()?;
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

    /// Takes what is known of a scope out, for the body that is about to be driven in it.
    pub(crate) fn take(&mut self, scope: &str) -> Past {
        self.scopes.remove(scope).unwrap_or_default()
    }
}

impl Past {
    pub(crate) fn get(&self, key: &str) -> Option<&Known> {
        self.0.get(key)
    }

    pub(crate) fn call(&mut self, key: &str) -> &mut Known {
        self.0.entry(key.into()).or_default()
    }

    /// Lets go of recorded arguments, once they were compared.
    pub(crate) fn forget_args(&mut self) {
        self.0.values_mut().for_each(|call| call.args = None);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Known)> {
        self.0.iter()
    }
}

impl Known {
    pub(crate) fn started(&mut self, word: &StepStarted, large: Option<Json>, pos: u64) {
        if self.born == 0 {
            self.born = pos;
        }
        self.name.clone_from(&word.name);
        self.once |= word.once;
        self.told = true;
        if let Some(args) = word.args.clone().or(large) {
            self.args = Some(args);
            self.args_schema = word.args_schema;
        }
        // Begun again after a doubt: somebody ruled that it had not happened.
        self.open = if self.doubted.take().is_some() {
            1
        } else {
            self.open + 1
        };
        self.retry_at = None;
        self.let_go = false;
    }

    pub(crate) fn attempted(&mut self, word: &StepAttempted, pos: u64) {
        self.attempts = self.attempts.max(word.attempt);
        self.attempted = pos;
        self.retry_at = word.retry_at;
        self.retry_wait = word.error.wait();
        self.open = 0;
    }

    /// Where its answer stands.
    pub(crate) fn answered(&self) -> Option<Committed> {
        self.answer.as_ref().map(|answer| answer.place)
    }

    /// Takes its answer up.
    pub(crate) fn answers(&mut self, name: &str, answer: Answer) {
        if self.name.is_empty() {
            name.clone_into(&mut self.name);
        }
        self.open = 0;
        self.doubted = None;
        self.answer = Some(answer);
    }

    /// A step that must never happen twice may have happened: its start stays open.
    pub(crate) fn abandoned(&mut self) {
        self.let_go = true;
        if !self.once {
            self.open = 0;
        }
    }
}
