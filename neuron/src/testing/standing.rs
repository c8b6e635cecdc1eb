use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError, mpsc},
};

use tokio::runtime::{Handle, Id};

/// Keeps a paused clock standing for as long as it lives: without it tokio moves the clock to the next timer whenever
/// nothing else is to be done.
///
/// A runtime has one clock, so several of these in one runtime are as one: while the time is [let go on](Self::let_go_on)
/// by any of them, it goes on for all.
#[derive(Debug)]
pub struct Standing(Id);

/// As long as it lives, the time goes on by itself.
#[derive(Debug)]
#[must_use = "the time goes on only while this lives"]
pub struct GoingOn(Id);

/// Who wants what of the clock of one runtime.
#[derive(Debug, Default)]
struct Wishes {
    standing: usize,
    going_on: usize,
    /// The thread that waits on the other end is what keeps the clock.
    end: Option<mpsc::Sender<()>>,
}

static CLOCKS: LazyLock<Mutex<HashMap<Id, Wishes>>> = LazyLock::new(Mutex::default);

impl Standing {
    /// Lets the clock of the present runtime stand.
    ///
    /// ```
    /// use neuron::testing::{PausedClock, Standing};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// let _clock = PausedClock::new()?;
    /// let standing = Standing::begin();
    /// let nap = tokio::spawn(tokio::time::sleep(std::time::Duration::from_hours(1)));
    /// tokio::task::yield_now().await;
    /// assert!(!nap.is_finished());
    /// let _going_on = standing.let_go_on();
    /// nap.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use = "the clock stands only while this lives"]
    pub fn begin() -> Self {
        let runtime = Handle::current();
        wish(runtime.id(), |wishes| wishes.standing += 1);
        Self(runtime.id())
    }

    /// Lets the time go on by itself for as long as what this gives lives, whoever else lets it stand.
    pub fn let_go_on(&self) -> GoingOn {
        wish(self.0, |wishes| wishes.going_on += 1);
        GoingOn(self.0)
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        wish(self.0, |wishes| wishes.standing -= 1);
    }
}

impl Drop for GoingOn {
    fn drop(&mut self) {
        wish(self.0, |wishes| wishes.going_on -= 1);
    }
}

/// Changes what is wanted, and sees to it.
fn wish(runtime: Id, change: impl FnOnce(&mut Wishes)) {
    let mut clocks = clocks();
    let wishes = clocks.entry(runtime).or_default();
    change(wishes);
    if wishes.standing == 0 || wishes.going_on > 0 {
        wishes.end = None;
    } else if wishes.end.is_none() {
        wishes.end = hold(runtime);
    }
    if wishes.standing == 0 && wishes.going_on == 0 {
        clocks.remove(&runtime);
    }
}

/// A thread of the runtime that is busy until the other end is dropped. None outside of it, as at its end, when it has no
/// clock to be kept any more.
fn hold(runtime: Id) -> Option<mpsc::Sender<()>> {
    let runtime = Handle::try_current().ok().filter(|present| present.id() == runtime)?;
    let (end, ended) = mpsc::channel::<()>();
    drop(runtime.spawn_blocking(move || {
        let _ = ended.recv();
    }));
    Some(end)
}

fn clocks() -> MutexGuard<'static, HashMap<Id, Wishes>> {
    CLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}
