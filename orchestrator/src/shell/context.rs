use std::{fmt, sync::Arc, time::Duration};

use neuron::{
    Context, Cx, Envelope, Filter, Millis, Payload, Question, Result, Uuid, Wait,
    plan::{Input, Inputs, IntoInput},
    scope::{Answer, Scope},
};

use super::{Assign, Package, body::Body};

/// What an orchestrator is given: the one place where work is assigned.
///
/// It is no [`Cx`], so an orchestrator cannot run a step that nobody cleared:
///
/// ```compile_fail
/// # use orchestrator::prelude::*;
/// #[step]
/// async fn pay(_cx: &Cx, cents: u64) -> Result<u64> { Ok(cents) }
/// #[orchestrator]
/// async fn shop(board: &Board, cents: u64) -> Result<u64> {
///     Ok(pay(board, cents).await?) // expected `&Cx`, found `&Board`
/// }
/// ```
pub struct Board {
    cx: Cx,
    body: Arc<Body>,
}

impl Context for Board {
    fn scope(&self) -> &Arc<Scope> {
        self.cx.scope()
    }

    fn of(scope: Arc<Scope>) -> Self {
        let body = Arc::new(Body::new(scope.clone()));
        let idle = Arc::downgrade(&body);
        scope.on_idle(Arc::new(move |_| {
            if let Some(body) = idle.upgrade() {
                body.flush();
            }
        }));
        Self {
            cx: Cx::of(scope),
            body,
        }
    }
}

impl Board {
    /// Lays a package on the board: an agent, a plan, or another orchestrator. Nothing runs before the board is cleared,
    /// which is when this body can go no further without an answer.
    ///
    /// Each argument is a value, or a [`Package`] whose output it will be: an edge.
    pub fn assign<M, A: Assign<M>>(&self, what: A, args: impl Inputs<Self, A::Args>) -> Package<A::Output> {
        let laid = args
            .into_inputs(self)
            .and_then(|inputs| self.body.lay(what.work()?, inputs));
        Package::new(&self.body, laid)
    }

    /// The time of the last answer that this body was given; before the first, of the run's or package's beginning. A
    /// replay reads the same.
    pub fn now(&self) -> Millis {
        self.cx.now()
    }

    /// The next of this body's own random numbers. A replay draws the same.
    pub fn random(&self) -> u64 {
        self.cx.random()
    }

    /// Waits. The timer is on the log: a restart waits for the rest.
    pub fn sleep(&self, time: Duration) -> Answer<'_, ()> {
        self.cx.sleep(time)
    }

    /// An identifier made of this body's own random numbers, as [`Cx::uuid`].
    pub fn uuid(&self) -> Uuid {
        self.cx.uuid()
    }

    /// Waits until the clock of the wall says `at`, as [`Cx::sleep_until`].
    pub fn sleep_until(&self, at: Millis) -> Answer<'_, ()> {
        self.cx.sleep_until(at)
    }

    /// Waits for an envelope, as [`Cx::wait_for`]: a run that waits for a decision from outside costs memory alone.
    ///
    /// ```
    /// use orchestrator::prelude::*;
    ///
    /// #[orchestrator]
    /// async fn order(board: &Board, id: u64) -> Result<String> {
    ///     let approved = Filter::on("approvals").of_type("order.approved").payload("/order", &id);
    ///     Ok(board.wait_for(approved).await?.author.to_string())
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// As [`Cx::wait_for`].
    pub fn wait_for(&self, what: impl Into<Filter>) -> Wait<'_, Envelope> {
        self.cx.wait_for(what)
    }

    /// As [`wait_for`](Self::wait_for), until a timer of `time` fires; `None` if none was committed by then.
    ///
    /// # Errors
    /// As [`Cx::wait_for`].
    pub fn wait_within(&self, what: impl Into<Filter>, time: Duration) -> Wait<'_, Option<Envelope>> {
        self.cx.wait_within(what, time)
    }

    /// Asks a person and waits for the answer, at no cost: see [`Cx::ask_human`].
    ///
    /// ```
    /// # use orchestrator::prelude::*;
    /// #[orchestrator]
    /// async fn release(board: &Board, version: String) -> Result<bool> {
    ///     Ok(board.ask_human::<bool>(format!("Release {version}?")).await?)
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// As [`Cx::ask_human`].
    pub fn ask_human<T: Payload>(&self, question: impl Into<String>) -> Question<'_, T> {
        self.cx.ask_human(question)
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // What was assigned and never awaited still runs.
        self.body.flush();
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board")
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

impl<T> IntoInput<Board, T> for Package<T> {
    fn into_input(self, board: &Board) -> Result<Input, neuron::Error> {
        (&self).into_input(board)
    }
}

impl<T> IntoInput<Board, T> for &Package<T> {
    fn into_input(self, board: &Board) -> Result<Input, neuron::Error> {
        self.place_on(&board.body).map(Input::Wire)
    }
}

impl<T> IntoInput<Board, Vec<T>> for Vec<Package<T>> {
    fn into_input(self, board: &Board) -> Result<Input, neuron::Error> {
        self.as_slice().into_input(board)
    }
}

impl<T> IntoInput<Board, Vec<T>> for &Vec<Package<T>> {
    fn into_input(self, board: &Board) -> Result<Input, neuron::Error> {
        self.as_slice().into_input(board)
    }
}

impl<T> IntoInput<Board, Vec<T>> for &[Package<T>] {
    fn into_input(self, board: &Board) -> Result<Input, neuron::Error> {
        let places = self.iter().map(|package| package.place_on(&board.body));
        places.collect::<Result<_, _>>().map(Input::Wires)
    }
}
