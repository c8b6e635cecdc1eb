use std::{any::TypeId, sync::Arc};

use futures::future::BoxFuture;

use super::{
    Args, Body, Context, Def, Encoded, Form, Meta, Payload, Ran, Resolver, Run, args, definition::normalise, form_of,
    recorded, schema_ref,
};
use crate::{
    Error, Json, Result,
    scope::{Journal, Scope, Taken, undecodable},
    secret::unread,
};

/// A definition without its types: its table and the functions that the engine calls it by.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub(crate) meta: Meta,
    form: fn() -> &'static Form,
    run: Run,
    normalise: fn(&Json) -> Result<Encoded, Error>,
    check: fn(&Json) -> Result<(), Error>,
    args: fn() -> TypeId,
    output: fn() -> TypeId,
    /// What a step gives that finds out whether this one has happened.
    found: fn() -> TypeId,
}

inventory::collect!(Entry);

impl Entry {
    /// The entry of a definition.
    pub const fn of<D: Def>() -> Self {
        Self {
            meta: D::META,
            form: form_of::<D>,
            run: |scope, args| run(const { &D::META }, D::body, scope, args),
            normalise: normalise::<D>,
            check: check::<D::Output>,
            args: TypeId::of::<D::Args>,
            output: TypeId::of::<D::Output>,
            found: TypeId::of::<Option<D::Output>>,
        }
    }

    /// What the attribute says.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The schemas of its arguments and its output.
    pub fn form(&self) -> &'static Form {
        (self.form)()
    }

    /// Its body on in-memory arguments, in `scope`; not yet polled.
    pub fn run(&self, scope: Arc<Scope>, args: Json) -> BoxFuture<'static, Result<Ran, Error>> {
        (self.run)(scope, args)
    }

    /// Arguments that came as JSON (from a model, or recorded by other code) by the present types.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema) naming the parameter that does not decode.
    pub fn normalise(&self, args: &Json) -> Result<Encoded, Error> {
        (self.normalise)(args)
    }

    /// What recorded arguments are by the present types, as far as they tell one call from another. A secret in them is
    /// no part of that.
    ///
    /// # Errors
    /// As [`Entry::normalise`].
    pub fn identity(&self, args: &Json) -> Result<Json, Error> {
        unread(|| (self.normalise)(args)).map(|args| args.identity)
    }

    /// Whether an output given from outside is one.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema) with the path that does not decode.
    pub fn check(&self, output: &Json) -> Result<(), Error> {
        (self.check)(output)
    }

    /// This step as the one that finds out about another.
    pub(super) const fn resolver(self) -> Resolver {
        Resolver {
            name: self.meta.name,
            run: self.run,
            args: self.args,
            output: self.output,
        }
    }

    /// Whether the step that `resolve` names, if any, can find out about this one.
    pub(super) fn is_resolvable(&self) -> bool {
        let fits = |step: &Resolver| (step.args)() == (self.args)() && (step.output)() == (self.found)();
        self.meta.resolve.as_ref().is_none_or(fits)
    }
}

/// Runs a body on arguments as JSON. It knows the types and not the definition, so that the compiler makes it once for
/// all that have the same.
fn run<C: Context, A: Args, O: Payload>(
    meta: &'static Meta,
    body: for<'a> fn(&'a C, A) -> Body<'a, O>,
    scope: Arc<Scope>,
    args: Json,
) -> BoxFuture<'static, Result<Ran, Error>> {
    Box::pin(async move {
        let args = args::decode::<A>(meta.params, &args)?;
        let cx = C::of(scope);
        Ran::of(&recorded(body(&cx, args).await)?)
    })
}

fn check<O: Payload>(output: &Json) -> Result<(), Error> {
    output.decode::<O>().map(drop)
}

/// A recorded answer of `name` as the present type; an upcaster is asked only where the recorded value does not decode.
///
/// # Errors
/// [`ErrorKind::ReplayDecode`](crate::ErrorKind::ReplayDecode) naming what was recorded and the present type.
pub fn present<T: Payload>(name: &str, taken: Taken, journal: &dyn Journal) -> Result<T, Error> {
    let (json, from) = (taken.json.clone(), taken.schema);
    let failed = match taken.decode() {
        Ok(output) => return Ok(output),
        Err(error) => error,
    };
    let present = schema_ref::<T>();
    let upcast = match from {
        Some(from) if from != present => journal
            .upcast(json.clone(), from, present)
            .and_then(|json| json.decode()),
        _ => Err(failed),
    };
    upcast.map_err(|error| undecodable::<T>(name, &json, &error))
}
