use std::{
    any::{Any, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Committed;
use crate::{
    EnvelopeRef, Error, ErrorKind, Json, Millis, Result, SchemaRef,
    vocabulary::{
        Message as _,
        orchestration::PackageAssigned,
        step::{
            EmitCompleted, EmitFailed, PackageCompleted, PackageFailed, ReplayOnceChanged, StepAbandoned, StepArtifact,
            StepAttempted, StepCompleted, StepDoubted, StepFailed, StepStarted, ThreadCompleted, ThreadFailed,
            TimerFired, TimerStarted, WaitAbandoned, WaitEnded, WaitStarted,
        },
    },
};

/// What is on the log of a run, by scope. A resumed body is answered from it.
#[derive(Debug, Default)]
pub struct History(HashMap<Arc<str>, Past>);

/// What is on the log of one scope. Live records change it by the same methods as those read at a resume.
#[derive(Debug, Default)]
pub struct Past(HashMap<Arc<str>, Known>);

/// What is known of one call.
#[derive(Debug, Default)]
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
    pub(crate) answer: Option<Answer>,
}

/// The recorded answer of a call.
pub(crate) struct Answer {
    pub(crate) place: Committed,
    pub(crate) outcome: Result<Json, Error>,
    pub(crate) schema: Option<SchemaRef>,
    /// What the output decodes to, while it is fresh.
    pub(crate) typed: Option<Box<dyn Any + Send>>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({} {:?})", self.place.pos, self.outcome)
    }
}

impl Answer {
    pub(crate) fn new(place: Committed, outcome: Result<Json, Error>) -> Self {
        Self {
            place,
            outcome,
            schema: None,
            typed: None,
        }
    }
}

/// What a body is told.
pub struct Taken {
    /// The recorded output.
    pub json: Json,
    /// What it decodes to, if that is known already.
    pub typed: Option<Box<dyn Any + Send>>,
    /// The schema that it was recorded with.
    pub schema: Option<SchemaRef>,
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

impl Taken {
    /// The typed value.
    pub(crate) fn decode<T: DeserializeOwned + 'static>(self) -> Result<T, Error> {
        match self.typed.map(<Box<dyn Any + Send>>::downcast::<T>) {
            Some(Ok(typed)) => Ok(*typed),
            _ => self.json.decode(),
        }
    }
}

/// Why an answer that is on the log cannot be told to a body.
pub(crate) fn undecodable<T>(name: &str, recorded: &Json, why: &Error) -> Error {
    let (present, recorded) = (type_name::<T>(), shape(&recorded.to_value()));
    let message = format!(
        "the recorded output of `{name}` does not decode as the present type: it is {recorded}, and the code reads \
         `{present}`: {why}; put the type back, or register an upcaster"
    );
    Error::new(ErrorKind::ReplayDecode, message)
}

/// What sort of value it is, without the value.
fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "a bool".into(),
        Value::Number(_) => "a number".into(),
        Value::String(_) => "a string".into(),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) if fields.is_empty() => "an object without fields".into(),
        Value::Object(fields) => {
            let names: Vec<_> = fields.keys().take(SHAPE_FIELDS).map(String::as_str).collect();
            let more = if fields.len() > SHAPE_FIELDS { ", …" } else { "" };
            format!("an object with `{}`{more}", names.join("`, `"))
        }
    }
}

/// So many fields of a recorded object are named in a message.
const SHAPE_FIELDS: usize = 8;

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
        match kind {
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
            _ => self.add_answer(place, kind, payload, large)?,
        }
        Ok(())
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
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, scope: &str, key: &str) -> &mut Known {
        self.0.entry(scope.into()).or_default().call(key)
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
        self.0.remove(scope).unwrap_or_default()
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
        if !self.once {
            self.open = 0;
        }
    }
}
