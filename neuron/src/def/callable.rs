use serde::Serialize;
use serde_json::Value;

use super::{Context, Def, Entry, Meta, Step, form_of};
use crate::Call;

/// The link from a function's name to its definition. It stands in the return type, so `use`, an alias and a re-export
/// keep it. `M` is the parameter list.
#[diagnostic::on_unimplemented(
    message = "this function is not a `#[step]`, an `#[agent]` or an `#[orchestrator]`",
    label = "annotate it"
)]
pub trait Callable<M>: Copy + Send + Sync + 'static {
    /// The definition behind the name.
    type Def: Def;
}

macro_rules! arities {
    ($(($($A:ident),*))*) => {$(
        impl<C, F, D, $($A),*> Callable<(C, $($A,)*)> for F
        where
            C: Context,
            F: for<'a> Fn(&'a C, $($A),*) -> Call<'a, D> + Copy + Send + Sync + 'static,
            D: Def<Context = C>,
        {
            type Def = D;
        }
    )*};
}

arities! {
    ()
    (A)
    (A, B)
    (A, B, E)
    (A, B, E, G)
    (A, B, E, G, H)
    (A, B, E, G, H, I)
    (A, B, E, G, H, I, J)
    (A, B, E, G, H, I, J, K)
}

impl Meta {
    /// The step that finds out whether this one has happened: it takes the same arguments and gives `Some(output)` if
    /// it has and `None` if it has not. What it calls belongs to the doubted call, as do its
    /// [`idempotency_key`](crate::Cx::idempotency_key) and its answers.
    #[must_use]
    pub const fn resolve<M, F: Callable<M>>(self, _step: F) -> Self {
        Self {
            resolve: Some(Entry::of::<F::Def>().resolver()),
            ..self
        }
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
        input_schema: form_of::<F::Def>().args().clone(),
    }
}
