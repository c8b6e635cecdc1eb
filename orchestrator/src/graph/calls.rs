use std::collections::HashMap;

use neuron::{
    Envelope, Error, Ledger, Result, Topic,
    store::Select,
    vocabulary::{
        Message as _,
        dialogue::{
            QuestionAnswered, QuestionAsked, QuestionLapsed, QuestionWithdrawn, UpdateAccepting, UpdateAnswered,
            UpdateReturned, UpdateTaken,
        },
        step::{
            AgentContinued, EmitCompleted, EmitFailed, ReplayOnceChanged, StepAbandoned, StepAttempted, StepCompleted,
            StepDoubted, StepFailed, StepStarted, ThreadCompleted, ThreadFailed, ThreadStarted, TimerFired,
            TimerStarted, TransactionCommitted, TransactionFailed, WaitAbandoned, WaitEnded, WaitStarted,
        },
    },
};
use serde::Deserialize;

use super::part::{Part, State};

/// The calls of one body, in the order in which they are first spoken of.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<(String, State)>,
    places: HashMap<String, usize>,
}

/// What every word on a call says.
#[derive(Deserialize)]
struct Word {
    scope: String,
    key: String,
    name: String,
}

impl Calls {
    /// Those of the body with this key; of one that has begun again, those since then.
    pub(super) fn of(ledger: &Ledger, topic: Topic, key: &str) -> Result<Self, Error> {
        let mut calls = Self::default();
        let mut scope = key.to_owned();
        for envelope in ledger.read(Select::Topic(topic)).checked().envelopes() {
            let envelope = envelope?;
            if let Some(again) = AgentContinued::read(&envelope)? {
                calls = Self::default();
                scope = again.key;
            } else if let Some(state) = spoken(&envelope) {
                let word: Word = envelope.decode()?;
                if word.scope == scope {
                    calls.note(word, state);
                }
            }
        }
        Ok(calls)
    }

    fn note(&mut self, word: Word, state: State) {
        let next = self.calls.len();
        let place = *self.places.entry(word.key).or_insert(next);
        if place == next {
            self.calls.push((word.name, state));
        } else {
            self.calls[place].1 = state;
        }
    }

    /// The state of the calls of this name, if there are any; how many are done, and how many there are.
    pub(super) fn of_name(&self, name: &str) -> (Option<State>, usize, usize) {
        let states = || {
            self.calls
                .iter()
                .filter(|(called, _)| called == name)
                .map(|(_, state)| *state)
        };
        let done = states().filter(|state| *state == State::Done).count();
        (states().max(), done, states().count())
    }

    /// All of them, calls of one name that follow one another as one.
    pub(super) fn in_turn(&self) -> Vec<Part> {
        let turns = self.calls.chunk_by(|(one, _), (next, _)| one == next);
        let part = |turn: &[(String, State)]| Part {
            name: turn[0].0.clone(),
            state: turn.iter().map(|(_, state)| *state).max().unwrap_or(State::Waiting),
            done: turn.iter().filter(|(_, state)| *state == State::Done).count(),
            calls: turn.len(),
            after: Vec::new(),
            manner: None,
        };
        turns.map(part).collect()
    }
}

/// What an envelope says of the call it is about.
fn spoken(envelope: &Envelope) -> Option<State> {
    Some(match envelope.body.kind.as_str() {
        StepStarted::TYPE
        | TimerStarted::TYPE
        | WaitStarted::TYPE
        | QuestionAsked::TYPE
        | ThreadStarted::TYPE
        | UpdateAccepting::TYPE => State::Running,
        StepAttempted::TYPE => State::Retrying,
        StepCompleted::TYPE
        | TimerFired::TYPE
        | WaitEnded::TYPE
        | QuestionAnswered::TYPE
        | QuestionLapsed::TYPE
        | ThreadCompleted::TYPE
        | UpdateTaken::TYPE
        | UpdateAnswered::TYPE
        | EmitCompleted::TYPE
        | TransactionCommitted::TYPE => State::Done,
        StepFailed::TYPE | ThreadFailed::TYPE | EmitFailed::TYPE | TransactionFailed::TYPE => State::Failed,
        StepAbandoned::TYPE | WaitAbandoned::TYPE | QuestionWithdrawn::TYPE | UpdateReturned::TYPE => State::Cancelled,
        StepDoubted::TYPE => State::InDoubt,
        ReplayOnceChanged::TYPE => State::Held,
        _ => return None,
    })
}
