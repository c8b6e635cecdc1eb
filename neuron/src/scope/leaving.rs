//! What a body leaves behind that lets go of a call: that is on the log, if the call's start is.

use std::sync::Arc;

use super::{
    Scope,
    journal::{Burn, Record},
    known::{Left, Past},
    runtime::{Runtime, Stop},
};
use crate::{
    Error, Result,
    vocabulary::{
        dialogue::{QuestionWithdrawn, UpdateReturned},
        step::{StepAbandoned, WaitAbandoned},
    },
};

impl Scope {
    /// The body let go of a call. Work that is under way says itself what it leaves; of what began before a crash, nobody
    /// else does.
    pub(super) fn forget(&self, key: &Arc<str>) {
        let is_left = self.gate().forget(key);
        if is_left && self.is_let_go_by_its_body() {
            self.leave(key, || None);
        }
    }

    /// Puts on the log what the body leaves of a call whose answer it was not told. `burn` is what the call took here.
    pub(crate) fn leave(&self, key: &Arc<str>, burn: impl FnOnce() -> Option<Burn>) {
        let (left, name) = {
            let mut gate = self.gate();
            let Some(call) = gate.past.get_mut(key) else {
                return;
            };
            let Some(left) = call.leave() else {
                return;
            };
            (left, call.name.clone())
        };
        self.runtime.left(&self.id, key, name, &left, burn());
        match left {
            // Nobody takes it before that stands.
            Left::Wait(Some(came)) => self.used().free(&came),
            Left::Request(request) => self.runtime.updates.queue(&request.update).give_back(request.asked),
            Left::Step(_) => self.runtime.leave_open(key, &mut self.runtime.take_past(key)),
            Left::Wait(None) | Left::Question => {}
        }
    }
}

impl Runtime {
    /// A step has ended whose body may not have come again to what it had begun before a crash.
    pub(crate) fn leave_open(&self, scope: &Arc<str>, past: &mut Past) {
        for (key, name, left) in past.leave_open() {
            self.left(scope, &key, name, &left, None);
            if let Left::Step(_) = left {
                self.leave_open(&key, &mut self.take_past(&key));
            }
        }
    }

    fn left(&self, scope: &Arc<str>, key: &Arc<str>, name: String, left: &Left, burn: Option<Burn>) {
        if let Left::Step(_) = left {
            self.unsettled.let_go(key);
        }
        match record(scope, key, name, left) {
            Ok(record) => self.journal.defer(Record { burn, ..record }),
            Err(error) => self.stop(Stop::Refused(error)),
        }
    }
}

fn record(scope: &Arc<str>, key: &Arc<str>, name: String, left: &Left) -> Result<Record, Error> {
    let (of, call) = (scope.to_string(), key.to_string());
    match left {
        Left::Step(attempt) => {
            let abandoned = StepAbandoned {
                scope: of,
                key: call,
                name,
                attempt: *attempt,
            };
            Record::of(scope, key, &abandoned)
        }
        Left::Wait(_) => {
            let abandoned = WaitAbandoned {
                scope: of,
                key: call,
                name,
            };
            Record::of(scope, key, &abandoned)
        }
        Left::Question => {
            let withdrawn = QuestionWithdrawn {
                scope: of,
                key: call,
                name,
            };
            Record::of(scope, key, &withdrawn)
        }
        Left::Request(request) => {
            let returned = UpdateReturned {
                scope: of,
                key: call,
                name,
                update: request.update.to_string(),
                asked: request.asked,
            };
            Record::of(scope, key, &returned)
        }
    }
}
