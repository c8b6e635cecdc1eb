use std::{fmt, sync::Arc};

use neuron::{
    Author, Callable, Error, ErrorKind, Json, Ledger, Result, RunId, consumer,
    def::{Args, Def, Entry, encode, kind},
    vocabulary::control::ControlAnswered,
};
use serde::Serialize;

use super::{Board, Run, Target, answer::Open, engine::Engine, order};
use crate::protocol::Order;

/// What begins a run: an `#[orchestrator]` that is given a [`Board`]. `K` and `C` are its kind and its context.
#[diagnostic::on_unimplemented(
    message = "only an `#[orchestrator]` is run",
    label = "not an `#[orchestrator]` that takes `&Board`",
    note = "an `#[agent]` or a `#[plan]` is assigned by an orchestrator: `board.assign(…)`"
)]
pub trait Begins<K, C>: Def {}

impl<D: Def<Kind = kind::Orchestrator, Context = Board>> Begins<kind::Orchestrator, Board> for D {}

/// A store, and the runs of this process on it. Cheap to clone.
#[derive(Clone)]
pub struct Neuron(pub(crate) Arc<Engine>);

impl Neuron {
    /// The log: the four verbs, folds, subscriptions, artifacts.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// The name under which this process claims runs: `lease.claimed` on `$leases` says which ones it drove, and under
    /// which epochs.
    pub fn incarnation(&self) -> &str {
        self.0.ownership.incarnation()
    }

    /// As if this process were dead: see [`Ownership::die`](neuron::ownership::Ownership::die).
    #[cfg(feature = "testing")]
    pub(crate) fn die(&self) {
        self.0.ownership.die();
    }

    /// The durable consumer of this name, to be opened by this process.
    ///
    /// ```
    /// use neuron::Pattern;
    /// # use orchestrator::prelude::*;
    ///
    /// # async fn show(neuron: Neuron) -> Result<()> {
    /// let orders = Pattern::new("orders.*")?;
    /// let mut billing = neuron.consumer("billing")?.pattern(orders).open().await?;
    /// let order = billing.next().await?;
    /// println!("{} for the {}. time", order.key(), order.attempt());
    /// order.ack().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](neuron::ErrorKind::Malformed) if the name is not allowed.
    pub fn consumer(&self, name: &str) -> Result<consumer::Builder, Error> {
        self.0.ownership.consumer(name)
    }

    /// A run of an orchestrator. Without an id it is a new one; with one ([`Run::id`]) it is attached to, gives its
    /// recorded result, resumes, or begins, whichever is the case.
    ///
    /// A body starts no run of its own: it assigns the orchestrator instead, or calls it.
    pub fn run<M, F>(
        &self,
        _orchestrator: F,
        args: <<F::Def as Def>::Args as Args>::Bare,
    ) -> Run<<F::Def as Def>::Output>
    where
        F: Callable<M>,
        F::Def: Begins<<F::Def as Def>::Kind, <F::Def as Def>::Context>,
    {
        let args = <F::Def as Def>::Args::from_bare(args);
        Run::new(
            self.0.clone(),
            const { &Entry::of::<F::Def>() },
            encode::<F::Def>(&args),
        )
    }

    /// Lets the running steps of a run or of one token end, and starts no more of them.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn pause(&self, target: &Target) -> Result<(), Error> {
        self.order(target, Order::Pause, None).await
    }

    /// Lets a paused run or token go on.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn resume(&self, target: &Target) -> Result<(), Error> {
        self.order(target, Order::Resume, None).await
    }

    /// Stops a run or the work of one token for good.
    ///
    /// # Errors
    /// A kind of the disk.
    pub async fn cancel(&self, target: &Target, because: impl Into<String>) -> Result<(), Error> {
        self.order(target, Order::Cancel { because: None }, Some(because.into()))
            .await
    }

    /// Answers the question with this key, which [`Waits`](crate::waiting::Waits) and `neuron waiting` name. The first
    /// answer stands.
    ///
    /// ```
    /// # use orchestrator::prelude::*;
    /// use orchestrator::waiting::{Waits, What};
    ///
    /// # async fn show(neuron: Neuron) -> Result<()> {
    /// let waiting = neuron.ledger().fold(&Waits, None)?.state;
    /// for item in waiting.items() {
    ///     if let What::Asked { key, question, .. } = &item.what {
    ///         println!("{question}");
    ///         neuron.answer(key, &true).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](neuron::ErrorKind::NotFound) if nobody asked it;
    /// [`ErrorKind::Conflict`](neuron::ErrorKind::Conflict) if it is no longer open, or was answered;
    /// [`ErrorKind::Timeout`](neuron::ErrorKind::Timeout) once its time is over;
    /// [`ErrorKind::Schema`](neuron::ErrorKind::Schema) for what is no answer to it, saying what is wrong;
    /// [`ErrorKind::Misuse`](neuron::ErrorKind::Misuse) if several runs ask it, which are forks of each other:
    /// [`answer_in`](Self::answer_in) says which.
    pub async fn answer<T: Serialize + ?Sized>(&self, key: &str, answer: &T) -> Result<(), Error> {
        self.answer_one(None, key, answer).await
    }

    /// As [`answer`](Self::answer), where it is asked in this run: a run and its [forks](Self::fork) may ask the same.
    ///
    /// ```
    /// # use orchestrator::prelude::*;
    /// # async fn show(neuron: Neuron, key: &str) -> Result<()> {
    /// neuron.answer_in(&RunId::new("tuesday")?, key, &true).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn answer_in<T: Serialize + ?Sized>(&self, run: &RunId, key: &str, answer: &T) -> Result<(), Error> {
        self.answer_one(Some(run.clone()), key, answer).await
    }

    async fn answer_one<T: Serialize + ?Sized>(&self, run: Option<RunId>, key: &str, answer: &T) -> Result<(), Error> {
        let answered = ControlAnswered {
            key: key.into(),
            answer: Json::of(answer)?,
            because: None,
        };
        let ledger = self.0.ledger.clone();
        blocking(move || {
            let open = Open::find(&ledger, run.as_ref(), &answered.key)?;
            open.give(&ledger, &answered, &Author::engine()).map(drop)
        })
        .await
    }

    async fn order(&self, target: &Target, what: Order, because: Option<String>) -> Result<(), Error> {
        order(&self.0.ledger, target, what, because, Author::engine())
            .await
            .map(drop)
    }
}

/// Runs what may block where it stalls no task.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Io, error))?
}

impl fmt::Debug for Neuron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neuron")
            .field("ledger", &self.0.ledger)
            .finish_non_exhaustive()
    }
}
