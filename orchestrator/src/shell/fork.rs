//! Forks: a run begins with what is on the log of another one, up to some place, and goes on from there by itself.

use std::fmt;

use neuron::{
    Append, Author, Cause, Draft, Error, ErrorKind, Expectation, Ledger, Payload, Receipt, Result, RunId,
    def::Registry,
    scope::inside,
    topic::catalog,
    vocabulary::{
        Message as _,
        orchestration::{Fork as Parting, OrchestrationCreated},
    },
};

use super::{
    Neuron,
    answer::first,
    engine::fingerprint,
    run::{Running, fresh},
    standing::{Standing, standing},
};
use crate::builds::Builds;

/// A run that is about to part from another: see [`Neuron::fork`].
#[must_use = "nothing is forked until it is started"]
pub struct Fork<'a> {
    neuron: &'a Neuron,
    run: RunId,
    at: Option<u64>,
    id: Option<Result<RunId, Error>>,
}

impl Fork<'_> {
    /// The last `pos` that counts: what is on the log of the other run after it is not known to this one. Without it
    /// everything counts that stands when this begins.
    pub fn at(mut self, pos: u64) -> Self {
        self.at = Some(pos);
        self
    }

    /// Names the run, as [`Run::id`](super::Run::id). The same id later is the same run: `neuron.run(…)` with the
    /// arguments of the other run attaches to it.
    ///
    /// An id that is not allowed is told when it is started.
    pub fn id(mut self, id: impl AsRef<str>) -> Self {
        self.id = Some(RunId::new(id));
        self
    }

    /// Begins it and comes back at once. `T` is what the orchestrator gives.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such run or this program has no such orchestrator; [`ErrorKind::Misuse`] for
    /// a place before the run or behind the log, and inside a body; [`ErrorKind::RunIdConflict`] for an id that a run has
    /// already; [`ErrorKind::Denied`] if an order closes this build; [`ErrorKind::Schema`] if the arguments of the other
    /// run cannot be read back; a kind of the disk.
    pub async fn start<T: Payload>(self) -> Result<Running<T>, Error> {
        if inside() {
            let why = "a body starts no run: an orchestrator assigns another one with `board.assign(…)`, or calls it";
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        let Self { neuron, run, at, id } = self;
        let id = id.transpose()?;
        let engine = neuron.0.clone();
        let begun = tokio::task::spawn_blocking(move || {
            let from = recorded(&engine.ledger, &run, at)?;
            let name = &from.created.name;
            let entry = engine.registry.get("orchestrator", name).ok_or_else(|| {
                let why = format!("this program registers no orchestrator `{name}`, whose run `{run}` is");
                Error::new(ErrorKind::NotFound, why)
            })?;
            // Before anything is written: a fork that this program cannot drive is of no use to it.
            let args = engine.registry.normalise(entry, &from.args)?;
            let program = Program::with(engine.build.clone(), &engine.registry)?;
            let (id, _) = begin(&engine.ledger, &from, id, &program, &Author::engine())?;
            Ok::<_, Error>((id, entry, args))
        });
        let (id, entry, args) = begun.await.map_err(|error| Error::new(ErrorKind::Io, error))??;
        let end = neuron.0.start(&id, entry, args, None)?;
        Ok(Running::new(neuron.ledger().clone(), id, end))
    }
}

impl fmt::Debug for Fork<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fork")
            .field("run", &self.run)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl Neuron {
    /// Begins a run that parts from another one: the same orchestrator, on the same arguments. Of the other run's calls
    /// those that had ended by then are answered from its log and not done again, in whatever body they stood; what had
    /// begun and not ended, and what comes after, is done by this run, with this code. The other run may have ended, and
    /// learns nothing of it.
    ///
    /// What a `once` step had only begun there is done here: [`Cx::idempotency_key`](neuron::Cx::idempotency_key) is
    /// another one, so to a service outside it is another deed. What transactions have left in the program's own tables
    /// stays there, and those after the place run again. Waits begin where those of the other run did, so an envelope
    /// that it took after the place may be taken here as well. Only what this run does itself is on its account.
    ///
    /// ```standalone_crate
    /// # use orchestrator::prelude::*;
    /// #[step]
    /// async fn draft(_cx: &Cx) -> Result<String> {
    ///     Ok("the first try".into())
    /// }
    ///
    /// #[agent]
    /// async fn writer(cx: &Cx) -> Result<String> {
    ///     Ok(draft(cx).await?)
    /// }
    ///
    /// #[orchestrator]
    /// async fn book(board: &Board) -> Result<String> {
    ///     Ok(board.assign(writer, ()).await?)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let neuron = Neuron::builder().memory().await?;
    /// neuron.run(book, ()).id("monday").await?;
    /// let monday = RunId::new("monday")?;
    /// // All of it counts: nothing is done again.
    /// let again = neuron.fork(&monday).id("tuesday").start::<String>().await?;
    /// assert_eq!(again.await?, "the first try");
    /// # Ok(())
    /// # }
    /// ```
    pub fn fork(&self, run: &RunId) -> Fork<'_> {
        Fork {
            neuron: self,
            run: run.clone(),
            at: None,
            id: None,
        }
    }
}

/// The program that a fork is begun with.
pub(crate) struct Program {
    pub(crate) build: String,
    pub(crate) registry: String,
}

impl Program {
    /// A program by the name of its build, and what it registers.
    ///
    /// # Errors
    /// As [`fingerprint`].
    pub(crate) fn with(build: String, registry: &Registry) -> Result<Self, Error> {
        Ok(Self {
            build,
            registry: fingerprint(registry)?,
        })
    }
}

/// What a fork begins with.
pub(crate) struct From {
    pub(crate) created: OrchestrationCreated,
    args: neuron::Json,
    envelope: neuron::Envelope,
    parting: Parting,
}

impl From {
    /// The last `pos` that counts.
    pub(crate) fn at(&self) -> u64 {
        self.parting.at
    }

    /// The program that began the other run.
    pub(crate) fn program(&self) -> Program {
        Program {
            build: self.created.build.clone(),
            registry: self.created.registry.clone(),
        }
    }
}

/// The run that is parted from, at a place that it reaches. Blocks.
///
/// # Errors
/// As [`Fork::start`].
pub(crate) fn recorded(ledger: &Ledger, run: &RunId, at: Option<u64>) -> Result<From, Error> {
    let created = match standing(ledger, run)? {
        Standing::New => return Err(Error::new(ErrorKind::NotFound, format!("there is no run `{run}`"))),
        Standing::Open(created) | Standing::Ended(created, _) => created,
    };
    let (last, first) = (ledger.store().last()?.0, created.envelope.pos);
    let at = at.unwrap_or(last);
    if at < first || at > last {
        let why = format!(
            "run `{run}` cannot be forked at {at}: it began at pos {first}, and the log ends at {last}; name a place \
             between (`neuron log` lists envelopes, `neuron show ID` tells the pos of one)"
        );
        return Err(Error::new(ErrorKind::Misuse, why));
    }
    Ok(From {
        args: created.args,
        created: created.envelope.decode()?,
        envelope: created.envelope,
        parting: Parting { run: run.clone(), at },
    })
}

/// Puts the beginning of a fork on the log. Blocks.
///
/// # Errors
/// As [`Fork::start`].
pub(crate) fn begin(
    ledger: &Ledger,
    from: &From,
    id: Option<RunId>,
    program: &Program,
    author: &Author,
) -> Result<(RunId, Receipt), Error> {
    let id = id.map_or_else(|| fresh(&from.created.name), Ok)?;
    let topic = catalog::lifecycle(&id);
    loop {
        let builds = Builds::of(ledger)?;
        builds.begins(&program.build)?;
        if ledger.store().head(&topic)? > 0 {
            let why = format!("there is a run `{id}` already: give the fork another id");
            return Err(Error::new(ErrorKind::RunIdConflict, why));
        }
        let created = OrchestrationCreated {
            build: program.build.clone(),
            registry: program.registry.clone(),
            fork: Some(from.parting.clone()),
            ..from.created.clone()
        };
        let draft = created.draft(topic.clone(), author.clone())?;
        let artifacts = from.envelope.body.artifacts.iter().cloned();
        let draft = artifacts.fold(draft, Draft::artifact);
        let append = Append::of([draft.cause(Cause::Envelope(from.envelope.reference()))])
            .expect(Expectation::Head(topic.clone(), 0))
            // An order that is given meanwhile is obeyed.
            .expect(Expectation::Head(catalog::builds(), builds.head()));
        match ledger.append_blocking(append) {
            // Either was written meanwhile; which of them shows when both are looked at again.
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            receipts => return Ok((id, first(receipts?)?)),
        }
    }
}
