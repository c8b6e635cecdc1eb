//! What a body leaves behind that lets go of a call: that is on the log, if the call's start is.

use std::sync::Arc;

use super::{
    Manner, Scope,
    journal::{Burn, Record},
    known::{Left, Past, Rest},
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

    /// The body has ended, and may not have come again to what it had begun before a crash.
    pub(super) fn leave_open(&self) {
        let is_over = self.manner == Manner::Replayed && self.runtime.rehearsal().is_none();
        if is_over && self.runtime.stopped().is_none() {
            let rest = self.gate().past.leave_open();
            self.runtime.leave_rest(&self.id, rest);
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
        // Nobody takes it before that stands.
        if let Left::Wait(Some(came)) = left {
            self.used().free(&came);
        }
    }
}

impl Runtime {
    /// A step or a thread ends: its body may not have come again to what it had begun before a crash, and whoever let go
    /// of it has dropped its body with answers that this was not told.
    pub(crate) fn leave_open(&self, scope: &Arc<str>, past: &mut Past) {
        self.leave_rest(scope, past.leave_open());
    }

    fn leave_rest(&self, scope: &Arc<str>, (threads, calls): Rest) {
        for thread in threads {
            self.leave_unrun(&thread);
        }
        for (key, name, left) in calls {
            self.left(scope, &key, name, &left, None);
        }
    }

    /// What a step or a thread had begun before a crash, if it has not run since.
    fn leave_unrun(&self, scope: &Arc<str>) {
        let mut past = self.take_past(scope);
        past.doubt_requests();
        self.leave_open(scope, &mut past);
    }

    fn left(&self, scope: &Arc<str>, key: &Arc<str>, name: String, left: &Left, burn: Option<Burn>) {
        if let Left::Step(_) = left {
            self.leave_unrun(key);
            self.unsettled.let_go(key);
        }
        match record(scope, key, name, left) {
            Ok(record) => self.journal.defer(Record { burn, ..record }),
            Err(error) => self.stop(Stop::Refused(error)),
        }
        // Nobody takes it before that stands.
        if let Left::Request(request) = left {
            self.updates.queue(&request.update).give_back(request.asked);
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
