//! Steps, timers, waits, threads, packages, and what a replay finds. Every one names the scope whose body it answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{messages, present};
use crate::{EnvelopeRef, Error, Filter, Json, Millis, SchemaRef};

messages! {
    StepStarted "step.started";
    StepAttempted "step.attempted";
    StepCompleted "step.completed";
    StepFailed "step.failed";
    StepAbandoned "step.abandoned";
    StepDoubted "step.doubted";
    StepArtifact "step.artifact";
    StepProgressed "step.progressed";
    TimerStarted "timer.started";
    TimerFired "timer.fired";
    EmitCompleted "emit.completed";
    EmitFailed "emit.failed";
    TransactionCommitted "transaction.committed";
    TransactionFailed "transaction.failed";
    WaitStarted "wait.started";
    WaitEnded "wait.ended";
    WaitAbandoned "wait.abandoned";
    ThreadStarted "thread.started";
    ThreadCompleted "thread.completed";
    ThreadFailed "thread.failed";
    PackageCompleted "package.completed";
    PackageFailed "package.failed";
    AgentContinued "agent.continued";
    ReplayDiverged "replay.diverged";
    ReplayReordered "replay.reordered";
    ReplayOnceChanged "replay.once_changed";
    ReplayUnrecorded "replay.unrecorded";
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// The scope whose body made the call.
            pub scope: String,
            /// The call: 64 hex digits, `#`, the occurrence among equal calls of the scope.
            pub key: String,
            /// The name that was called.
            pub name: String,
            $($(#[$field_doc])* pub $field: $type,)*
        }
    )*};
}

words! {
    /// An attempt began. Where nothing must be known before the body acts, it rides with the next commit.
    StepStarted {
        /// Which attempt, from 1.
        attempt: u32,
        /// The arguments by parameter name, once per call. Absent on later attempts, and if they stand as artifact `args`.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        args: Option<Json>,
        /// The schema that they have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args_schema: Option<SchemaRef>,
        /// Whether the step must never happen twice.
        #[serde(default, skip_serializing_if = "is_false")]
        once: bool,
    }
    /// An attempt failed and another will be made. It is no answer.
    StepAttempted {
        /// Which attempt, from 1.
        attempt: u32,
        /// Why it failed.
        #[schemars(with = "Json")]
        error: Error,
        /// The next attempt begins no earlier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Millis>,
    }
    /// The answer of a step that did its work. It never runs again.
    StepCompleted {
        /// Which attempt, from 1.
        attempt: u32,
        /// What it gave. Absent if it stands as artifact `output`.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        output: Option<Json>,
        /// The schema that it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<SchemaRef>,
        /// Who said so, if not the step itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolved: Option<Resolved>,
    }
    /// The answer of a step that failed for good.
    StepFailed {
        /// Which attempt, from 1; 0 if none was made.
        attempt: u32,
        /// Why.
        #[schemars(with = "Json")]
        error: Error,
        /// Who said so, if not the step itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolved: Option<Resolved>,
    }
    /// The body let go of a running step, which was stopped. It is no answer.
    StepAbandoned {
        /// Which attempt, from 1.
        attempt: u32,
    }
    /// Nobody knows whether the step has happened. It waits for a ruling.
    StepDoubted {
        /// Which attempt, from 1.
        attempt: u32,
        /// What happened.
        reason: String,
    }
    /// Evidence that a body has kept; it rides as the one artifact of the body. The answer of a body that is replayed; of
    /// a step, it rides with the next commit.
    StepArtifact {}
    /// A timer was set.
    TimerStarted {
        /// When it fires, on the clock of the wall.
        deadline: Millis,
    }
    /// The answer of a timer.
    TimerFired {}
    /// The answer of a body that has said something on a topic of the program's own. Both were appended in one batch; its
    /// cause is what was said.
    EmitCompleted {}
    /// The answer of a body whose envelope was refused. Nothing was said.
    EmitFailed {
        /// Why.
        #[schemars(with = "Json")]
        error: Error,
    }
    /// The answer of a body that has changed tables of the program. It and the change are one commit.
    TransactionCommitted {
        /// What the transaction gave.
        output: Json,
    }
    /// The answer of a body whose transaction failed. Nothing of it stands. In a step that may be attempted again, a failure
    /// that is not terminal is no answer to the later attempts.
    TransactionFailed {
        /// Why.
        #[schemars(with = "Json")]
        error: Error,
    }
    /// A body waits for an envelope.
    WaitStarted {
        /// Which one it may be.
        filter: Filter,
        /// When it waits no longer, on the clock of the wall. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Millis>,
    }
    /// The answer of a body that has waited. Its cause is the envelope that came.
    WaitEnded {
        /// The envelope that came. Absent: the deadline was first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        envelope: Option<EnvelopeRef>,
        /// Why none can come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Json>")]
        error: Option<Error>,
    }
    /// The body let go of a wait. It is no answer, and after one it says that the body was never told: the envelope is free
    /// for another wait.
    WaitAbandoned {}
    /// A thread began. It rides with the next commit.
    ThreadStarted {}
    /// The answer of a thread that ended well.
    ThreadCompleted {
        /// What it gave. Absent if it stands as artifact `output`.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        output: Option<Json>,
    }
    /// The answer of a thread that failed.
    ThreadFailed {
        /// Why.
        #[schemars(with = "Json")]
        error: Error,
    }
    /// The answer of a package that did its work.
    PackageCompleted {
        /// What it gave. Absent if it stands as artifact `output`.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        output: Option<Json>,
        /// The schema that it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<SchemaRef>,
    }
    /// The answer of a package that failed.
    PackageFailed {
        /// Why.
        #[schemars(with = "Json")]
        error: Error,
    }
    /// An agent's body ended here and began again with other arguments, in the scope `key`: a resume reads nothing before
    /// it.
    AgentContinued {
        /// How often it has begun again, from 1.
        incarnation: u64,
        /// The arguments by parameter name. Absent if they stand as artifact `args`.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        args: Option<Json>,
        /// The schema that they have.
        args_schema: SchemaRef,
        /// By name of update, the `pos` of the last request that was taken.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        updates: BTreeMap<String, u64>,
        /// By name of update, the `pos` of each request up to there that was returned: it is taken first.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        returned: BTreeMap<String, Vec<u64>>,
    }
    /// An answer is on the log and the code no longer asks for it.
    ReplayDiverged {
        /// The `pos` of the answer.
        pos: u64,
    }
    /// A step ran fresh before an answer that was recorded earlier was used.
    ReplayReordered {
        /// The call whose recorded answer was used after it.
        used: String,
        /// Its name.
        used_name: String,
        /// The `pos` of that answer.
        pos: u64,
    }
    /// A fresh `once` step is held, because the log holds another of its name that the code no longer asks for.
    ReplayOnceChanged {
        /// The recorded call.
        recorded: String,
    }
}

/// A body was idle without awaiting a call: what it waits for is not on the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayUnrecorded {
    /// The scope of the body.
    pub scope: String,
}

/// How far a body is. It is ephemeral: the next one takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepProgressed {
    /// The scope of the body.
    pub scope: String,
    /// What is done, in units of the body's own.
    pub done: u64,
    /// What there is to do, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// For the person who waits.
    pub text: String,
}

/// Who settled a step in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Resolved {
    /// The step that its `resolve` names.
    Step,
    /// A ruling from outside.
    Ruling,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}
