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
pub mod consumer;
pub mod def;
pub mod doctor;
pub mod envelope;
pub mod fold;
pub mod graph;
pub mod ledger;
pub mod limits;
pub mod on;
pub mod ownership;
pub mod pipeline;
pub mod plan;
pub mod schema;
pub mod scope;
pub mod step;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod token;
pub mod topic;
pub mod transport;
pub mod vocabulary;

pub use bus::{Bus, Lagged, Listener, TopicDeclared, Unsubscribe};
pub use canon::Json;
pub use clock::{Clock, ManualClock, Millis, SystemClock};
pub use def::{Agent, Callable, Context, Orchestrator, Payload, Step, Tool, tool};
pub use digest::{CALL_CONTEXT, Digest, DigestStream, ENVELOPE_CONTEXT, SCHEMA_CONTEXT};
pub use envelope::{
    Artifact, Author, Cause, Deferred, Draft, Envelope, Filter, Header, Headers, Kind, Parent, Receipt,
};
pub use error::{BoxError, Error, ErrorKind, Result, Terminal};
pub use fold::Fold;
pub use id::{ConsumerId, ConversationId, ProjectId, RequestId, RunId, TokenId};
pub use ledger::Ledger;
/// ```
/// use neuron::{Cx, Result, agent, step};
///
/// #[step]
/// async fn fetch(_cx: &Cx, url: String) -> Result<String> {
///     Ok(format!("what {url} says"))
/// }
///
/// #[step]
/// async fn shorten(_cx: &Cx, page: String) -> Result<String> {
///     Ok(page.chars().take(4).collect())
/// }
///
/// /// Each of its steps is answered from the log once it has completed.
/// #[agent]
/// async fn researcher(cx: &Cx, url: String) -> Result<String> {
///     let page = fetch(cx, url).await?;
///     Ok(shorten(cx, page).await?)
/// }
/// # fn main() {}
/// ```
#[doc(inline)]
pub use neuron_macros::agent;
/// Until then a check stands in the body, and its refusal is final:
///
/// ```
/// use neuron::{Cx, Error, Result, step};
///
/// #[step]
/// async fn delete(_cx: &Cx, page: String) -> Result<()> {
///     if page == "index" {
///         return Err(Error::terminal("the index stays").into());
///     }
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let refused = delete(&neuron::test(), "index".into()).await.unwrap_err();
/// assert!(refused.is_terminal());
/// # }
/// ```
#[doc(inline)]
pub use neuron_macros::guard;
/// Until then a step says what it takes:
///
/// ```
/// use neuron::{Burn, Cx, Result, step};
///
/// #[step]
/// async fn ask(cx: &Cx, prompt: String) -> Result<String> {
///     cx.burn(Burn { tokens_in: prompt.len() as u64, ..Burn::default() });
///     Ok("yes".into())
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert_eq!(ask(&neuron::test(), "ready?".into()).await.unwrap(), "yes");
/// # }
/// ```
#[doc(inline)]
pub use neuron_macros::metered;
/// # Examples
///
/// ```
/// use neuron::{Error, Event, Result, on};
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     cents: u64,
/// }
///
/// /// A failure is tried again; what no attempt can mend is laid aside at once.
/// #[on("orders.placed", kind("order.placed"), retry(4, backoff = "500ms"))]
/// async fn ship(event: &Event, order: Order) -> Result<()> {
///     if order.cents == 0 {
///         return Err(Error::terminal("nobody pays for it").into());
///     }
///     println!("{} for the {}. time", event.idempotency_key(), event.attempt());
///     Ok(())
/// }
/// # fn main() {}
/// ```
#[doc(inline)]
pub use neuron_macros::on;
/// The board that it takes is of the crate `orchestrator`, whose prelude shows an example.
#[doc(inline)]
pub use neuron_macros::orchestrator;
/// ```
/// use neuron::{Cx, Node, Plan, Result, plan, step};
///
/// #[step]
/// async fn fetch(_cx: &Cx, url: String) -> Result<String> {
///     Ok(format!("what {url} says"))
/// }
///
/// #[step]
/// async fn merge(_cx: &Cx, pages: Vec<String>) -> Result<String> {
///     Ok(pages.join("\n"))
/// }
///
/// /// The pages are fetched at the same time, and merged when all are there.
/// #[plan]
/// fn digest(plan: &Plan, urls: Node<Vec<String>>) -> Node<String> {
///     plan.step(merge, plan.each(fetch, urls))
/// }
/// # fn main() {}
/// ```
#[doc(inline)]
pub use neuron_macros::plan;
/// ```
/// use neuron::{Cx, Result, step};
///
/// /// Adds up what a basket holds.
/// #[step(uses("till"), retry(3), timeout = "10s")]
/// async fn total(_cx: &Cx, /** Cents each. */ prices: Vec<u64>) -> Result<u64> {
///     Ok(prices.into_iter().sum())
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let cx: Cx = neuron::test();
/// assert_eq!(total(&cx, vec![250, 90]).await.unwrap(), 340);
/// assert_eq!(neuron::tool(total).description, "Adds up what a basket holds.");
/// # }
/// ```
#[doc(inline)]
pub use neuron_macros::step;
pub use on::Event;
pub use plan::{Node, Plan};
pub use schema::{ArtifactRef, BodyContract, EnvelopeRef, ItemRef, RunRef, Schema, SchemaRef, SchemaUse};
pub use scope::{Burn, Content};
pub use secret::Secret;
pub use step::{Call, Cx, Question, Update, Updates, Wait, Within, test};
pub use store::{Append, Expectation, Transaction};
pub use topic::{Contract, Pattern, Topic};
/// What [`Cx::uuid`] gives; the type of the crate `uuid`.
pub use uuid::Uuid;

/// What the expansion of an attribute names. Not for use by hand; it may change with any version.
#[doc(hidden)]
pub mod __private {
    pub use inventory;

    pub use crate::{
        def::{Body, Def, Entry, Meta, Outcome, Param, body, kind},
        on::{Handler, On, OnMeta},
        plan::{PlanEntry, outline},
    };

    /// The type behind a function's name.
    pub fn type_of<F: 'static>(_: &F) -> std::any::TypeId {
        std::any::TypeId::of::<F>()
    }
}
