use std::{
    collections::HashMap,
    fmt,
    future::IntoFuture,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use neuron::{
    Callable, Envelope, Error, ErrorKind, Ledger, Orchestrator, Pattern, Result, RunId,
    def::{Args, Def, Entry},
    ledger::From,
    store::Point,
    testing::{Cassette, Cut, Failing, Faults, PausedClock, Standing},
    topic::catalog,
};

use super::place::Place;
use crate::{Board, Builder, Neuron, Run, board::facts, fact::Fact};

/// A runtime in memory whose time stands still until the test moves it, whose runs have the same ids each time, and in
/// which steps fail, wait and crash as the test says.
///
/// It belongs into a `#[tokio::test]` without a flavor: a runtime of one thread.
///
/// ```standalone_crate
/// use std::time::Duration;
/// use orchestrator::{prelude::*, testing::{Kit, assert_log}};
///
/// #[step(retry(2, backoff = "1h"))]
/// async fn fetch(_cx: &Cx, url: String) -> Result<usize> {
///     Ok(url.len())
/// }
///
/// #[agent]
/// async fn reader(cx: &Cx, url: String) -> Result<usize> {
///     Ok(fetch(cx, url).await?)
/// }
///
/// #[orchestrator]
/// async fn read(board: &Board, url: String) -> Result<usize> {
///     Ok(board.assign(reader, url).await?)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let kit = Kit::new().await?;
/// kit.fail("fetch").on_attempt(1).with("busy");
/// let running = kit.run(read, "a.b".into()).start().await?;
/// kit.reached("step.attempted", "fetch").await?;
/// kit.advance(Duration::from_hours(1)).await;
/// assert_eq!(running.await?, 3);
/// assert_log!(kit.ledger(), r#"
///     step.started    fetch attempt=1 args={"url":"a.b"}
///     step.attempted  fetch
///     step.started    fetch attempt=2
///     step.completed  fetch output=3
/// "#);
/// # Ok(())
/// # }
/// ```
pub struct Kit {
    builder: Box<dyn Fn() -> Builder + Send + Sync>,
    place: Place,
    clock: Arc<PausedClock>,
    standing: Standing,
    faults: Faults,
    cut: Arc<Cut>,
    neuron: Neuron,
    /// How many runs of an orchestrator were begun without an id.
    runs: Mutex<HashMap<&'static str, u64>>,
}

impl Kit {
    /// A runtime of the definitions that are linked, without shared state.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] outside a tokio runtime of one thread, or if two linked definitions have one name.
    pub async fn new() -> Result<Self, Error> {
        Self::with(Neuron::builder).await
    }

    /// A runtime that is set up as the program's own: shared state, definitions, strictness. It is asked for again at each
    /// [`Kit::restart`], as a new process would set itself up.
    ///
    /// ```standalone_crate
    /// use orchestrator::{prelude::*, testing::Kit};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// struct Greeting(&'static str);
    /// let kit = Kit::with(|| Neuron::builder().state(Greeting("hello"))).await?;
    /// assert!(kit.neuron().recover().await?.here.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kit::new`].
    pub async fn with(builder: impl Fn() -> Builder + Send + Sync + 'static) -> Result<Self, Error> {
        let clock = PausedClock::new()?;
        let (faults, cut, mut place) = (Faults::new(), Cut::at(Point::AfterCommit, 0), Place::memory());
        let standing = Standing::begin();
        let neuron = place.open(builder(), clock.clone(), &faults, &cut).await?;
        Ok(Self {
            builder: Box::new(builder),
            place,
            clock,
            standing,
            faults,
            cut,
            neuron,
            runs: Mutex::default(),
        })
    }

    /// The runtime of the present process.
    pub fn neuron(&self) -> &Neuron {
        &self.neuron
    }

    /// The log of the present process.
    pub fn ledger(&self) -> &Ledger {
        self.neuron.ledger()
    }

    /// A run of an orchestrator, as [`Neuron::run`] gives it. Without another id it is called by the orchestrator's name and
    /// a number from 1 on, which begins anew at a restart: the same test names the same runs.
    pub fn run<M, F>(
        &self,
        orchestrator: F,
        args: <<F::Def as Def>::Args as Args>::Bare,
    ) -> Run<<F::Def as Def>::Output>
    where
        F: Callable<M>,
        F::Def: Orchestrator + Def<Context = Board>,
    {
        let name = const { &Entry::of::<F::Def>() }.meta().name;
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let number = runs.entry(name).or_default();
        *number += 1;
        self.neuron.run(orchestrator, args).id(format!("{name}-{number}"))
    }

    /// Moves the time: of timers, waits, timeouts and of what the log says. A timer that is set after it counts from there,
    /// so of two sleeps in a row each needs its own; [`Kit::reached`] waits until the next one is set.
    pub async fn advance(&self, time: Duration) {
        tokio::time::advance(time).await;
    }

    /// Lets the time pass by itself while `work` is awaited: whenever nothing else is to be done, it jumps to the next
    /// timer, for all kits of the test. For a run of which only the end matters; where a timeout races with work, move the
    /// time by hand.
    ///
    /// ```standalone_crate
    /// use std::time::Duration;
    /// use orchestrator::{prelude::*, testing::Kit};
    ///
    /// #[agent]
    /// async fn sleeper(cx: &Cx) -> Result<u32> {
    ///     for _ in 0..7 {
    ///         cx.sleep(Duration::from_hours(24)).await?;
    ///     }
    ///     Ok(7)
    /// }
    ///
    /// #[orchestrator]
    /// async fn week(board: &Board) -> Result<u32> {
    ///     Ok(board.assign(sleeper, ()).await?)
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let kit = Kit::new().await?;
    /// assert_eq!(kit.skip_time(kit.run(week, ())).await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn skip_time<W: IntoFuture>(&self, work: W) -> W::Output {
        let work = work.into_future();
        let _going_on = self.standing.let_go_on();
        work.await
    }

    /// Lets the step of this name fail in place of its body: `kit.fail("fetch").on_attempt(2).with(error)`, or
    /// `.always()`.
    pub fn fail(&self, step: impl Into<String>) -> Failing<'_> {
        self.faults.fail(step)
    }

    /// Lets each attempt of the step of this name take so much longer.
    pub fn delay(&self, step: impl Into<String>, time: Duration) {
        self.faults.delay(step, time);
    }

    /// Answers every step from a run that is recorded in another log, in place of its body: a run of production as a
    /// fixture, in which nothing outside is touched. A call is known by its name and its arguments; one that the recorded
    /// run did not make fails, so code that has changed what it asks for is seen. Blocks.
    ///
    /// ```standalone_crate
    /// use orchestrator::{prelude::*, testing::Kit};
    ///
    /// #[step]
    /// async fn price(cx: &Cx, what: String) -> Result<u64> {
    ///     Ok(*cx.state::<u64>()?)
    /// }
    ///
    /// #[agent]
    /// async fn buyer(cx: &Cx, what: String) -> Result<u64> {
    ///     Ok(price(cx, what).await? * 2)
    /// }
    ///
    /// #[orchestrator]
    /// async fn buy(board: &Board, what: String) -> Result<u64> {
    ///     Ok(board.assign(buyer, what).await?)
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// // Else a store that was copied from where it happened: `Ledger::open("fixture.db", …)`.
    /// let real = Kit::with(|| Neuron::builder().state(21_u64)).await?;
    /// real.run(buy, "ink".into()).id("r").await?;
    ///
    /// let kit = Kit::new().await?;
    /// kit.play(real.ledger(), &RunId::new("r")?)?;
    /// assert_eq!(kit.run(buy, "ink".into()).await?, 42);
    /// assert!(kit.faults().unplayed().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the log has no such run; a kind of the disk; [`ErrorKind::Corrupt`] for a record that is
    /// not the one that was written.
    pub fn play(&self, recorded: &Ledger, run: &RunId) -> Result<(), Error> {
        let mut topics = Vec::new();
        for (_, fact) in facts(recorded, run)? {
            if let Fact::Assigned(assigned) = fact {
                topics.push(catalog::steps(&assigned.token));
            }
        }
        if topics.is_empty() {
            let why = format!("the log to be played has no run `{run}`, or none that has assigned anything");
            return Err(Error::new(ErrorKind::NotFound, why));
        }
        self.faults.play(Cassette::of(recorded, topics)?);
        Ok(())
    }

    /// The faults, and which attempts of steps have begun, in all processes of this kit.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Waits until an envelope of this type stands on the log whose payload has this `name`; gives the first one.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn reached(&self, kind: &str, name: &str) -> Result<Envelope, Error> {
        let mut all = self.ledger().subscribe(Pattern::new("**")?, From::Start)?;
        loop {
            let envelope = all.next().await?;
            let payload = envelope.body.payload.as_ref().map(neuron::Json::to_value);
            let named = payload.is_some_and(|payload| payload["name"] == name);
            if envelope.body.kind.as_str() == kind && named {
                return Ok(envelope);
            }
        }
    }

    /// Crashes the process after the `commit`th commit from now on, counted from 1: nothing more is committed, and no body
    /// of a step is polled any more. Wait for it with [`Kit::crashed`].
    pub fn crash_after_commit(&self, commit: u64) {
        self.cut.after(commit);
    }

    /// Waits for the crash.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if none was asked for.
    pub async fn crashed(&self) -> Result<(), Error> {
        if !self.cut.is_set() {
            let why = "no crash was asked for: call `crash_after_commit` first";
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        self.cut.fallen().await;
        Ok(())
    }

    /// Lets go of the present process as a crash would and opens its log again, as the next process does. What was not
    /// committed is gone; the time goes on where it stood. Runs go on when they are run again.
    ///
    /// ```standalone_crate
    /// use orchestrator::{prelude::*, testing::Kit};
    ///
    /// #[step]
    /// async fn count(_cx: &Cx, word: String) -> Result<usize> {
    ///     Ok(word.len())
    /// }
    ///
    /// #[agent]
    /// async fn reader(cx: &Cx, word: String) -> Result<usize> {
    ///     Ok(count(cx, word).await?)
    /// }
    ///
    /// #[orchestrator]
    /// async fn letters(board: &Board, word: String) -> Result<usize> {
    ///     Ok(board.assign(reader, word).await?)
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let mut kit = Kit::new().await?;
    /// kit.crash_after_commit(3);
    /// let _lost = kit.run(letters, "word".into()).start().await?;
    /// kit.crashed().await?;
    /// kit.restart().await?;
    /// assert_eq!(kit.run(letters, "word".into()).await?, 4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Kit::new`].
    pub async fn restart(&mut self) -> Result<(), Error> {
        // Whatever of the old process is still there does nothing from here on. Its tasks may never end, so nobody can
        // wait until they have let go of its runs.
        self.cut.fall();
        self.neuron.die();
        self.cut = Cut::at(Point::AfterCommit, 0);
        let clock = self.clock.clone();
        self.neuron = self
            .place
            .open((self.builder)(), clock, &self.faults, &self.cut)
            .await?;
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit")
            .field("neuron", &self.neuron)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}
