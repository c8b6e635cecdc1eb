use std::{future::Future, pin::pin, sync::Arc, task::Poll, time::Duration};

use futures::future::poll_fn;

use super::builtin::{thread, timer};
use crate::{
    Error, ErrorKind, Millis, Payload, Result,
    def::{Context, Outcome},
    scope::{Answer, Manner, MemoryJournal, Runtime, Scope},
};

/// What a step, an agent and a thread are given. It cannot be cloned, and nothing on it assigns.
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

    /// Which attempt this is, from 1. Given as an argument it makes a nested call fresh in each attempt.
    pub fn attempt(&self) -> u32 {
        self.scope.attempt()
    }

    /// A name for this call that is the same in all its attempts and of no other call: for services that do a thing at
    /// most once per key.
    pub fn idempotency_key(&self) -> &str {
        self.scope.id()
    }

    /// The program's shared state of a type.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if none was given.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, Error> {
        self.scope.runtime().shared().get()
    }

    /// Waits. The timer is on the log: a restart waits for the rest.
    pub fn sleep(&self, time: Duration) -> Answer<'_, ()> {
        Answer::new(timer(&self.scope, time))
    }

    /// The output of `work`, or [`ErrorKind::Timeout`] if a timer of `time` fires first. The timer is on the log, so a
    /// replay ends the same way.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], or what the timer says.
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

    /// A task of this body's own, with a context and a scope of its own. It starts when this body is idle, awaited or
    /// not, and is stopped when this body ends.
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
    Error::new(ErrorKind::Timeout, format!("no answer within {time:?}"))
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
