use std::{
    any::TypeId,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{Input, Node, Plan, Written};
use crate::{
    Error, ErrorKind, Payload, Result,
    def::{Def, Param},
    scope::panicked,
};

/// How a `#[plan]` function takes an argument: as a `T`, which must be there when the plan is written and may be
/// branched on, or as a [`Node<T>`](Node), which need not be.
#[diagnostic::on_unimplemented(
    message = "a plan cannot take a `{Self}`",
    label = "expected a value that can go on the log, or a `Node` of one"
)]
pub trait Slot<K>: Sized {
    /// What flows in.
    type Value: Payload;

    /// The argument at place `at`; `None` if its value is still to come.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if the value does not decode.
    #[doc(hidden)]
    fn take(plan: &Plan, at: usize, input: &Input) -> Result<Option<Self>, Error>;
}

/// The value is needed when the plan is written.
#[derive(Debug)]
pub struct Now;
/// The value may come later.
#[derive(Debug)]
pub struct Later;

impl<T: Payload> Slot<Now> for T {
    type Value = T;

    fn take(_: &Plan, at: usize, input: &Input) -> Result<Option<Self>, Error> {
        let Input::Value(given) = input else {
            return Ok(None);
        };
        let value = given.revealed().decode();
        value
            .map(Some)
            .map_err(|error| error.context(format!("argument {at} of the plan does not decode")))
    }
}

impl<T: Payload> Slot<Later> for Node<T> {
    type Value = T;

    fn take(plan: &Plan, at: usize, _: &Input) -> Result<Option<Self>, Error> {
        // Declared the same whether its value is there or not, so that a restart declares nothing new.
        Ok(Some(plan.place(Input::Param(at))))
    }
}

/// A `#[plan]` function, by its shape.
#[diagnostic::on_unimplemented(
    message = "this function is not a `#[plan]`",
    label = "not a `#[plan]` function",
    note = "expected `fn name(plan: &Plan, input: T or Node<T>, …) -> Node<Output>` with at most 8 inputs"
)]
pub trait PlanFn<M>: Copy + Send + Sync + 'static {
    /// What flows in, as a tuple.
    type Args;
    /// What flows out.
    type Output: Payload;

    /// Calls it; `None` if it reads a value that is still to come.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] if an argument does not decode.
    #[doc(hidden)]
    fn call(self, plan: &Plan, inputs: &[Input]) -> Result<Option<Node<Self::Output>>, Error>;
}

macro_rules! plans {
    ($(($($P:ident $K:ident $i:tt),*))*) => {$(
        impl<F, Out: Payload, $($P, $K),*> PlanFn<(Plan, Out, $($P, $K),*)> for F
        where
            F: Fn(&Plan, $($P),*) -> Node<Out> + Copy + Send + Sync + 'static,
            $($P: Slot<$K>),*
        {
            type Args = ($($P::Value,)*);
            type Output = Out;

            #[allow(unused_variables, reason = "of no use without parameters")]
            fn call(self, plan: &Plan, inputs: &[Input]) -> Result<Option<Node<Out>>, Error> {
                Ok(Some(self(plan, $(match $P::take(plan, $i, &inputs[$i])? {
                    Some(argument) => argument,
                    None => return Ok(None),
                }),*)))
            }
        }
    )*};
}

plans! {
    ()
    (A KA 0)
    (A KA 0, B KB 1)
    (A KA 0, B KB 1, C KC 2)
    (A KA 0, B KB 1, C KC 2, D KD 3)
    (A KA 0, B KB 1, C KC 2, D KD 3, E KE 4)
    (A KA 0, B KB 1, C KC 2, D KD 3, E KE 4, G KG 5)
    (A KA 0, B KB 1, C KC 2, D KD 3, E KE 4, G KG 5, H KH 6)
    (A KA 0, B KB 1, C KC 2, D KD 3, E KE 4, G KG 5, H KH 6, I KI 7)
}

/// Writes the plan of a function for the given inputs; `None` while it reads a value that is still to come.
///
/// # Errors
/// [`ErrorKind::Misuse`] for a plan that waits for itself or mixes nodes of two plans, [`ErrorKind::Malformed`] for a
/// value that cannot go on the log, [`ErrorKind::Panicked`] if the function panics.
pub fn write<M, F: PlanFn<M>>(function: F, inputs: &[Input]) -> Result<Option<Written>, Error> {
    let plan = Plan::new();
    let called = catch_unwind(AssertUnwindSafe(|| function.call(&plan, inputs)));
    let node = called.map_err(|panic| panicked(panic.as_ref()))?;
    node?.map(|node| plan.finish(node)).transpose()
}

/// Writes the plan that `#[agent(plan = …)]` names. The bounds refuse, at compile time, a plan for other inputs or
/// another output than the agent's.
///
/// # Errors
/// As [`write()`].
pub fn outline<D: Def, M, F>(function: F, inputs: &[Input]) -> Result<Option<Written>, Error>
where
    F: PlanFn<M, Args = D::Args, Output = D::Output>,
{
    write(function, inputs)
}

/// What `#[plan]` registers: words. The function itself stays as it was written.
#[derive(Debug)]
pub struct PlanEntry {
    name: &'static str,
    was: &'static [&'static str],
    doc: &'static str,
    file: &'static str,
    line: u32,
    params: &'static [Param],
    function: fn() -> TypeId,
}

inventory::collect!(PlanEntry);

impl PlanEntry {
    /// The entry of the function whose type `function` gives.
    pub const fn new(
        name: &'static str,
        doc: &'static str,
        file: &'static str,
        line: u32,
        params: &'static [Param],
        function: fn() -> TypeId,
    ) -> Self {
        Self {
            name,
            was: &[],
            doc,
            file,
            line,
            params,
            function,
        }
    }

    /// The names it had before.
    #[must_use]
    pub const fn was(self, was: &'static [&'static str]) -> Self {
        Self { was, ..self }
    }

    /// The names it had before: what was recorded under them is its own.
    pub fn former_names(&self) -> &'static [&'static str] {
        self.was
    }

    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its doc comment.
    pub fn doc(&self) -> &'static str {
        self.doc
    }

    /// File and line where it is written.
    pub fn place(&self) -> (&'static str, u32) {
        (self.file, self.line)
    }

    /// Its parameters after the plan, in order.
    pub fn params(&self) -> &'static [Param] {
        self.params
    }

    /// The entry of a function, if it has `#[plan]`.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if it has not.
    pub fn find<F: 'static>() -> Result<&'static Self, Error> {
        let wanted = TypeId::of::<F>();
        let mut all = inventory::iter::<Self>.into_iter();
        all.find(|entry| (entry.function)() == wanted).ok_or_else(|| {
            let name = std::any::type_name::<F>();
            let message = format!("`{name}` is not registered as a plan; put `#[plan]` above it");
            Error::new(ErrorKind::Misuse, message)
        })
    }
}
