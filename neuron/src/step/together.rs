use std::future::Future;

use futures::future::{TryJoinAll, select_all, try_join_all};

use super::Cx;
use crate::{Error, ErrorKind, Result};

impl Cx {
    /// Awaits all of them at once and gives what they gave, in their order. The first failure is the whole's, and the
    /// others are let go of.
    ///
    /// It is a convenience: a body is told one answer at a time, in the order of the log, so `futures::join!`,
    /// `tokio::join!` and whatever else polls several calls are as safe in a replay.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// let naps = [3, 1, 2].map(|ms| cx.sleep(Duration::from_millis(ms)));
    /// assert_eq!(cx.join(naps).await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first that one of them gave.
    pub fn join<F, T, E>(&self, calls: impl IntoIterator<Item = F>) -> TryJoinAll<F>
    where
        F: Future<Output = Result<T, E>>,
    {
        try_join_all(calls)
    }

    /// Awaits the first of them to end, well or not, and gives its place among them and what it gave. The others are let go
    /// of there and then, and no replay starts them again: whose answer stands first on the log has won for ever, however
    /// fast another would be today.
    ///
    /// It is a convenience: `tokio::select!` does the same for calls of different types, and its losers are let go of at
    /// its end.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// let naps = [60_000, 1].map(|ms| cx.sleep(Duration::from_millis(ms)));
    /// let (first, ()) = cx.race(naps).await?;
    /// assert_eq!(first, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the first of them gave; [`ErrorKind::Misuse`] if there are none.
    pub fn race<I, F, T, E>(&self, calls: I) -> impl Future<Output = Result<(usize, T), E>> + use<I, F, T, E>
    where
        I: IntoIterator<Item = F>,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        // All are made now, so that each has its place before anything is awaited.
        let calls: Vec<_> = calls.into_iter().map(Box::pin).collect();
        async move {
            if calls.is_empty() {
                return Err(Error::new(ErrorKind::Misuse, "a race of nothing has no first: give it a call").into());
            }
            let (ended, place, others) = select_all(calls).await;
            drop(others);
            ended.map(|value| (place, value))
        }
    }
}
