use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, Weak},
};

use tokio::sync::{oneshot, watch};

use super::{Ledger, folding::Way, live::Wait};
use crate::{
    Error, ErrorKind, Fold, Pattern, Receipt, Result,
    fold::Folded,
    store::{Range, Row, Select, gapless},
};

/// A fold that stays current: what is committed, in this process or another, is folded in as it comes. Cheap to clone;
/// it follows the log until the last of its handles goes.
///
/// ```
/// # use neuron::{Append, Author, Contract, Draft, Ledger, ManualClock, Millis, Pattern, Topic, store::Memory};
/// # use neuron::pipeline::Pipeline;
/// use neuron::fold::Count;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), neuron::Error> {
/// # let clock = std::sync::Arc::new(ManualClock::at(Millis(1)));
/// # let store = std::sync::Arc::new(Memory::with(clock.clone(), None)?);
/// # let ledger = Ledger::over(store, clock, Pipeline::default())?;
/// # ledger.declare(&Pattern::new("notes.*")?, Contract::Durable, &Author::cli()).await?;
/// # let note = Draft::new(Topic::new("notes.today")?, Author::cli(), "note.taken")?;
/// let counts = ledger.view(Count).await?;
/// let receipt = ledger.publish(note).await?;
/// let kinds = counts.at(&receipt).await?.read(|counts| counts.len())?;
/// assert_eq!(kinds, 2); // the declaration of the topic, and the note
/// # Ok(())
/// # }
/// ```
pub struct View<F: Fold> {
    inner: Arc<Inner<F>>,
    /// Dropped with the last handle, so that whoever follows the log lets go of it.
    alive: Arc<oneshot::Sender<()>>,
}

struct Inner<F: Fold> {
    ledger: Ledger,
    fold: F,
    select: Select,
    state: RwLock<State<F::State>>,
    /// Held by whoever takes the state further, and by nobody who only reads it.
    turn: Mutex<()>,
}

struct State<S> {
    folded: Folded<S>,
    /// What was folded since the last snapshot.
    way: Way,
    /// Why it cannot go on.
    broken: Option<Error>,
}

/// What one turn came to.
enum Turn {
    /// Everything up to the end asked for is in the state.
    There,
    /// There is more.
    More,
}

impl Ledger {
    /// A view: the state of a fold, kept current from here on. It begins at the fold's snapshot, if there is one. To be
    /// called in a runtime, whose task follows the log.
    ///
    /// # Errors
    /// As [`Ledger::fold`].
    pub async fn view<F>(&self, fold: F) -> Result<View<F>, Error>
    where
        F: Fold + Send + Sync + 'static,
        F::State: Send + Sync + 'static,
    {
        // Before the fold, so that nothing falls between it and what follows.
        let news = News::of(self, &fold.select());
        let ledger = self.clone();
        let folded = tokio::task::spawn_blocking(move || {
            let (folded, way) = ledger.fold_to_now(&fold)?;
            Ok::<_, Error>(Inner {
                select: fold.select(),
                state: RwLock::new(State {
                    folded,
                    way,
                    broken: None,
                }),
                ledger,
                fold,
                turn: Mutex::default(),
            })
        });
        let inner = Arc::new(folded.await.map_err(|error| Error::new(ErrorKind::Panicked, error))??);
        let (alive, gone) = oneshot::channel();
        tokio::spawn(follow(Arc::downgrade(&inner), news, gone));
        Ok(View {
            inner,
            alive: Arc::new(alive),
        })
    }
}

/// What tells whoever follows a view that there is something for it.
enum News {
    /// Topics: only what may be wanted wakes it.
    Wanted(Wait),
    /// Every commit.
    Any(watch::Receiver<u64>),
}

impl News {
    fn of(ledger: &Ledger, select: &Select) -> Self {
        let tail = ledger.0.store.tail();
        let wait_for = |pattern: &Pattern| Self::Wanted(ledger.0.live.wait_for(pattern, *tail.borrow()));
        match select {
            Select::Topic(topic) | Select::Key(topic, _) => wait_for(&Pattern::exactly(topic)),
            Select::Pattern(pattern) => wait_for(pattern),
            Select::All | Select::Kind(_) | Select::CausedBy(_) => Self::Any(tail),
        }
    }

    /// Waits for something new, and says up to where it goes. None once the store is closed.
    async fn next(&mut self) -> Option<u64> {
        match self {
            Self::Wanted(wait) => {
                wait.changed().await;
                Some(wait.due())
            }
            Self::Any(tail) => {
                tail.changed().await.ok()?;
                Some(*tail.borrow_and_update())
            }
        }
    }
}

/// Takes the state further whenever something was committed, and puts it aside after a long way.
async fn follow<F>(view: Weak<Inner<F>>, mut news: News, mut gone: oneshot::Receiver<()>)
where
    F: Fold + Send + Sync + 'static,
    F::State: Send + Sync + 'static,
{
    let mut told = false;
    loop {
        let next = tokio::select! {
            _ = &mut gone => return,
            next = news.next() => next,
        };
        let Some((to, inner)) = next.zip(view.upgrade()) else {
            return;
        };
        match inner.go_to(to).await {
            Ok(()) => told = false,
            // Whoever reads it is told as well.
            Err(error) if !told => {
                tracing::warn!(%error, "a view cannot go on");
                told = true;
            }
            Err(_) => {}
        }
        if inner.is_far() {
            // It ends with an entry in the side file or with a warning.
            drop(tokio::task::spawn_blocking(move || inner.put_aside()).await);
        }
    }
}

impl<F: Fold> Inner<F> {
    fn state(&self) -> RwLockReadGuard<'_, State<F::State>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Folds in everything up to `to`, page by page.
    async fn go_to(&self, to: u64) -> Result<(), Error> {
        while let Turn::More = self.turn(to)? {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Folds in one page. Blocks for as long as that takes.
    fn turn(&self, to: u64) -> Result<Turn, Error> {
        // A fold that panicked may have left its state anyhow.
        let _turn = self.turn.lock().map_err(|_| panicked())?;
        let from = self.state().folded.upto + 1;
        if from > to {
            return Ok(Turn::There);
        }
        let page = self.page(from, to);
        let mut state = self.state.write().map_err(|_| panicked())?;
        let State { folded, way, broken } = &mut *state;
        let taken = page.and_then(|(rows, upto)| {
            way.took(rows.len() as u64);
            folded.resume(&self.fold, rows.iter().map(|row| row.envelope()))?;
            folded.upto = upto;
            Ok(upto)
        });
        *broken = taken.as_ref().err().cloned();
        taken.map(|upto| if upto < to { Turn::More } else { Turn::There })
    }

    /// The next rows that are selected, and up to where they were looked for.
    fn page(&self, from: u64, to: u64) -> Result<(Vec<Arc<Row>>, u64), Error> {
        if let Some(mut rows) = self.ledger.0.live.ring.rows(from, to) {
            let upto = rows.last().map_or(to, |row| row.pos);
            rows.retain(|row| self.select.takes(row));
            return Ok((rows, upto));
        }
        let range = Range { from, to, ..Range::ALL };
        let page = gapless::page(&*self.ledger.0.store, &self.select, range)?;
        let upto = page.next.map_or(to, |next| next - 1);
        Ok((page.rows.into_iter().map(Arc::new).collect(), upto))
    }

    /// Whether the last snapshot lies far back.
    fn is_far(&self) -> bool {
        let state = self.state();
        state.broken.is_none() && state.way.is_long(&self.fold, state.folded.upto)
    }

    fn put_aside(&self) {
        let way = {
            let state = self.state();
            let mut way = state.way;
            self.ledger.put_aside(&self.fold, &state.folded, &mut way);
            way
        };
        // Only one task puts aside. What was folded in meanwhile counts for the next time by its places alone.
        if let Ok(mut state) = self.state.write() {
            state.way = way;
        }
    }
}

fn panicked() -> Error {
    let why = "the fold of this view has panicked, so its state is not known: open another one";
    Error::new(ErrorKind::Panicked, why)
}

impl<F: Fold> View<F> {
    /// Waits until what the receipt stands for is folded in, and everything before it. Other handles are read meanwhile.
    ///
    /// # Errors
    /// As [`Ledger::fold`]; [`ErrorKind::Io`] if the store is closed.
    pub async fn at(&self, receipt: &Receipt) -> Result<&Self, Error> {
        let mut tail = self.inner.ledger.0.store.tail();
        loop {
            let to = *tail.borrow_and_update();
            self.inner.go_to(to.min(receipt.pos)).await?;
            if to >= receipt.pos {
                return Ok(self);
            }
            if tail.changed().await.is_err() {
                return Err(Error::new(ErrorKind::Io, "the store is closed"));
            }
        }
    }

    /// Folds in everything that stands by now, so far as this process knows of it.
    ///
    /// # Errors
    /// As [`Ledger::fold`].
    pub async fn now(&self) -> Result<&Self, Error> {
        let to = *self.inner.ledger.0.store.tail().borrow();
        self.inner.go_to(to).await?;
        Ok(self)
    }

    /// Looks at the state: it holds everything that was committed when the runtime last had a moment for it. The view
    /// does not go on while somebody looks, so this is to be brief.
    ///
    /// # Errors
    /// Why it could not go on, as [`Ledger::fold`]: then its state is older than the log.
    pub fn read<R>(&self, look: impl FnOnce(&F::State) -> R) -> Result<R, Error> {
        let state = self.inner.state.read().map_err(|_| panicked())?;
        match &state.broken {
            Some(error) => Err(error.clone()),
            None => Ok(look(&state.folded.state)),
        }
    }

    /// Up to which `pos` everything is folded in.
    pub fn upto(&self) -> u64 {
        self.inner.state().folded.upto
    }
}

impl<F: Fold> Clone for View<F> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            alive: self.alive.clone(),
        }
    }
}

impl<F: Fold> fmt::Debug for View<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("upto", &self.upto())
            .finish_non_exhaustive()
    }
}
