use std::any::TypeId;

use super::{Args, Body, Context, Encoded, Form, Meta, Param, Payload, args, sets::schema_of};
use crate::{Cx, Error, Json, Result};

/// The three kinds of functions that are driven.
pub mod kind {
    /// A `#[step]`: it acts; its answer is recorded once.
    #[derive(Debug)]
    pub struct Step;
    /// An `#[agent]`: its body is replayed, its steps are not.
    #[derive(Debug)]
    pub struct Agent;
    /// An `#[orchestrator]`: it alone assigns.
    #[derive(Debug)]
    pub struct Orchestrator;
}

/// One annotated function: its parameters, output, options and body. Attributes implement it; nobody else does.
#[diagnostic::on_unimplemented(
    message = "this is not a `#[step]`, an `#[agent]` or an `#[orchestrator]`",
    label = "annotate the function"
)]
pub trait Def: Sized + Send + Sync + 'static {
    /// What the first parameter refers to: [`Cx`](crate::Cx), or the board of an orchestrator.
    type Context: Context;
    /// Which of the three it is.
    type Kind;
    /// The parameters after the context, as a tuple.
    type Args: Args;
    /// What a success holds.
    type Output: Payload;
    /// What its attribute says.
    const META: Meta;

    /// Its body, not yet polled.
    fn body(cx: &Self::Context, args: Self::Args) -> Body<'_, Self::Output>;
}

/// A function with `#[step]`.
#[diagnostic::on_unimplemented(
    message = "a plan and a list of tools are made of steps, and this is not a `#[step]`",
    label = "not a `#[step]` that takes `&Cx`",
    note = "an `#[agent]` or an `#[orchestrator]` is assigned by an orchestrator: `board.assign(…)`"
)]
pub trait Step: Def<Kind = kind::Step, Context = Cx> {}

impl<D: Def<Kind = kind::Step, Context = Cx>> Step for D {}

/// A function with `#[agent]`.
#[diagnostic::on_unimplemented(
    message = "this is not an `#[agent]`",
    label = "not an `#[agent]` that takes `&Cx`",
    note = "an agent is an `async fn name(cx: &Cx, …) -> Result<…>` with `#[agent]`"
)]
pub trait Agent: Def<Kind = kind::Agent, Context = Cx> {}

impl<D: Def<Kind = kind::Agent, Context = Cx>> Agent for D {}

/// A function with `#[orchestrator]`.
#[diagnostic::on_unimplemented(
    message = "this is not an `#[orchestrator]`",
    label = "not an `#[orchestrator]`",
    note = "an orchestrator is an `async fn name(board: &Board, …) -> Result<…>` with `#[orchestrator]`"
)]
pub trait Orchestrator: Def<Kind = kind::Orchestrator> {}

impl<D: Def<Kind = kind::Orchestrator>> Orchestrator for D {}

/// The schemas of a definition.
pub fn form_of<D: Def>() -> &'static Form {
    Form::cached(TypeId::of::<D>(), const { &D::META }.params, form::<D::Args, D::Output>)
}

/// The arguments of one call in the three forms that the engine needs.
///
/// # Errors
/// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) with the path, if a value has no canonical form.
pub fn encode<D: Def>(args: &D::Args) -> Result<Encoded, Error> {
    encode_for(const { &D::META }, form_of::<D>(), args)
}

/// What arguments that came as JSON are by the present types.
pub(super) fn normalise<D: Def>(json: &Json) -> Result<Encoded, Error> {
    normalise_for::<D::Args>(const { &D::META }, form_of::<D>(), json)
}

// What follows knows the types and not the definition, so that the compiler makes it once for all that have the same.

fn form<A: Args, O: Payload>(params: &'static [Param]) -> Form {
    Form::new(params, A::schemas(), schema_of::<O>())
}

fn encode_for<A: Args>(meta: &'static Meta, form: &Form, args: &A) -> Result<Encoded, Error> {
    let encoded = args::encode(args, meta.params, form);
    encoded.map_err(|error| error.context(format!("the arguments of `{}` cannot go on the log", meta.name)))
}

fn normalise_for<A: Args>(meta: &'static Meta, form: &Form, json: &Json) -> Result<Encoded, Error> {
    encode_for(meta, form, &args::decode::<A>(meta.params, json)?)
}
