//! What waits for a person or for an envelope, over all runs of a store.

use std::collections::{BTreeMap, BTreeSet};

use neuron::{
    Envelope, EnvelopeRef, Error, Filter, Fold, Millis, Result, RunId, SchemaRef, TokenId,
    fold::Codec,
    token::ThreadOrder,
    vocabulary::{
        Message as _,
        clearance::ClearanceDenied,
        control::{ControlPaused, ControlResumed},
        dialogue::{QuestionAnswered, QuestionAsked, QuestionLapsed, QuestionRefused, QuestionWithdrawn},
        orchestration::{
            OrchestrationCancelled, OrchestrationCompleted, OrchestrationCreated, OrchestrationFailed, PackageAssigned,
        },
        step::{
            AgentContinued, ReplayOnceChanged, StepCompleted, StepDoubted, StepFailed, StepStarted, ThreadCompleted,
            ThreadFailed, WaitAbandoned, WaitEnded, WaitStarted,
        },
    },
};
use serde::{Deserialize, Serialize};

use crate::{account::steps_of, runs::run_of};

/// Something that does not go on by itself, or that a person should know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its run; none for work outside of any.
    pub run: Option<RunId>,
    /// Its token; none for a whole run.
    pub token: Option<TokenId>,
    /// What it is.
    #[serde(flatten)]
    pub what: What,
    /// Since when.
    pub since: Millis,
    /// The envelope that says so.
    pub said: EnvelopeRef,
}

/// What waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "what")]
pub enum What {
    /// Nobody knows whether a step has happened: `resolve` it as done, redo or fail.
    InDoubt {
        /// Its key.
        key: String,
        /// Its name.
        name: String,
        /// Why it is in doubt.
        because: String,
    },
    /// A step that must never happen twice differs from the recorded one: put the code back, or `resolve` it.
    OnceChanged {
        /// Its key.
        key: String,
        /// Its name.
        name: String,
        /// The recorded call.
        recorded: String,
    },
    /// A body asks a person: `answer` it.
    Asked {
        /// Its key.
        key: String,
        /// What is asked.
        question: String,
        /// The schema of an answer.
        answer: SchemaRef,
        /// Until when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Millis>,
        /// The `pos` up to which what was given is no answer.
        heard: u64,
    },
    /// It was paused: `resume` it.
    Paused {
        /// The key of the thread that alone is paused, with what is below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<String>,
        /// The reason given.
        because: Option<String>,
    },
    /// A body waits for an envelope. Whoever appends one lets it go on.
    Envelope {
        /// The wait's key.
        key: String,
        /// Which envelope it may be.
        filter: Filter,
        /// When it waits no longer.
        until: Option<Millis>,
    },
    /// A step that was not declared was denied what it asked for. It does not wait; its package was told.
    Denied {
        /// The step's key.
        key: String,
        /// Why.
        because: String,
    },
}

/// By run, token and place among what these wait for.
type Items = BTreeMap<(Option<RunId>, Option<TokenId>, String), Item>;

/// The items as a list, since JSON has no such keys.
mod listed {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Item, Items};

    pub(super) fn serialize<S: Serializer>(items: &Items, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(items.iter().map(|((_, _, place), item)| (place, item)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Items, D::Error> {
        let list = Vec::<(String, Item)>::deserialize(deserializer)?.into_iter();
        Ok(list
            .map(|(place, item)| ((item.run.clone(), item.token.clone(), place), item))
            .collect())
    }
}

/// What waits, and what is needed to tell when it no longer does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    #[serde(with = "listed")]
    items: Items,
    runs: BTreeMap<TokenId, RunId>,
    open: BTreeSet<RunId>,
}

impl Waiting {
    /// Everything that waits, by run and token.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.values()
    }

    fn put(&mut self, envelope: &Envelope, run: Option<RunId>, token: Option<TokenId>, key: &str, what: What) {
        if run.as_ref().is_some_and(|run| !self.open.contains(run)) {
            return;
        }
        let item = Item {
            run: run.clone(),
            token: token.clone(),
            what,
            since: envelope.at,
            said: envelope.reference(),
        };
        self.items.insert((run, token, key.into()), item);
    }

    /// The body that an envelope is about: of a package, or of a run.
    fn body_of(&self, envelope: &Envelope) -> (Option<RunId>, Option<TokenId>) {
        let token = steps_of(envelope);
        let run = match &token {
            Some(token) => self.runs.get(token).cloned(),
            None => run_of(envelope),
        };
        (run, token)
    }

    /// A run that has ended waits for nothing.
    fn end(&mut self, run: &RunId) {
        self.items.retain(|(owner, ..), _| owner.as_ref() != Some(run));
        self.runs.retain(|_, owner| owner != run);
        self.open.remove(run);
    }
}

/// Folds the whole log into what waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits;

/// The place of a pause among what one run or token waits for.
const PAUSE: &str = "";
/// How the place of a pause of one thread begins.
const PAUSED: &str = "paused ";
/// How the place of a denial begins.
const DENIED: &str = "denied ";

impl Fold for Waits {
    type State = Waiting;

    fn init(&self) -> Waiting {
        Waiting::default()
    }

    fn apply(&self, waiting: &mut Waiting, envelope: &Envelope) -> Result<(), Error> {
        match envelope.body.kind.as_str() {
            OrchestrationCreated::TYPE => waiting.open.extend(run_of(envelope)),
            PackageAssigned::TYPE => {
                if let Some(run) = run_of(envelope) {
                    let assigned: PackageAssigned = envelope.decode()?;
                    waiting.runs.insert(assigned.token, run);
                }
            }
            OrchestrationCompleted::TYPE | OrchestrationFailed::TYPE | OrchestrationCancelled::TYPE => {
                if let Some(run) = run_of(envelope) {
                    waiting.end(&run);
                }
            }
            ControlPaused::TYPE | ControlResumed::TYPE => ordered(waiting, envelope)?,
            ClearanceDenied::TYPE => denied(waiting, envelope)?,
            WaitStarted::TYPE | WaitEnded::TYPE | WaitAbandoned::TYPE => waited(waiting, envelope)?,
            QuestionAsked::TYPE
            | QuestionRefused::TYPE
            | QuestionAnswered::TYPE
            | QuestionLapsed::TYPE
            | QuestionWithdrawn::TYPE => asked(waiting, envelope)?,
            _ => step(waiting, envelope)?,
        }
        Ok(())
    }

    fn snapshot(&self) -> Option<Codec<Waiting>> {
        Some(Codec::new("waiting", 3))
    }
}

fn ordered(waiting: &mut Waiting, envelope: &Envelope) -> Result<(), Error> {
    let (run, token) = match envelope.topic.segments().collect::<Vec<_>>()[..] {
        ["orchestration", run, "control"] => (RunId::new(run).ok(), None),
        ["agent", token, "control"] => {
            let token = TokenId::new(token).ok();
            (token.as_ref().and_then(|token| waiting.runs.get(token).cloned()), token)
        }
        _ => return Ok(()),
    };
    let thread = ThreadOrder::of(envelope)?.map(|(thread, _)| thread);
    let place = thread
        .as_ref()
        .map_or(PAUSE.into(), |thread| format!("{PAUSED}{thread}"));
    match ControlPaused::read(envelope)? {
        Some(ControlPaused { because, .. }) => {
            waiting.put(envelope, run, token, &place, What::Paused { thread, because });
        }
        None => drop(waiting.items.remove(&(run, token, place))),
    }
    Ok(())
}

fn denied(waiting: &mut Waiting, envelope: &Envelope) -> Result<(), Error> {
    let denied: ClearanceDenied = envelope.decode()?;
    if let Some(key) = denied.amendment {
        let (run, because) = (run_of(envelope), denied.because);
        // Beside what the step itself may wait for: its failure, which follows, does not take this back.
        let place = format!("{DENIED}{key}");
        waiting.put(envelope, run, Some(denied.token), &place, What::Denied { key, because });
    }
    Ok(())
}

fn waited(waiting: &mut Waiting, envelope: &Envelope) -> Result<(), Error> {
    let (run, token) = waiting.body_of(envelope);
    if token.is_none() && run.is_none() {
        return Ok(());
    }
    let Keyed { key } = envelope.decode()?;
    // Beside what else may be said of the call.
    let place = format!("wait {key}");
    match WaitStarted::read(envelope)? {
        Some(WaitStarted { filter, deadline, .. }) => {
            let what = What::Envelope {
                key,
                filter,
                until: deadline,
            };
            waiting.put(envelope, run, token, &place, what);
        }
        None => drop(waiting.items.remove(&(run, token, place))),
    }
    Ok(())
}

fn asked(waiting: &mut Waiting, envelope: &Envelope) -> Result<(), Error> {
    let (run, token) = waiting.body_of(envelope);
    if let Some(asked) = QuestionAsked::read(envelope)? {
        let what = What::Asked {
            key: asked.key.clone(),
            question: asked.question,
            answer: asked.answer,
            deadline: asked.deadline,
            heard: envelope.pos,
        };
        waiting.put(envelope, run, token, &asked.key, what);
        return Ok(());
    }
    let place = (run, token, envelope.decode::<Keyed>()?.key);
    match QuestionRefused::read(envelope)? {
        Some(refused) => {
            if let Some(Item {
                what: What::Asked { heard, .. },
                ..
            }) = waiting.items.get_mut(&place)
            {
                *heard = refused.given;
            }
        }
        None => drop(waiting.items.remove(&place)),
    }
    Ok(())
}

fn step(waiting: &mut Waiting, envelope: &Envelope) -> Result<(), Error> {
    let Some(token) = steps_of(envelope) else {
        return Ok(());
    };
    let run = waiting.runs.get(&token).cloned();
    if envelope.body.kind.as_str() == AgentContinued::TYPE {
        // What the body before it waited for is over; an order stands.
        let over = |place: &str| place != PAUSE && !place.starts_with(DENIED);
        waiting
            .items
            .retain(|(_, owner, place), _| owner.as_ref() != Some(&token) || !over(place));
        return Ok(());
    }
    let settled = match envelope.body.kind.as_str() {
        StepDoubted::TYPE => {
            let StepDoubted {
                key,
                name,
                reason: because,
                ..
            } = envelope.decode()?;
            let place = key.clone();
            waiting.put(envelope, run, Some(token), &place, What::InDoubt { key, name, because });
            return Ok(());
        }
        ReplayOnceChanged::TYPE => {
            let ReplayOnceChanged {
                key, name, recorded, ..
            } = envelope.decode()?;
            let place = key.clone();
            waiting.put(
                envelope,
                run,
                Some(token),
                &place,
                What::OnceChanged { key, name, recorded },
            );
            return Ok(());
        }
        // A thread that has ended is paused no more.
        ThreadCompleted::TYPE | ThreadFailed::TYPE if !waiting.items.is_empty() => {
            format!("{PAUSED}{}", envelope.decode::<Keyed>()?.key)
        }
        StepStarted::TYPE | StepCompleted::TYPE | StepFailed::TYPE if !waiting.items.is_empty() => {
            envelope.decode::<Keyed>()?.key
        }
        _ => return Ok(()),
    };
    waiting.items.remove(&(run, Some(token), settled));
    Ok(())
}

/// The part of a step's payload that says which call it is about.
#[derive(Deserialize)]
struct Keyed {
    key: String,
}
