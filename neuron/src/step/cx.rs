use std::{fmt, future::Future, pin::pin, sync::Arc, task::Poll, time::Duration};

use futures::future::poll_fn;
use uuid::Uuid;

use super::{
    artifact::artifact,
    builtin::{Due, thread, timer},
    question::Question,
    update::Updates,
};
use crate::{
    ArtifactRef, Error, ErrorKind, Millis, Payload, Result,
    def::{Context, Outcome},
    scope::{Answer, Burn, Content, Manner, MemoryJournal, Runtime, Scope},
    vocabulary::step::StepProgressed,
};

/// What a step, an agent and a thread are given. It cannot be cloned, and nothing on it assigns.
///
/// Agents spawn threads, never agents:
///
/// ```compile_fail,E0599
/// # use neuron::{Cx, Result, agent};
/// #[agent]
/// async fn helper(_cx: &Cx) -> Result<()> { Ok(()) }
/// #[agent]
/// async fn lead(cx: &Cx) -> Result<()> {
///     Ok(cx.assign(helper, ()).await?) // no method named `assign`
/// }
/// ```
///
/// It belongs to one body, so that each call in it has one place:
///
/// ```compile_fail,E0308
/// # use neuron::Cx;
/// fn keep(cx: &Cx) -> Cx {
///     cx.clone() // `Cx` is not `Clone`: this is another `&Cx`
/// }
/// ```
#[derive(Debug)]
pub struct Cx {
    scope: Arc<Scope>,
}

impl Context for Cx {
    fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    fn of(scope: Arc<Scope>) -> Self {
        Self { scope }
    }
}

impl Cx {
    /// The time of the last answer that this body was given; before the first, of the call that made the body. A replay
    /// reads the same.
    pub fn now(&self) -> Millis {
        self.scope.now()
    }

    /// The next of this body's own random numbers. A replay, and another attempt, draw the same.
    pub fn random(&self) -> u64 {
        self.scope.random()
    }

    /// An identifier of version 4, made of the next two of this body's [random](Self::random) numbers. A replay, and
    /// another attempt, get the same, so it may name what a step makes elsewhere.
    ///
    /// ```
    /// # let cx: neuron::Cx = tokio::runtime::Runtime::new().unwrap().block_on(async { neuron::test() });
    /// let (order, other) = (cx.uuid(), cx.uuid());
    /// assert_ne!(order, other);
    /// assert_eq!(order.get_version_num(), 4);
    /// ```
    pub fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.scope.random().to_le_bytes());
        bytes[8..].copy_from_slice(&self.scope.random().to_le_bytes());
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// Which attempt this is, from 1. Given as an argument it makes a nested call fresh in each attempt.
    pub fn attempt(&self) -> u32 {
        self.scope.attempt()
    }

    /// A name for this call that is the same in all its attempts and of no other call: for services that do a thing at
    /// most once per key. The same call in a fork of the run has another, so that it is done again.
    pub fn idempotency_key(&self) -> &str {
        self.scope.outside()
    }

    /// The program's shared state of a type.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if none was given.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, Error> {
        self.scope.runtime().shared().get()
    }

    /// Waits. The timer is on the log, as a moment of the wall: a restart waits for the rest, and a machine that was
    /// suspended or off finds that it has passed. A clock that is set back makes nobody wait longer than `time`. A step
    /// that is attempted again waits again.
    pub fn sleep(&self, time: Duration) -> Answer<'_, ()> {
        Answer::new(timer(&self.scope, Due::After(time)))
    }

    /// Waits until the clock of the wall says `at`, as [`sleep`](Self::sleep) does; a moment that has passed already is
    /// recorded as well. A clock that is set back makes nobody wait longer than it was to `at` when the wait, or this
    /// process, began.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// let soon = cx.now().plus(Duration::from_millis(5));
    /// cx.sleep_until(soon).await?;
    /// assert!(cx.now() >= soon);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sleep_until(&self, at: Millis) -> Answer<'_, ()> {
        Answer::new(timer(&self.scope, Due::At(at)))
    }

    /// The output of `work`, or [`ErrorKind::Timeout`] if a timer of `time` fires first. The timer is on the log, so a
    /// replay ends the same way. Calls in `work` that have not ended by then are let go of.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// let nap = cx.sleep(Duration::from_mins(1));
    /// let late = cx.timeout(Duration::from_millis(1), nap).await.unwrap_err();
    /// assert_eq!(late.kind(), neuron::ErrorKind::Timeout);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], after which a step may be attempted again; or what the timer says.
    pub async fn timeout<T>(&self, time: Duration, work: impl Future<Output = T>) -> Result<T, Error> {
        let (mut work, mut timer) = (pin!(work), self.sleep(time));
        poll_fn(|cx| {
            if let Poll::Ready(value) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(value));
            }
            pin!(&mut timer)
                .poll(cx)
                .map(|fired| Err(fired.err().unwrap_or_else(|| late(time))))
        })
        .await
    }

    /// Asks a person and waits for the answer, at no cost: `neuron waiting` lists the question, `neuron answer` answers
    /// it, also while no process runs. The schema of `T` is recorded with the question, and what does not fit it is
    /// refused. The first answer that fits stands, and a replay is given the same.
    ///
    /// With a deadline ([`Question::within`]) it gives `None` once its time is over.
    ///
    /// ```no_run
    /// # async fn show(cx: &neuron::Cx) -> neuron::Result<()> {
    /// let title = cx.ask_human::<String>("What is the report to be called?").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] for a question longer than [`QUESTION_BYTES_MAX`](crate::limits::QUESTION_BYTES_MAX).
    pub fn ask_human<T: Payload>(&self, question: impl Into<String>) -> Question<'_, T> {
        Question::new(&self.scope, question.into())
    }

    /// Takes requests from outside while this body runs (`neuron update`, or from a program): a new limit, a question
    /// about how far it is. The schemas of request and response are on the log, a request that does not fit is refused
    /// before it is taken, and each is taken once, in their order.
    ///
    /// ```
    /// use neuron::{Cx, Result, agent};
    ///
    /// #[agent]
    /// async fn counter(cx: &Cx) -> Result<u64> {
    ///     let (mut adds, mut sum) = (cx.updates::<u64, u64>("add"), 0);
    ///     while sum < 100 {
    ///         let add = adds.next().await?;
    ///         sum += add.request;
    ///         add.answer(&sum).await?;
    ///     }
    ///     Ok(sum)
    /// }
    /// # fn main() {}
    /// ```
    pub fn updates<Q: Payload, R: Payload>(&self, name: &str) -> Updates<'_, Q, R> {
        Updates::new(&self.scope, name)
    }

    /// Keeps `content` as an artifact and names it by its hash. `name` is yours, `kind` is what it is to the log, for
    /// instance `report`. Equal content is kept once.
    ///
    /// In an agent this is a call like another: a replay is told the same hash and does not read `content`. In a step its
    /// record rides with the step's end and costs no commit of its own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// let report = cx.artifact("findings.md", "report", "# Findings").await?;
    /// assert_eq!(report.0, neuron::Digest::content(b"# Findings"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the reader says; [`ErrorKind::Misuse`] for a kind that belongs to the engine, [`ErrorKind::Malformed`] for a
    /// name or kind that is empty or longer than 256 bytes.
    pub fn artifact(&self, name: &str, kind: &str, content: impl Into<Content>) -> Answer<'_, ArtifactRef> {
        artifact(&self.scope, name, kind, content.into())
    }

    /// Tells whoever watches the run that `done` of `total` is done, in units of your own; `None` if nobody knows how much
    /// there is. It is not on the log: each word takes the place of the one before, a replay keeps silent until it has
    /// come to something new, and nothing comes of one that is lost.
    ///
    /// ```
    /// # let cx: neuron::Cx = tokio::runtime::Runtime::new().unwrap().block_on(async { neuron::test() });
    /// cx.progress(3, 10, "pages read");
    /// cx.progress(3, None, "pages read");
    /// ```
    pub fn progress(&self, done: u64, total: impl Into<Option<u64>>, text: impl fmt::Display) {
        if self.scope.is_replaying() {
            return;
        }
        self.scope.runtime().journal().progress(StepProgressed {
            scope: self.scope.id().to_string(),
            done,
            total: total.into(),
            text: text.to_string(),
        });
    }

    /// Waits until this step is being cancelled: its run or agent was, or the body that called it has let go of it. A step
    /// that has asked for this once is not dropped at once, but gets
    /// [`CANCEL_GRACE`](crate::limits::CANCEL_GRACE) to clean up; then it is dropped. It makes no calls meanwhile: they give
    /// [`ErrorKind::Cancelled`]. If it still ends well, that is recorded as its output.
    ///
    /// The body of an agent, a thread or an orchestrator is stopped between its calls, has nothing to clean up that its
    /// steps do not, and is never told.
    ///
    /// ```
    /// use neuron::{Cx, Error, Result, step};
    /// # struct Lamp;
    /// # impl Lamp { fn on() -> Self { Self } async fn burnt_down(&self) {} async fn off(self) {} }
    ///
    /// #[step]
    /// async fn glow(cx: &Cx) -> Result<()> {
    ///     let lamp = Lamp::on();
    ///     tokio::select! {
    ///         () = lamp.burnt_down() => return Ok(()),
    ///         () = cx.cancelled() => {}
    ///     }
    ///     lamp.off().await;
    ///     Err(Error::terminal("put out").into())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() { glow(&neuron::test()).await.unwrap() }
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + '_ {
        self.scope.heed_parting();
        self.scope.parting()
    }

    /// Whether this step is being cancelled, for a loop that looks now and then. As [`cancelled`](Self::cancelled), it asks
    /// to be told.
    ///
    /// ```
    /// # let cx: neuron::Cx = tokio::runtime::Runtime::new().unwrap().block_on(async { neuron::test() });
    /// assert!(!cx.is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.scope.heed_parting();
        self.scope.manner() == Manner::Free && self.scope.is_parted_with()
    }

    /// Adds to what this attempt of the step took: tokens and calls of tools. It is recorded with the attempt's end,
    /// without what the steps that it called took, and its time is measured by itself. Only a step takes anything; an
    /// agent's own body awaits steps, and what is added there is counted nowhere.
    ///
    /// ```
    /// # let cx: neuron::Cx = tokio::runtime::Runtime::new().unwrap().block_on(async { neuron::test() });
    /// cx.burn(neuron::Burn { tokens_in: 812, tokens_out: 40, ..Default::default() });
    /// ```
    pub fn burn(&self, burn: Burn) {
        if self.scope.manner() == Manner::Replayed {
            tracing::warn!(scope = %self.scope.id(), ?burn, "a body that is replayed takes nothing itself: burn in a step");
        }
        self.scope.burn(burn);
    }

    /// A task of this body's own, with a context and a scope of its own. It starts when this body is idle, awaited or
    /// not, and is stopped when this body ends.
    ///
    /// It takes orders of its own (`neuron pause TOKEN --thread NAME`): paused, it and what is below it begin nothing new,
    /// while the others go on; cancelled, whoever awaits it is told so as [`ErrorKind::Cancelled`] and may go on.
    ///
    /// ```
    /// # use neuron::{Cx, Result};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: Cx = neuron::test();
    /// let sum = cx.spawn_thread("sum", async |cx: Cx| Ok::<_, neuron::Error>(cx.random() % 10 + 1));
    /// assert!(sum.await? > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn_thread<R, F>(&self, name: &str, body: impl FnOnce(Self) -> F + Send + 'static) -> Answer<'_, R::Value>
    where
        R: Outcome<Value: Payload>,
        F: Future<Output = R> + Send + 'static,
    {
        let run = move |scope| Box::pin(async move { body(Self { scope }).await.into_result() }) as _;
        Answer::new(thread::<R::Value>(&self.scope, name, Box::new(run)))
    }
}

fn late(time: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("no answer within {time:?}")).retryable()
}

/// A context for a plain test: an empty log in memory and no driver.
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> neuron::Result<()> {
/// let cx: neuron::Cx = neuron::test();
/// cx.sleep(Duration::from_millis(1)).await?;
/// assert_eq!(cx.attempt(), 1);
/// # Ok(())
/// # }
/// ```
pub fn test<C: Context>() -> C {
    let runtime = Arc::new(Runtime::new(Arc::new(MemoryJournal::default())));
    let now = runtime.journal().now();
    C::of(Scope::root(&runtime, "test", now, Manner::Undriven))
}
