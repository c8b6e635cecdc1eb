use std::{
    any::{Any, TypeId},
    fmt,
    sync::Arc,
};

use serde::Serialize;
use serde_json::Value;

use super::{BoxFuture, Callable, Context as _, Def, Encoded, Form, Meta, Payload, Step, args, recorded};
use crate::{
    Error, ErrorKind, Json, Result,
    scope::{Journal, Scope, Taken},
};

/// A definition without its types: its table and the functions that the engine calls it by.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub(crate) meta: Meta,
    form: fn() -> &'static Form,
    run: fn(Arc<Scope>, Json) -> BoxFuture<'static, Result<Ran, Error>>,
    normalise: fn(&Json) -> Result<Encoded, Error>,
    check: fn(&Json) -> Result<(), Error>,
    args: fn() -> TypeId,
    output: fn() -> TypeId,
    /// What a step gives that finds out whether this one has happened.
    found: fn() -> TypeId,
}

inventory::collect!(Entry);

/// What a body gave: its recorded form, and what that form decodes to, so that it is decoded once.
pub struct Ran {
    /// The recorded form.
    pub json: Json,
    /// What it decodes to.
    pub typed: Box<dyn Any + Send>,
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

impl Ran {
    /// Records a value. What is handed on is what was recorded, so that live and replay agree.
    pub(crate) fn of<T: Payload>(output: &T) -> Result<Self, Error> {
        let recorded = Json::of(output).and_then(|json| Ok((json.decode::<T>()?, json)));
        let (typed, json) = recorded.map_err(|error| error.context("the output cannot go on the log"))?;
        Ok(Self {
            json,
            typed: Box::new(typed),
        })
    }
}

impl Entry {
    /// The entry of a definition.
    pub const fn of<D: Def>() -> Self {
        Self {
            meta: D::META,
            form: Form::of::<D>,
            run: |scope, args| {
                Box::pin(async move {
                    let args = args::decode::<D::Args>(D::META.params, &args)?;
                    let cx = D::Context::of(scope);
                    Ran::of(&recorded(D::body(&cx, args).await)?)
                })
            },
            normalise: args::normalise::<D>,
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

    /// Whether an output given from outside is one.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](crate::ErrorKind::Schema) with the path that does not decode.
    pub fn check(&self, output: &Json) -> Result<(), Error> {
        (self.check)(output)
    }

    /// A recorded output as the present type; an upcaster is asked only where the recorded value does not decode.
    pub(crate) fn present<D: Def>(&self, taken: Taken, journal: &dyn Journal) -> Result<D::Output, Error> {
        let (json, from) = (taken.json.clone(), taken.schema);
        let failed = match taken.decode() {
            Ok(output) => return Ok(output),
            Err(error) => error,
        };
        let present = self.form().output_schema();
        let upcast = match from {
            Some(from) if from != present => journal.upcast(json, from, present).and_then(|json| json.decode()),
            _ => Err(failed),
        };
        upcast.map_err(|error| {
            let name = self.meta.name;
            let message = format!("the recorded output of `{name}` does not decode as the present type: {error}");
            Error::new(ErrorKind::ReplayDecode, message)
        })
    }

    /// Whether `self` can find out if `doubted` has happened.
    pub(super) fn resolves(&self, doubted: &Self) -> bool {
        (self.args)() == (doubted.args)() && (self.output)() == (doubted.found)()
    }
}

/// What a model is told about a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// The step's name.
    pub name: &'static str,
    /// Its doc comment.
    pub description: &'static str,
    /// The schema of its arguments, with a description per parameter.
    pub input_schema: Value,
}

/// What a model is told about a step: any `#[step]` is a tool.
pub fn tool<M, F: Callable<M>>(_step: F) -> Tool
where
    F::Def: Step,
{
    let meta = <F::Def as Def>::META;
    Tool {
        name: meta.name,
        description: meta.doc,
        input_schema: Form::of::<F::Def>().args().clone(),
    }
}
