use std::{any::TypeId, sync::Arc};

use futures::future::BoxFuture;

use super::{
    Context as _, Def, Encoded, Form, Meta, Payload, Ran, Resolver, Run, args, definition::normalise, form_of,
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
            run: |scope, args| {
                Box::pin(async move {
                    let args = args::decode::<D::Args>(D::META.params, &args)?;
                    let cx = D::Context::of(scope);
                    Ran::of(&recorded(D::body(&cx, args).await)?)
                })
            },
            normalise: normalise::<D>,
            check: |output| output.decode::<D::Output>().map(drop),
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

    /// A recorded output as the present type.
    pub(crate) fn present<D: Def>(&self, taken: Taken, journal: &dyn Journal) -> Result<D::Output, Error> {
        present(self.meta.name, taken, journal)
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
