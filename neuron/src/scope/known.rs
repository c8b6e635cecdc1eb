use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use super::{Committed, recorded::Answer};
use crate::{
    EnvelopeRef, Json, Millis, SchemaRef,
    vocabulary::step::{StepAttempted, StepStarted},
};

/// What a wait for an envelope is called.
pub(crate) const WAIT: &str = "$wait";
/// What a question to a person is called.
pub(crate) const ASK: &str = "$ask";
/// What the taking of an update is called.
pub(crate) const UPDATE: &str = "$update";

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
    /// On a log that is read at a resume, the `seq` of a start without an end; else 0.
    pub(crate) begun: u64,
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
    /// The request that it took, if it takes updates, or responds to.
    pub(crate) took: Option<Request>,
    /// Whether what answered it is free for another, as its body was never told.
    pub(crate) given_back: bool,
    /// Whether it was answered in this process and its body was not told.
    pub(super) untold: bool,
    /// Whether it is a thread that the log says has begun: what it called is known in a scope of its own.
    pub(super) thread: bool,
    /// The `pos` up to which what was given to it from outside was looked at.
    pub(crate) heard: Option<u64>,
    pub(crate) answer: Option<Answer>,
}

/// A request that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The name of the update.
    pub(crate) update: Arc<str>,
    /// Its `pos`.
    pub(crate) asked: u64,
}

impl Request {
    pub(super) fn named(update: &str, asked: u64) -> Self {
        Self {
            update: update.into(),
            asked,
        }
    }
}

/// What a body that lets go of a call leaves on the log: a start without an end, or an answer that nobody was told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// A step, at this attempt.
    Step(u32),
    /// A wait, and the envelope that is free again.
    Wait(Option<EnvelopeRef>),
    Question,
    /// A request that is there for another to take.
    Request(Request),
}

/// What a body leaves that has ended: the threads that are open, by key; of the other calls key, name, and what is left.
pub(super) type Rest = (Vec<Arc<str>>, Vec<(Arc<str>, String, Left)>);

/// A call of a `once` step that began and has no answer.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) name: String,
    /// Whether its body let go of it, so that nobody will settle it.
    pub(crate) let_go: bool,
}

impl Past {
    pub(crate) fn get(&self, key: &str) -> Option<&Known> {
        self.0.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Known> {
        self.0.get_mut(key)
    }

    pub(crate) fn call(&mut self, key: &str) -> &mut Known {
        self.0.entry(key.into()).or_default()
    }

    /// Forgets the calls that have no answer.
    pub(super) fn keep_answers(&mut self) {
        self.0.retain(|_, call| call.answer.is_some() && !call.given_back);
    }

    /// Lets go of everything that has no answer, or one in vain.
    pub(super) fn leave_open(&mut self) -> Rest {
        let threads = self.0.iter().filter(|(_, call)| call.thread && call.answer.is_none());
        let mut threads: Vec<_> = threads.map(|(key, _)| key.clone()).collect();
        threads.sort_unstable();
        let is_open = |call: &Known| call.answer.is_none() || call.untold;
        let open = self.0.iter_mut().filter(|(_, call)| is_open(call));
        let left = open.filter_map(|(key, call)| Some((key.clone(), call.name.clone(), call.leave()?)));
        let mut left: Vec<_> = left.collect();
        left.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
        (threads, left)
    }

    /// Its body has not run since a crash, so nobody knows whether it was told of the requests that it has not responded to:
    /// they are there for another, as they would be for its own next attempt.
    pub(super) fn doubt_requests(&mut self) {
        let responds = self.0.values().filter(|call| call.name != UPDATE);
        let responded: HashSet<u64> = responds.filter_map(|call| Some(call.took.as_ref()?.asked)).collect();
        for call in self.0.values_mut().filter(|call| call.name == UPDATE) {
            call.untold |= call
                .took
                .as_ref()
                .is_some_and(|taken| !responded.contains(&taken.asked));
        }
    }

    /// The next attempt of a step is given nothing that an earlier one gave back.
    pub(super) fn begin_attempt(&mut self) {
        self.0.values_mut().for_each(Known::begins_anew);
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
        (self.open, self.begun) = (0, 0);
    }

    /// An answer that was given back is none of this attempt.
    pub(super) fn begins_anew(&mut self) {
        if std::mem::take(&mut self.given_back) {
            (self.answer, self.came, self.took) = (None, None, None);
            (self.born, self.deadline, self.untold) = (0, None, false);
        }
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
        (self.open, self.begun) = (0, 0);
        self.doubted = None;
        self.answer = Some(answer);
    }

    /// Its question is open no more; whether it was.
    pub(super) fn withdrawn(&mut self) -> bool {
        (self.deadline, self.begun) = (None, 0);
        self.heard.take().is_some()
    }

    /// It waits no more; whether it did, or was answered in vain.
    pub(super) fn waits_no_more(&mut self) -> bool {
        if self.answer.is_some() {
            return !std::mem::replace(&mut self.given_back, true);
        }
        (self.deadline, self.begun) = (None, 0);
        std::mem::take(&mut self.born) > 0
    }

    /// A step that must never happen twice may have happened: its start stays open.
    pub(super) fn abandoned(&mut self) {
        (self.let_go, self.begun) = (true, 0);
        if !self.once {
            self.open = 0;
        }
    }

    /// The body lets go of it without having been told its answer.
    pub(super) fn leave(&mut self) -> Option<Left> {
        match &*self.name {
            WAIT => self.waits_no_more().then(|| Left::Wait(self.came.clone())),
            ASK if self.answer.is_none() => self.withdrawn().then_some(Left::Question),
            UPDATE if !self.given_back => {
                let request = self.took.clone()?;
                self.given_back = true;
                Some(Left::Request(request))
            }
            _ if self.open > 0 && !self.let_go => {
                self.abandoned();
                Some(Left::Step(self.attempts + 1))
            }
            _ => None,
        }
    }
}
