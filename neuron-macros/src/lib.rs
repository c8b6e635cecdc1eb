//! The attributes of neuron: `#[step]`, `#[agent]`, `#[orchestrator]`, `#[plan]`, `#[on]`, `#[metered]`, `#[guard]`.
//!
//! They wire and never work: an expansion declares, names and registers, and holds no branch, no loop and no await of
//! its own. What the user wrote between the braces of a function is passed on token by token.
//!
//! The way of every attribute is parse (tokens to syntax), lower (syntax to a model, all checks) and emit (model to
//! tokens, which cannot fail). Mistakes are collected, so that one compilation shows them all.
//!
//! Use the attributes through the crates `neuron` or `orchestrator`, which re-export them with examples.

mod emit;
mod errors;
mod expand;
mod lower;
mod names;
mod parse;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]
mod tests;

use lower::Kind;
use proc_macro::TokenStream;

/// Makes a step of an `async fn`: its answer is recorded, and once recorded it never runs again.
///
/// ```text
/// /// Fetches one page.
/// #[step(uses("net"), retry(3))]
/// pub async fn fetch(cx: &Cx, /** Where the page is. */ url: Url) -> Result<Page> { … }
/// ```
///
/// expands to a function of the same name that makes the call. Its return type carries the definition, so the one
/// name `fetch` is the call, the step of a plan, the tool for a model and the entry in the registry:
///
/// ```text
/// /// Fetches one page.
/// pub fn fetch(cx: &Cx, url: Url) -> Call<'_, impl Step<Args = (Url,), Output = Page> + use<>> { … }
/// ```
///
/// The body is kept verbatim in a function inside. Doc comments of the function and of its parameters become the
/// descriptions in the schema of the tool. Attributes that callers see (`doc`, `cfg`, `deprecated`, `must_use`, lint
/// levels) stand on the outer function, all others on the body.
///
/// # Accepts
///
/// An `async fn`, free or associated, whose first parameter is its context (`cx: &Cx`), followed by at most eight
/// owned, named parameters, and which returns a `Result`. Options:
///
/// | option | says |
/// |---|---|
/// | `name = "…"` | the name on the log and as a tool, instead of that of the function |
/// | `was = "…"` | a name it had before: what was recorded under it is found by this code; may be repeated |
/// | `uses("net")`, `uses("gpu", 2)` | a resource it shares, and how much of it; may be repeated |
/// | `owns("index.db")` | a resource it needs for itself; may be repeated |
/// | `estimate(tokens = 2000, seconds = 30, tool_calls = 1)` | what it is expected to burn |
/// | `retry(3)`, `retry(3, backoff = "200ms")` | after a plain failure: how many attempts in all, how long before the second, doubled each time (from 100 ms and spread, if not said) |
/// | `retry(3, on = path)` | which plain failures are tried again: a `fn(&Error) -> bool`, asked after each attempt but the last; for the others the first one is final |
/// | `timeout = "30s"` | how long one attempt may take (`ms`, `s`, `m`, `h`, `d`) |
/// | `once` | it must not happen twice: if nobody knows whether it did, it waits for a ruling |
/// | `resolve = path` | the step that finds out whether this one did happen, and with what output |
/// | `share` | equal calls in one round run once |
/// | `ignore(parameter)` | the parameter is no part of what makes two calls equal; may be repeated |
/// | `crate = path` | where the runtime is, if the manifest does not tell |
///
/// # Refuses
///
/// A function that is not `async`, that is generic, `const`, `unsafe` or `extern`, that takes `self`, or that has no
/// context; a parameter that is borrowed, `impl Trait`, without a name or under `cfg`; a missing return type; an
/// option that is unknown, given twice, or has a wrong value. Every mistake is one message at the place of the mistake.
#[proc_macro_attribute]
pub fn step(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::definition(Kind::Step, arguments.into(), &item.into(), names::runtime()).into()
}

/// Makes an agent of an `async fn`: its body is replayed, its steps are not.
///
/// ```text
/// #[agent(plan = outline)]
/// async fn researcher(cx: &Cx, url: Url) -> Result<Summary> { … }
/// ```
///
/// expands to `fn researcher(cx: &Cx, url: Url) -> Call<'_, impl Agent<Args = (Url,), Output = Summary> + use<>>`, in
/// the same way as [`macro@step`] does.
///
/// # Accepts
///
/// The functions that [`macro@step`] accepts. Options: `plan = path` (a `#[plan]` with the same parameters and output,
/// which is what the agent declares before it runs; whether they fit is checked at compile time), `allow(unrecorded)` (see
/// below), and `name`, `was`, `uses`, `owns`, `estimate`, `crate`, written as for a step.
///
/// # Warns
///
/// A body is replayed after a crash, so it may learn only what is recorded. These calls, known by the path that is
/// written, are warned of with what to write instead: the clock (`SystemTime::now`, `Instant::now`, `Utc::now`, …), chance
/// (`rand::…`, `thread_rng`, `random`, `Uuid::new_v4`), tasks (`tokio::spawn`, `task::spawn…`, `thread::spawn`), waiting
/// (`thread::sleep`, `time::sleep`, `time::timeout`, `time::interval`), and the world outside (`fs::…`, `env::var`,
/// `reqwest::get`, `Command::new` of `process`, …). Closures, `async` blocks and the arguments of macros belong to the body;
/// a function inside it, a `#[step]` for instance, does not.
///
/// An attribute sees names and no more: a call behind another function or under a renamed import is not noticed, and a
/// module of one's own called `fs` is taken for a file system. `allow(unrecorded)` as an option of the attribute takes the
/// warnings away, and so does `#[allow(deprecated)]` on the function, for a stable compiler warns in no other way.
///
/// # Refuses
///
/// What [`macro@step`] refuses, and its other options: an agent is not retried as a whole, its steps are.
#[proc_macro_attribute]
pub fn agent(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::definition(Kind::Agent, arguments.into(), &item.into(), names::runtime()).into()
}

/// Makes an orchestrator of an `async fn`: it assigns agents, plans and other orchestrators, and nothing else does.
///
/// ```text
/// #[orchestrator]
/// async fn digest(board: &Board, urls: Vec<Url>) -> Result<Report> { … }
/// ```
///
/// expands to `fn digest(board: &Board, urls: Vec<Url>) -> Call<'_, impl Orchestrator<Args = (Vec<Url>,), Output =
/// Report> + use<>>`, in the same way as [`macro@step`] does. A board is no context for a step, so a step that nobody
/// cleared cannot be called here.
///
/// # Accepts
///
/// The functions that [`macro@step`] accepts, with `board: &Board` first. Options: `name`, `was`, `crate`, `allow(unrecorded)`.
///
/// # Warns
///
/// As [`macro@agent`] does: an orchestrator is replayed too.
///
/// # Refuses
///
/// What [`macro@step`] refuses, and its other options: resources and estimates belong to what is assigned.
#[proc_macro_attribute]
pub fn orchestrator(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::definition(Kind::Orchestrator, arguments.into(), &item.into(), names::runtime()).into()
}

/// Registers a plan: a plain function that writes down steps and lets values flow between them.
///
/// ```text
/// #[plan]
/// fn outline(plan: &Plan, url: Node<Url>) -> Node<Summary> { plan.step(summarise, plan.step(fetch, url)) }
/// ```
///
/// leaves the function as it was written and adds one entry to the registry: name, doc comment and parameters.
///
/// # Accepts
///
/// A free function that takes `plan: &Plan` first, then at most eight owned, named parameters (`Node<T>` for a value
/// that need not exist yet, `T` for one that must), and returns a `Node`. Options: `name`, `was` and `crate`, written as for
/// [`macro@step`].
///
/// # Refuses
///
/// A function that is `async`, generic, `const`, `unsafe` or `extern`, that takes `self`, or that has no plan to write
/// to; the parameters and options that [`macro@step`] refuses; a missing return type.
#[proc_macro_attribute]
pub fn plan(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::outline(arguments.into(), &item.into(), names::runtime()).into()
}

/// Makes a handler of an `async fn`: a named durable consumer of the log, which a process that serves runs.
///
/// ```text
/// #[on("orders.placed", retry(4, backoff = "500ms"))]
/// async fn ship(event: &Event, order: Order) -> Result<()> { … }
/// ```
///
/// leaves the function as it was written and adds one entry to the registry. `Neuron::serve` of the crate `orchestrator`
/// runs every entry, each on its own task; of all processes that serve one store, one runs a handler and the others stand
/// by. A message is handed out until the handler has succeeded or the message is parked, so a handler may see a message
/// again after a crash: `event.idempotency_key()` stays the same.
///
/// | the function gives | and then |
/// |---|---|
/// | `Ok(())` | the message is settled |
/// | `Ok(Append)` | the append and the handler's position are committed in one batch, exactly once in this store |
/// | an error | it is handed out again by the schedule, parked after the last time |
/// | an error of `Error::retry_after` | it is handed out again after that time |
/// | a terminal error, or the payload cannot be read | it is parked at once, with the reason |
/// | a panic | as an error |
///
/// Parked messages are shown by `neuron consumer NAME` and handed out again by `neuron redrive NAME`.
///
/// # Accepts
///
/// A free `async fn` whose first parameter is `event: &Event`, with at most one owned parameter more, which the payload of
/// the message is read as, and which returns a `Result` of `()` or `Append`. The first argument of the attribute is a topic
/// pattern: `*` is one segment, a last `**` any number of them, a last `>` one or more. Options:
///
/// | option | says |
/// |---|---|
/// | `name = "…"` | the name of the consumer, instead of that of the function |
/// | `kind("order.placed")` | only messages of this type; may be repeated |
/// | `from = start`, `from = now` | where it begins when it is first served: with the first message of the log, or (if not said) with the first that comes later. One that exists goes on where it stands |
/// | `retry(3)`, `retry(3, backoff = "2s")` | how often a message is handed out in all (5 times if not said), how long before the second time, doubled each time up to a minute (1 s, 5 s, 30 s, 2 min if not said) |
/// | `retry(3, on = path)` | after which failures it is handed out again: a `fn(&Error) -> bool`; after the others it is parked at once (past its `timeout` it is handed out again, whatever this says) |
/// | `timeout = "30s"` | how long one attempt may take; without it a handler may work as long as it likes |
/// | `in_flight = 8` | how many messages are handled or wait to be tried again at once (64 if not said); 1 keeps their order |
/// | `crate = path` | where the runtime is, if the manifest does not tell |
///
/// # Refuses
///
/// A pattern that is none; a function that is not `async`, that is generic, that takes `self`, no event or more than one
/// payload; a missing return type; the options that belong on other attributes. An attribute does not see what surrounds
/// its function: in an `impl` block it is refused by the compiler's own words. Two handlers of one name are refused when
/// the store is opened.
///
/// `#[on(stage)]`, with a path, comes with a later version, and says so.
#[proc_macro_attribute]
pub fn on(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::on(arguments.into(), &item.into(), names::runtime()).into()
}

/// Will measure the messages of a function as they pass.
///
/// # Refuses
///
/// Everything for now: the attribute belongs to the language, what it does comes with a later version. What a step
/// burns is recorded without it.
#[proc_macro_attribute]
pub fn metered(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::metered(&arguments.into(), &item.into()).into()
}

/// Will let only those messages through to a function that a check has passed.
///
/// # Refuses
///
/// Everything for now: the attribute belongs to the language, what it does comes with a later version. Until then
/// check in the body and return a terminal error.
#[proc_macro_attribute]
pub fn guard(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::guard(&arguments.into(), &item.into()).into()
}
