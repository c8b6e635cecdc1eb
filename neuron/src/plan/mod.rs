//! A plan is data: rows of a step and where its arguments come from. The rows that are declared are the rows that run.

mod function;
mod input;
mod outline;
mod run;

use std::{
    cell::RefCell,
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    Error, ErrorKind, Payload, Result,
    def::{Callable, Def, Entry, Step},
    graph::Graph,
};

pub use function::{Later, Now, PlanEntry, PlanFn, Slot, outline, write};
pub use input::{Given, Input, Inputs, IntoInput};
pub use outline::{Outline, Row};

/// A plan that is being written. Edges come from the values that flow: pass a [`Node`] on and there is one.
///
/// It is `&Plan` that is passed around, so that calls nest: `plan.step(summarise, plan.step(fetch, url))`.
#[derive(Debug)]
pub struct Plan {
    id: u64,
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rows: Vec<(Row, &'static Entry)>,
    places: Vec<Input>,
    /// The first mistake; the methods that hand out nodes cannot fail.
    mistake: Option<Error>,
}

/// A value to come, while a plan is being written. Copy it into as many arguments as you like.
pub struct Node<T> {
    plan: u64,
    place: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Node<T> {}

impl<T> std::fmt::Debug for Node<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({})", self.place)
    }
}

type ArgsOf<F, M> = <<F as Callable<M>>::Def as Def>::Args;
type OutputOf<F, M> = <<F as Callable<M>>::Def as Def>::Output;

impl Plan {
    fn new() -> Self {
        static PLANS: AtomicU64 = AtomicU64::new(0);
        Self {
            id: PLANS.fetch_add(1, Ordering::Relaxed),
            inner: RefCell::default(),
        }
    }

    /// Adds a step. Its edges are the nodes among its arguments.
    pub fn step<M, F: Callable<M>>(&self, _step: F, args: impl Inputs<Self, ArgsOf<F, M>>) -> Node<OutputOf<F, M>>
    where
        F::Def: Step,
    {
        let inputs = self.note(args.into_inputs(self), Vec::new());
        self.row(
            Row::new(&<F::Def as Def>::META, inputs),
            const { &Entry::of::<F::Def>() },
        )
    }

    /// The step for each element of a list whose length is known only when it runs: one declared row.
    pub fn each<M, A, F: Callable<M>>(&self, _step: F, list: Node<Vec<A>>) -> Node<Vec<OutputOf<F, M>>>
    where
        F::Def: Step + Def<Args = (A,)>,
        (A,): crate::def::Args,
    {
        let list = self.note(self.input(list).map(|input| vec![input]), Vec::new());
        let row = Row {
            each: true,
            ..Row::new(&<F::Def as Def>::META, list)
        };
        self.row(row, const { &Entry::of::<F::Def>() })
    }

    /// A step that is declared and cleared, but runs only if `condition` turns out true.
    pub fn when<M, F: Callable<M>>(
        &self,
        condition: Node<bool>,
        _step: F,
        args: impl Inputs<Self, ArgsOf<F, M>>,
    ) -> Node<Option<OutputOf<F, M>>>
    where
        F::Def: Step,
    {
        let inputs = self.note(args.into_inputs(self), Vec::new());
        let row = Row {
            when: self.note(self.input(condition).map(Some), None),
            ..Row::new(&<F::Def as Def>::META, inputs)
        };
        self.row(row, const { &Entry::of::<F::Def>() })
    }

    /// An edge without a value: `later` does not start before `earlier` has ended.
    pub fn after<T, U>(&self, later: Node<T>, earlier: Node<U>) {
        let ends = self.input(later).and_then(|later| Ok((later, self.input(earlier)?)));
        let Some((later, earlier)) = self.note(ends.map(Some), None) else {
            return;
        };
        // What is given, and what is passed in, is there before any row starts.
        let Input::Wire(earlier) = earlier else { return };
        match later {
            Input::Wire(later) => self.inner.borrow_mut().rows[later].0.after.push(earlier),
            _ => {
                let message = "`plan.after` needs a step that comes later: its first argument is a value that is there from the start";
                self.note(Err(Error::new(ErrorKind::Misuse, message)), ());
            }
        }
    }

    /// A value that is known already, as a node.
    pub fn value<T: Payload>(&self, value: T) -> Node<T> {
        let given = self.note(Given::of(&value), crate::Json::null().into());
        self.place(Input::Value(given))
    }

    fn row<T>(&self, row: Row, entry: &'static Entry) -> Node<T> {
        let mut inner = self.inner.borrow_mut();
        inner.rows.push((row, entry));
        let at = inner.rows.len() - 1;
        drop(inner);
        self.place(Input::Wire(at))
    }

    fn place<T>(&self, input: Input) -> Node<T> {
        let mut inner = self.inner.borrow_mut();
        inner.places.push(input);
        Node {
            plan: self.id,
            place: inner.places.len() - 1,
            value: PhantomData,
        }
    }

    fn input<T>(&self, node: Node<T>) -> Result<Input, Error> {
        if node.plan == self.id {
            return Ok(self.inner.borrow().places[node.place].clone());
        }
        let message =
            "a node of one plan was used in another; each call of a `#[plan]` function writes a plan of its own";
        Err(Error::new(ErrorKind::Misuse, message))
    }

    /// Keeps the first mistake and goes on with `instead`.
    fn note<T>(&self, result: Result<T, Error>, instead: T) -> T {
        result.unwrap_or_else(|error| {
            self.inner.borrow_mut().mistake.get_or_insert(error);
            instead
        })
    }

    /// The plan, written, with `result` as its output.
    fn finish<T>(self, result: Node<T>) -> Result<Written, Error> {
        let result = self.input(result)?;
        let inner = self.inner.into_inner();
        if let Some(mistake) = inner.mistake {
            return Err(mistake);
        }
        let (rows, entries): (Vec<_>, Vec<_>) = inner.rows.into_iter().unzip();
        let outline = Outline { rows, result };
        let graph = graph(&outline)?;
        Ok(Written {
            outline,
            entries,
            graph,
        })
    }
}

/// The rows and their edges. Only `plan.after` can close a cycle.
fn graph(outline: &Outline) -> Result<Graph<usize>, Error> {
    let mut graph = Graph::new();
    for at in 0..outline.rows.len() {
        graph.add_node(at);
    }
    for (at, row) in outline.rows.iter().enumerate() {
        for earlier in row.edges() {
            graph.add_edge(earlier, at).map_err(|cycle| {
                let steps: Vec<_> = cycle.nodes().iter().map(|at| outline.rows[*at].step.as_str()).collect();
                let message = format!(
                    "the plan waits for itself: `{}`; take back one `plan.after`",
                    steps.join("` → `")
                );
                Error::new(ErrorKind::Misuse, message)
            })?;
        }
    }
    Ok(graph)
}

/// A plan that was written: what is declared, and what runs.
#[derive(Clone, Debug)]
pub struct Written {
    outline: Outline,
    entries: Vec<&'static Entry>,
    graph: Graph<usize>,
}

impl Written {
    /// The declared form.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }
}
