//! State is never stored, it is folded.

#![cfg_attr(
    test,
    allow(
        clippy::expect_used,
        clippy::panic,
        clippy::unwrap_used,
        reason = "a test that fails is meant to panic"
    )
)]

mod clock;
mod digest;
mod error;
mod id;
mod secret;

pub mod agent;
mod bus;
pub mod canon;
pub mod def;
pub mod envelope;
pub mod fold;
pub mod graph;
pub mod ledger;
pub mod limits;
pub mod ownership;
pub mod pipeline;
pub mod plan;
pub mod schema;
pub mod scope;
pub mod step;
pub mod store;
pub mod token;
pub mod topic;
pub mod vocabulary;

pub use bus::{Bus, Lagged, Listener, TopicDeclared, Unsubscribe};
pub use canon::Json;
pub use clock::{Clock, ManualClock, Millis, SystemClock};
pub use def::{Agent, Callable, Context, Orchestrator, Payload, Step, Tool, tool};
pub use digest::{CALL_CONTEXT, Digest, DigestStream, ENVELOPE_CONTEXT, SCHEMA_CONTEXT};
pub use envelope::{Artifact, Author, Cause, Deferred, Draft, Envelope, Header, Headers, Kind, Parent, Receipt};
pub use error::{BoxError, Error, ErrorKind, Result, Terminal};
pub use fold::Fold;
pub use id::{ConversationId, ProjectId, RequestId, RunId, TokenId};
pub use ledger::Ledger;
pub use neuron_macros::{agent, guard, metered, on, orchestrator, plan, step};
pub use plan::{Node, Plan};
pub use schema::{ArtifactRef, BodyContract, EnvelopeRef, ItemRef, RunRef, Schema, SchemaRef, SchemaUse};
pub use scope::{Burn, Content};
pub use secret::Secret;
pub use step::{Call, Cx, test};
pub use store::{Append, Expectation};
pub use topic::{Contract, Pattern, Topic};

/// What the expansion of an attribute names. Not for use by hand; it may change with any version.
#[doc(hidden)]
pub mod __private {
    pub use inventory;

    pub use crate::{
        def::{Body, Def, Entry, Meta, Outcome, Param, body, kind},
        plan::{PlanEntry, outline},
    };

    /// The type behind a function's name.
    pub fn type_of<F: 'static>(_: &F) -> std::any::TypeId {
        std::any::TypeId::of::<F>()
    }
}
