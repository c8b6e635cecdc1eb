use std::{
    cell::RefCell,
    collections::BTreeMap,
    marker::PhantomData,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{Given, Input, Inputs, IntoInput, MakeCall, Outline, Row, Written};
use crate::{
    Error, ErrorKind, Json, Payload, Result,
    def::{Callable, Def, Entry, Param, Step},
    scope::{Ask, Scope},
    step::ask,
};

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
    rows: Vec<(Row, MakeCall)>,
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
    pub(super) fn new() -> Self {
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
        self.row(<F::Def as Def>::META.row(inputs), call::<F::Def>)
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
            ..<F::Def as Def>::META.row(list)
        };
        self.row(row, call::<F::Def>)
    }

    /// Bounds what an [`each`](Plan::each) does at the same time: so many calls of its step run, the rest begin as those end.
    /// Without it all of them run at once.
    ///
    /// ```
    /// use neuron::{Cx, Node, Plan, Result, plan, step};
    ///
    /// #[step]
    /// async fn pages(_cx: &Cx, book: String) -> Result<Vec<String>> {
    ///     Ok(vec![book; 100])
    /// }
    ///
    /// #[step(uses("net"))]
    /// async fn scan(_cx: &Cx, page: String) -> Result<usize> {
    ///     Ok(page.len())
    /// }
    ///
    /// #[plan]
    /// fn scanned(plan: &Plan, book: String) -> Node<Vec<usize>> {
    ///     plan.at_once(4, plan.each(scan, plan.step(pages, book)))
    /// }
    /// ```
    ///
    /// A node of another kind of row, and a bound of 0, are mistakes that the plan is refused with
    /// ([`ErrorKind::Misuse`]) where it is assigned.
    pub fn at_once<T>(&self, most: u32, each: Node<Vec<T>>) -> Node<Vec<T>> {
        let bounded = self.input(each).and_then(|input| {
            let most = NonZeroU32::new(most).ok_or("`plan.at_once` of 0 would never begin: give at least 1");
            let mut inner = self.inner.borrow_mut();
            let row = match input {
                Input::Wire(at) => Some(&mut inner.rows[at].0).filter(|row| row.each),
                _ => None,
            };
            let row = row.ok_or("`plan.at_once` bounds what `plan.each` gives, and this comes from elsewhere");
            let bounded = most.and_then(|most| row.map(|row| row.at_once = Some(most)));
            bounded.map_err(|why| Error::new(ErrorKind::Misuse, why))
        });
        self.note(bounded, ());
        each
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
            ..<F::Def as Def>::META.row(inputs)
        };
        self.row(row, call::<F::Def>)
    }

    /// An edge without a value: `later` does not start before `earlier` has ended.
    pub fn after<T, U>(&self, later: Node<T>, earlier: Node<U>) {
        let ends = self.input(later).and_then(|later| Ok((later, self.input(earlier)?)));
        let Some((later, earlier)) = self.note(ends.map(Some), None) else {
            return;
        };
        // What is given, and what is passed in, is there before any row starts.
        let Input::Wire(earlier) = earlier else { return };
        if let Input::Wire(later) = later {
            self.inner.borrow_mut().rows[later].0.after.push(earlier);
        } else {
            let message = "`plan.after` needs a step that comes later: its first argument is a value that is there from the start";
            self.note(Err(Error::new(ErrorKind::Misuse, message)), ());
        }
    }

    /// A value that is known already, as a node.
    #[allow(clippy::needless_pass_by_value, reason = "a value is handed over, as to a step")]
    pub fn value<T: Payload>(&self, value: T) -> Node<T> {
        let given = self.note(Given::of(&value), crate::Json::null().into());
        self.place(Input::Value(given))
    }

    fn row<T>(&self, row: Row, call: MakeCall) -> Node<T> {
        let mut inner = self.inner.borrow_mut();
        inner.rows.push((row, call));
        let at = inner.rows.len() - 1;
        drop(inner);
        self.place(Input::Wire(at))
    }

    pub(super) fn place<T>(&self, input: Input) -> Node<T> {
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
    pub(super) fn finish<T>(self, result: Node<T>) -> Result<Written, Error> {
        let result = self.input(result)?;
        let inner = self.inner.into_inner();
        if let Some(mistake) = inner.mistake {
            return Err(mistake);
        }
        let (rows, calls) = inner.rows.into_iter().unzip();
        Written::new(Outline { rows, result }, calls)
    }
}

impl<T> IntoInput<Plan, T> for Node<T> {
    fn into_input(self, plan: &Plan) -> Result<Input, Error> {
        plan.input(self)
    }
}

impl<T> IntoInput<Plan, Vec<T>> for Vec<Node<T>> {
    fn into_input(self, plan: &Plan) -> Result<Input, Error> {
        let inputs = self.into_iter().map(|node| plan.input(node));
        inputs.collect::<Result<_, _>>().map(Input::list)
    }
}

/// The call of one row on what flowed in, made now, so that rows of equal content keep their order.
fn call<D: Def>(scope: &Arc<Scope>, args: Vec<Json>) -> Result<Ask, Error> {
    let entry = const { &Entry::of::<D>() };
    let named = entry.meta().params.iter().map(Param::name).zip(args);
    let args = Json::of(&named.collect::<BTreeMap<_, _>>())?;
    let name = entry.meta().name;
    let args = entry
        .normalise(&args)
        .map_err(|error| error.context(format!("the plan cannot call `{name}`")))?;
    ask(scope, entry, args)
}
