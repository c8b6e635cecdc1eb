use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use neuron::{
    Error, ErrorKind, Ledger, Millis, Result, RunId, Topic,
    agent::inherited,
    def::{Entry, Registry},
    schema::Upcasters,
    scope::{self, Rehearsal, Runtime, rehearse},
};

use super::{
    Neuron,
    assign::Prepared,
    body::{Body, Link},
    execute::Seat,
    job::Job,
    laid::Laid,
    replayed::{Outlook, Replayed, damaged},
    standing::{Standing, standing},
};
use crate::{
    ancestry::{Ancestry, Before},
    board::{BoardView, facts},
    fact::Fact,
    package::{Key, PackageKind},
    protocol::Planned,
    ruling::Verdict,
    runs::Unfinished,
};

/// What a dry run needs: a log to read, and the code.
pub(crate) struct Replay {
    ledger: Ledger,
    registry: Arc<Registry>,
    upcasters: Arc<Upcasters>,
    state: scope::State,
    /// The time of the last envelope.
    at: Millis,
}

/// What the bodies have assigned, each with the body that did.
type Assigned = Arc<Mutex<Vec<(Arc<Body>, Laid)>>>;

/// What the log says of the run.
struct Recorded<'a> {
    run: &'a RunId,
    ended: bool,
    ancestry: Ancestry,
    board: BoardView,
    /// When each package was assigned.
    births: HashMap<String, Millis>,
}

/// A body that is to be driven.
struct Driven {
    id: String,
    birth: Millis,
    past: (Before, Vec<Topic>),
    body: Prepared,
    /// The agent, if it is one's.
    agent: Option<&'static Entry>,
    /// The package whose body it is.
    within: Option<Key>,
    token: Option<String>,
}

impl Replay {
    /// A dry run on the log as it stands now; what is committed meanwhile does not count.
    pub(crate) fn new(
        ledger: &Ledger,
        registry: Arc<Registry>,
        upcasters: Arc<Upcasters>,
        state: scope::State,
    ) -> Result<Self, Error> {
        let (last, at) = ledger.store().last()?;
        Ok(Self {
            ledger: ledger.as_of(last)?,
            registry,
            upcasters,
            state,
            at,
        })
    }

    /// Whether the program has any orchestrator at all.
    pub(crate) fn has_code(&self) -> bool {
        self.registry.entries().any(|entry| entry.meta().kind == "orchestrator")
    }

    /// All runs that have not ended, oldest first.
    pub(crate) async fn open(&self) -> Result<Vec<Replayed>, Error> {
        let mut open: Vec<_> = self.ledger.fold(&Unfinished, None)?.state.into_iter().collect();
        open.sort_by_key(|(_, begun)| begun.pos);
        let mut replayed = Vec::with_capacity(open.len());
        for (run, begun) in open {
            replayed.push(match self.run(&run).await {
                Err(error) if error.kind() == ErrorKind::Corrupt => damaged(&run, begun.name, &error),
                told => told?,
            });
        }
        Ok(replayed)
    }

    /// One run.
    pub(crate) async fn run(&self, run: &RunId) -> Result<Replayed, Error> {
        let told = self.told(run).await;
        match told {
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(damaged(run, String::new(), &error)),
            told => told,
        }
    }

    async fn told(&self, run: &RunId) -> Result<Replayed, Error> {
        let (created, ended) = match standing(&self.ledger, run)? {
            Standing::New => {
                let why = format!("there is no run `{run}` in this store");
                return Err(Error::new(ErrorKind::NotFound, why));
            }
            Standing::Open(created) => (created, false),
            Standing::Ended(created, _) => (created, true),
        };
        let mut told = Replayed {
            run: run.clone(),
            name: created.name.clone(),
            build: created.build.clone(),
            outlook: Outlook::GoesOn,
            findings: Vec::new(),
        };
        let Some(entry) = self.registry.get("orchestrator", &created.name) else {
            let why = format!("this program registers no orchestrator `{}`", created.name);
            told.add(Outlook::NoCode, why);
            return Ok(told);
        };
        let args = match self.registry.normalise(entry, &created.args) {
            Ok(args) => args.revealed,
            Err(error) => {
                told.add(
                    Outlook::Undecodable,
                    format!(
                        "the arguments of the run are not read back, so nobody can take it up without them: {error}"
                    ),
                );
                return Ok(told);
            }
        };
        let seat = Seat::of_orchestrator(run, (String::new(), 0), None);
        let ancestry = Ancestry::of(&self.ledger, run)?;
        let body: Prepared = Box::new(move |scope| {
            let body = entry.run(scope, args);
            Ok(Box::pin(async move { body.await.map(|ran| ran.json) }) as _)
        });
        let first = Driven {
            id: ancestry.scope(),
            birth: ancestry.birth(),
            past: (ancestry.of_orchestrator(), seat.past),
            body,
            agent: None,
            within: None,
            token: None,
        };
        let mut recorded = Recorded {
            run,
            ended,
            ancestry,
            board: BoardView::default(),
            births: HashMap::new(),
        };
        for (envelope, fact) in facts(&self.ledger, run)? {
            recorded.board.record(&fact)?;
            if let Fact::Assigned(assigned) = fact {
                let first = recorded.ancestry.assigned(&assigned.key.as_str().into());
                recorded.births.insert(assigned.key, first.unwrap_or(envelope.at));
            }
        }
        self.drive(&recorded, first, &mut told).await?;
        Ok(told)
    }

    /// Drives a body, and those of the packages that it assigns, as far as the log goes.
    async fn drive(&self, recorded: &Recorded<'_>, first: Driven, told: &mut Replayed) -> Result<(), Error> {
        let mut bodies = VecDeque::from([first]);
        while let Some(Driven {
            id,
            birth,
            past,
            body,
            agent,
            within,
            token,
        }) = bodies.pop_front()
        {
            let rehearsal = Rehearsal::new(self.ledger.clone(), self.upcasters.clone(), self.at);
            let laid = Assigned::default();
            let runtime = self.runtime(&rehearsal, past, within, &laid)?;
            for finding in rehearse(&runtime, &rehearsal, &id, birth, body, agent).await {
                told.found(token.as_deref(), &finding);
            }
            let laid = std::mem::take(&mut *laid.lock().unwrap_or_else(PoisonError::into_inner));
            for (body, laid) in laid {
                bodies.extend(self.package(recorded, (body, laid), told)?);
            }
        }
        Ok(())
    }

    fn runtime(
        &self,
        rehearsal: &Arc<Rehearsal>,
        (before, past): (Before, Vec<Topic>),
        within: Option<Key>,
        laid: &Assigned,
    ) -> Result<Arc<Runtime>, Error> {
        let mut state = self.state.clone();
        let (laid, notes) = (laid.clone(), rehearsal.clone());
        let known = inherited(&self.ledger, before, past)?;
        state.insert(Link {
            take: Arc::new(move |body, packages| {
                let mut laid = laid.lock().unwrap_or_else(PoisonError::into_inner);
                for package in packages {
                    if !body.scope.is_on_log(&package.key) {
                        notes.would_begin(body.scope.id(), &package.key, package.work.name);
                    }
                    laid.push((body.clone(), package));
                }
            }),
            within,
        });
        let runtime = Runtime::rehearsed(rehearsal.clone()).history(known);
        Ok(Arc::new(runtime.code(self.registry.clone()).state(state)))
    }

    /// The body of a package, if the log holds something of it that today's code would be asked for.
    fn package(
        &self,
        recorded: &Recorded<'_>,
        (body, laid): (Arc<Body>, Laid),
        told: &mut Replayed,
    ) -> Result<Option<Driven>, Error> {
        let Recorded {
            run,
            ended,
            ancestry,
            board,
            births,
        } = recorded;
        let Some(package) = board.package(&laid.key) else {
            return Ok(None);
        };
        // What has its answer is not driven again, and what nobody cleared has not begun.
        if package.outcome.is_some() && !ended || !matches!(package.ruling, Some(Verdict::Go { .. })) {
            return Ok(None);
        }
        let token = &package.assigned.token;
        let (seat, before) = match package.assigned.kind {
            PackageKind::Orchestrator => (
                Seat::of_orchestrator(run, (String::new(), 0), Some(token)),
                ancestry.of_orchestrator(),
            ),
            PackageKind::Agent | PackageKind::Plan => (
                Seat::of_token(run, token, (String::new(), 0)),
                ancestry.of_package(&laid.key),
            ),
        };
        if self.ledger.store().head(&seat.topic)? == 0 && before.is_empty() {
            return Ok(None);
        }
        let assigned = package.assigned.clone();
        let job = Job::new(laid, body);
        let Ok(args) = job.args() else { return Ok(None) };
        let (planned, written) = job.laid.work.plan(&assigned, &job.inputs());
        if let Planned::Failed(error) = planned {
            let (name, outlook) = (&assigned.name, Outlook::RunsAgain);
            told.add(
                outlook,
                format!("the plan of `{name}` cannot be written any more: {error}"),
            );
            return Ok(None);
        }
        if assigned.kind == PackageKind::Plan && written.is_none() {
            return Ok(None);
        }
        let agent = job.laid.work.entry.filter(|_| assigned.kind == PackageKind::Agent);
        Ok(Some(Driven {
            id: assigned.key.clone(),
            birth: births.get(&assigned.key).copied().unwrap_or(self.at),
            past: (before, seat.past),
            body: job.laid.work.prepare(args, written),
            agent,
            within: Some(assigned.key.as_str().into()),
            token: Some(token.to_string()),
        }))
    }
}

impl Neuron {
    /// A dry run: what the code of this program would do with a run, if it took it up now. Nothing is appended, nothing is
    /// claimed, no step runs, and the run may go on in another process meanwhile. Its orchestrator's body, and those of
    /// the packages that have begun and not ended, are driven over their recorded answers up to where the log ends; of a
    /// run that has ended, all of them.
    ///
    /// What stands in a body between its calls is carried out, as in any replay.
    ///
    /// ```standalone_crate
    /// # use orchestrator::prelude::*;
    /// # #[orchestrator]
    /// # async fn digest(_board: &Board) -> Result<()> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let neuron = Neuron::builder().memory().await?;
    /// neuron.run(digest, ()).id("monday").await?;
    /// let replayed = neuron.replay(&RunId::new("monday")?).await?;
    /// assert!(replayed.goes_on(), "{:?}", replayed.findings);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such run; a kind of the disk. What is wrong with the run is no error.
    pub async fn replay(&self, run: &RunId) -> Result<Replayed, Error> {
        let (dry, run) = (self.dry()?, run.clone());
        aside(async move { dry.run(&run).await }).await
    }

    /// A dry run of every run that has not ended, oldest first.
    ///
    /// ```
    /// # use orchestrator::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let neuron = Neuron::builder().memory().await?;
    /// for replayed in neuron.replay_open().await? {
    ///     println!("{} {}", replayed.run, replayed.outlook);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Neuron::replay`].
    pub async fn replay_open(&self) -> Result<Vec<Replayed>, Error> {
        let dry = self.dry()?;
        aside(async move { dry.open().await }).await
    }

    fn dry(&self) -> Result<Replay, Error> {
        let engine = &self.0;
        let (registry, upcasters) = (engine.registry.clone(), engine.upcasters.clone());
        Replay::new(&engine.ledger, registry, upcasters, engine.state.clone())
    }
}

/// Where reading stalls no task.
async fn aside<T: Send + 'static>(work: impl Future<Output = Result<T, Error>> + Send + 'static) -> Result<T, Error> {
    let runtime = tokio::runtime::Handle::current();
    let done = tokio::task::spawn_blocking(move || runtime.block_on(work)).await;
    done.map_err(|error| Error::new(ErrorKind::Io, error))?
}
