use std::{sync::Arc, time::Duration};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    time::Instant,
};

use crate::{Clock, Error, ErrorKind, Millis, Result};

/// Where every paused clock begins: 2027-01-15, 08:00 UTC.
const BEGINNING: Millis = Millis(1_800_000_000_000);

/// A clock of the wall that goes with tokio's paused clock, so that timers, deadlines and `at` move together.
#[derive(Debug)]
pub struct PausedClock(Anchor);

#[derive(Clone, Debug)]
struct Anchor {
    at: Millis,
    since: Instant,
    runtime: Handle,
}

impl PausedClock {
    /// Pauses the time of the present runtime, unless it is paused already.
    ///
    /// ```
    /// use neuron::{Clock as _, testing::PausedClock};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// let clock = PausedClock::new()?;
    /// let before = clock.now();
    /// tokio::time::advance(std::time::Duration::from_hours(1)).await;
    /// assert_eq!(clock.now().0 - before.0, 3_600_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] outside a runtime of one thread: only such a one has a time that can be paused.
    pub fn new() -> Result<Arc<Self>, Error> {
        Self::from(BEGINNING)
    }

    /// As [`PausedClock::new`], from another moment on: for a process that comes after another.
    ///
    /// # Errors
    /// As [`PausedClock::new`].
    pub fn from(at: Millis) -> Result<Arc<Self>, Error> {
        let runtime = Handle::try_current().ok();
        let runtime = runtime.filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread);
        let Some(runtime) = runtime else {
            let why = "time can be paused in a tokio runtime of one thread only: use `#[tokio::test]` without a flavor";
            return Err(Error::new(ErrorKind::Misuse, why));
        };
        if !is_paused() {
            tokio::time::pause();
        }
        Ok(Arc::new(Self(Anchor {
            at,
            since: Instant::now(),
            runtime,
        })))
    }
}

/// Whether tokio's clock stands while that of the machine goes on.
fn is_paused() -> bool {
    let (shown, began) = (Instant::now(), std::time::Instant::now());
    while began.elapsed() < Duration::from_micros(1) {
        std::hint::spin_loop();
    }
    Instant::now() == shown
}

impl Clock for PausedClock {
    fn now(&self) -> Millis {
        let anchor = &self.0;
        // Threads of the store ask as well; they stand outside the runtime whose time it is.
        let _entered = anchor.runtime.enter();
        anchor.at.plus(Instant::now().saturating_duration_since(anchor.since))
    }
}
