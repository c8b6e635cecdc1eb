use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::BoxFuture;
use neuron::{
    Callable, Error, ErrorKind, Json, Payload, Result, SchemaRef,
    def::{Def, Entry, Param, kind},
    plan::{Input, Outline, PlanEntry, PlanFn, Written, write},
    scope::Scope,
    vocabulary::{
        clearance::PlanDeclared,
        orchestration::{Expected, PackageAssigned},
    },
};

use crate::{
    package::{Claims, PackageKind},
    protocol::Planned,
};

/// What an orchestrator may assign: an `#[agent]`, a `#[plan]`, or another `#[orchestrator]`.
#[diagnostic::on_unimplemented(
    message = "this function cannot be assigned",
    label = "not an `#[agent]`, a `#[plan]` or an `#[orchestrator]`",
    note = "a `#[step]` is called by an agent or put into a plan"
)]
pub trait Assign<M>: Copy + Send + Sync + 'static {
    /// Its parameters, as a tuple.
    type Args;
    /// What a success holds.
    type Output: Payload;

    /// What is to be done.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`](neuron::ErrorKind::Misuse) for a plan without `#[plan]`.
    #[doc(hidden)]
    fn work(self) -> Result<Work, Error>;
}

/// A kind of definition that may be assigned.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a `#[step]` is not assigned",
    note = "a `#[step]` is called by an agent or put into a plan"
)]
pub trait Assignable {
    /// What the log calls it.
    const KIND: PackageKind;
}

impl Assignable for kind::Agent {
    const KIND: PackageKind = PackageKind::Agent;
}

impl Assignable for kind::Orchestrator {
    const KIND: PackageKind = PackageKind::Orchestrator;
}

/// Tells definitions from plans, for the compiler.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsDefinition;
/// Tells plans from definitions, for the compiler.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsPlan;

type Declare = Box<dyn Fn(&[Input]) -> Result<Option<Written>, Error> + Send + Sync>;

/// What a package does, without its types.
pub struct Work {
    pub(crate) name: &'static str,
    /// The names it had before.
    pub(crate) was: &'static [&'static str],
    pub(crate) kind: PackageKind,
    pub(crate) params: &'static [Param],
    pub(crate) claims: Claims,
    pub(crate) estimate: Option<Expected>,
    /// The body; none for a plan, whose rows are what runs.
    pub(crate) entry: Option<&'static Entry>,
    declare: Option<Declare>,
}

impl<M, F: Callable<M>> Assign<(AsDefinition, M)> for F
where
    <F::Def as Def>::Kind: Assignable,
{
    type Args = <F::Def as Def>::Args;
    type Output = <F::Def as Def>::Output;

    fn work(self) -> Result<Work, Error> {
        let entry = const { &Entry::of::<F::Def>() };
        let meta = entry.meta();
        let estimate = meta.estimate.map(|estimate| Expected {
            tokens: estimate.tokens,
            seconds: estimate.seconds,
            tool_calls: estimate.tool_calls,
        });
        Ok(Work {
            name: meta.name,
            was: meta.was,
            kind: <F::Def as Def>::Kind::KIND,
            params: meta.params,
            claims: meta.claims(),
            estimate,
            entry: Some(entry),
            declare: meta.outline.map(|outline| Box::new(outline) as Declare),
        })
    }
}

impl<M, F: PlanFn<M>> Assign<(AsPlan, M)> for F {
    type Args = F::Args;
    type Output = F::Output;

    fn work(self) -> Result<Work, Error> {
        let plan = PlanEntry::find::<F>()?;
        Ok(Work {
            name: plan.name(),
            was: plan.former_names(),
            kind: PackageKind::Plan,
            params: plan.params(),
            claims: Claims::default(),
            estimate: None,
            entry: None,
            declare: Some(Box::new(move |inputs| write(self, inputs))),
        })
    }
}

impl Work {
    /// The arguments with every set in one order, so that equal ones have one identity.
    pub(crate) fn in_order(&self, args: Json) -> Result<Json, Error> {
        self.entry.map_or(Ok(args.clone()), |entry| entry.form().in_order(args))
    }

    /// The schema of what it gives, where that is known.
    pub(crate) fn output_schema(&self) -> Option<SchemaRef> {
        self.entry.map(|entry| entry.form().output_schema())
    }

    /// Asks for its plan, with the inputs that are there.
    pub(crate) fn plan(&self, assigned: &PackageAssigned, inputs: &[Input]) -> (Planned, Option<Written>) {
        let written = match &self.declare {
            None => Ok(None),
            Some(declare) => match declare(inputs) {
                Ok(None) => return (Planned::Waiting, None),
                Ok(Some(written)) => Ok(Some(written)),
                Err(error) => Err(error),
            },
        };
        match written.and_then(|written| Ok((self.declared(assigned, written.as_ref())?, written))) {
            Ok((plan, written)) => (Planned::Written(plan), written),
            Err(error) => (Planned::Failed(error), None),
        }
    }

    fn declared(&self, assigned: &PackageAssigned, written: Option<&Written>) -> Result<PlanDeclared, Error> {
        let opaque = self.entry.map(|entry| entry.meta().opaque());
        let outline: Option<&Outline> = written.map(Written::outline).or(opaque.as_ref());
        let mut claims = self.claims.clone();
        if let Some(outline) = outline {
            claims.extend(&outline.claims());
        }
        Ok(PlanDeclared {
            package: assigned.key.clone(),
            token: assigned.token.clone(),
            outline: Json::of(&outline)?,
            opaque: written.is_none(),
            claims,
            estimate: self
                .estimate
                .or_else(|| written.and_then(|written| expected(written.outline()))),
        })
    }

    /// What runs, once it has its scope: the body on the arguments, or the rows of the plan.
    pub(crate) fn prepare(&self, args: Vec<Json>, written: Option<Written>) -> Prepared {
        let (name, params, entry) = (self.name, self.params, self.entry);
        Box::new(move |scope| match (entry, written) {
            (Some(entry), _) => {
                let named = params.iter().map(Param::name).zip(args);
                let body = entry.run(scope, Json::of(&named.collect::<BTreeMap<_, _>>())?);
                Ok(Box::pin(async move { body.await.map(|ran| ran.json) }))
            }
            (None, Some(written)) => Ok(Box::pin(written.run(scope, args))),
            (None, None) => {
                let why = format!("the plan `{name}` runs before it was declared");
                Err(Error::new(ErrorKind::Misuse, why))
            }
        })
    }
}

/// A body that waits for its scope.
pub(crate) type Prepared = Box<dyn FnOnce(Arc<Scope>) -> Result<BoxFuture<'static, Result<Json, Error>>, Error> + Send>;

/// What the rows expect together; `None` if none says anything.
fn expected(outline: &Outline) -> Option<Expected> {
    let estimates = outline.rows.iter().filter_map(|row| row.estimate);
    estimates.fold(None, |sum: Option<Expected>, one| {
        let sum = sum.unwrap_or_default();
        Some(Expected {
            tokens: sum.tokens.saturating_add(one.tokens),
            seconds: sum.seconds.saturating_add(one.seconds),
            tool_calls: sum.tool_calls.saturating_add(one.tool_calls),
        })
    })
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
