use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use futures::future::{BoxFuture, poll_fn};

use super::{Cassette, Cut};
use crate::{
    BoxError, Context, Error, Json, Result,
    scope::{Boundary, Entering, Manner, MemoryJournal, Runtime, Scope, State},
};

/// What goes wrong in a test, by the names of steps. Cheap to clone; all clones are one.
///
/// ```
/// use neuron::{Cx, Result, step, testing::Faults};
///
/// #[step(retry(2))]
/// async fn fetch(_cx: &Cx, url: String) -> Result<String> {
///     Ok(format!("what {url} says"))
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let faults = Faults::new();
/// faults.fail("fetch").on_attempt(1).with("busy");
/// let cx: Cx = faults.test();
/// assert_eq!(fetch(&cx, "a".into()).await?, "what a says");
/// let attempts: Vec<u32> = faults.entered().into_iter().map(|call| call.attempt).collect();
/// assert_eq!(attempts, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    rules: Vec<Rule>,
    delays: HashMap<String, Duration>,
    entered: Vec<Entering>,
    cassette: Option<Cassette>,
}

#[derive(Debug)]
struct Rule {
    step: String,
    /// `None` = each.
    attempt: Option<u32>,
    error: Error,
    has_struck: bool,
}

impl Faults {
    /// Nothing goes wrong yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the step of this name fail in place of its body: say when, and with what.
    pub fn fail(&self, step: impl Into<String>) -> Failing<'_> {
        Failing {
            faults: self,
            step: step.into(),
        }
    }

    /// Lets each attempt of the step of this name take so much longer, on tokio's clock. It counts towards the step's
    /// timeout.
    pub fn delay(&self, step: impl Into<String>, time: Duration) {
        self.script().delays.insert(step.into(), time);
    }

    /// Answers every step from a cassette in place of its body, from now on. A step that is to fail fails all the same; one
    /// that the cassette has no answer of fails with what was called.
    pub fn play(&self, cassette: Cassette) {
        self.script().cassette = Some(cassette);
    }

    /// The names of steps whose answers on the cassette were not asked for.
    pub fn unplayed(&self) -> Vec<String> {
        let script = self.script();
        let mut left: Vec<_> = script
            .cassette
            .iter()
            .flat_map(Cassette::left)
            .map(str::to_owned)
            .collect();
        left.sort_unstable();
        left.dedup();
        left
    }

    /// The attempts that have begun, oldest first, also those that failed in place of their bodies.
    pub fn entered(&self) -> Vec<Entering> {
        self.script().entered.clone()
    }

    /// The faults that have never struck, as `step (attempt)`: of a test that names a step wrongly it would else not be
    /// seen.
    pub fn unstruck(&self) -> Vec<String> {
        let script = self.script();
        let unstruck = script.rules.iter().filter(|rule| !rule.has_struck);
        let show = |rule: &Rule| match rule.attempt {
            Some(attempt) => format!("{} (attempt {attempt})", rule.step),
            None => format!("{} (every attempt)", rule.step),
        };
        unstruck.map(show).collect()
    }

    /// A context for a plain test, as [`neuron::test`](crate::test) gives one, in which these faults strike.
    pub fn test<C: Context>(&self) -> C {
        let mut state = State::default();
        state.insert(self.boundary(None));
        let runtime = Arc::new(Runtime::new(Arc::new(MemoryJournal::default())).state(state));
        let now = runtime.journal().now();
        C::of(Scope::root(&runtime, "test", now, Manner::Undriven))
    }

    /// These faults for a process that `cut` crashes: once it has, no body of a step is polled any more. As a value of a
    /// program's shared state it stands between the engine and the bodies.
    pub fn until(&self, cut: Arc<Cut>) -> Arc<dyn Boundary> {
        self.boundary(Some(cut))
    }

    fn boundary(&self, cut: Option<Arc<Cut>>) -> Arc<dyn Boundary> {
        Arc::new(Process {
            faults: self.clone(),
            cut,
        })
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step that is to fail: when?
#[derive(Debug)]
#[must_use = "say when: `.on_attempt(2)` or `.always()`, then `.with(error)`"]
pub struct Failing<'a> {
    faults: &'a Faults,
    step: String,
}

impl<'a> Failing<'a> {
    /// Whenever a call of it makes this attempt, counted from 1.
    pub fn on_attempt(self, attempt: u32) -> Struck<'a> {
        Struck {
            failing: self,
            attempt: Some(attempt),
        }
    }

    /// In every attempt.
    pub fn always(self) -> Struck<'a> {
        Struck {
            failing: self,
            attempt: None,
        }
    }
}

/// A step that is to fail at a known moment: with what?
#[derive(Debug)]
#[must_use = "say with what: `.with(error)`"]
pub struct Struck<'a> {
    failing: Failing<'a>,
    attempt: Option<u32>,
}

impl Struck<'_> {
    /// With this error, as if the body had returned it: a text or any other plain error is tried again as the step says, an
    /// [`Error`] says itself whether. Of several faults for one attempt the first that was given counts.
    pub fn with(self, error: impl Into<BoxError>) {
        self.failing.faults.script().rules.push(Rule {
            step: self.failing.step,
            attempt: self.attempt,
            error: Error::record(error.into()),
            has_struck: false,
        });
    }
}

/// The faults as one process meets them.
#[derive(Debug)]
struct Process {
    faults: Faults,
    cut: Option<Arc<Cut>>,
}

impl Boundary for Process {
    fn around(
        &self,
        call: Entering,
        body: BoxFuture<'static, Result<Json, Error>>,
    ) -> BoxFuture<'static, Result<Json, Error>> {
        let (faults, cut) = (self.faults.clone(), self.cut.clone());
        let mut attempt: BoxFuture<'static, _> = Box::pin(async move {
            let (given, delay) = {
                let mut script = faults.script();
                script.entered.push(call.clone());
                let strikes = |rule: &&mut Rule| {
                    rule.step == call.name && rule.attempt.is_none_or(|attempt| attempt == call.attempt)
                };
                let struck = script.rules.iter_mut().find(strikes);
                let given = match struck {
                    Some(rule) => {
                        rule.has_struck = true;
                        Some(Err(rule.error.clone()))
                    }
                    None => script
                        .cassette
                        .as_mut()
                        .map(|cassette| cassette.next(call.name, &call.args)),
                };
                (given, script.delays.get(call.name).copied())
            };
            if let Some(delay) = delay {
                tokio::time::sleep(delay).await;
            }
            match given {
                Some(given) => given,
                None => body.await,
            }
        });
        Box::pin(poll_fn(move |cx| match &cut {
            // What is dead does nothing; whoever holds it drops it.
            Some(cut) if cut.has_fallen() => Poll::Pending,
            _ => attempt.as_mut().poll(cx),
        }))
    }
}
