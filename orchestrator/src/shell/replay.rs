use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use neuron::{
    Error, ErrorKind, Ledger, Millis, Result, RunId, Topic,
    agent::history,
    def::Registry,
    schema::Upcasters,
    scope::{self, Finding, Rehearsal, Runtime, rehearse},
};
use serde::Serialize;

use super::{
    Neuron,
    assign::Prepared,
    body::{Body, Link},
    execute::Seat,
    job::Job,
    laid::Laid,
    standing::{Standing, standing},
};
use crate::{
    board::{BoardView, facts},
    fact::Fact,
    package::{Key, PackageKind},
    protocol::Planned,
    ruling::Verdict,
    runs::Unfinished,
};

/// What the code of this program would do with a run, if it took it up now: found out by a dry run over its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// The run.
    pub run: RunId,
    /// Its orchestrator, as the log calls it.
    pub name: String,
    /// The build that began it.
    pub build: String,
    /// The worst of what was found.
    pub outlook: Outlook,
    /// What was found; empty if the run would go on as recorded.
    pub findings: Vec<Found>,
}

/// What would become of a run, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outlook {
    /// It would go on as recorded.
    GoesOn,
    /// Something would run before what is recorded already.
    RunsFirst,
    /// Recorded answers would not be asked for: what they say would be done again otherwise, or is lost.
    RunsAgain,
    /// A body awaits what is not on the log, so that no replay is sure.
    Unrecorded,
    /// A payment would be held until a person rules on it.
    Held,
    /// Something recorded does not decode as the present type: the run would be held, or cannot be taken up.
    Undecodable,
    /// Its orchestrator is not registered in this program.
    NoCode,
    /// Its log is damaged.
    Damaged,
}

impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::GoesOn => "goes on",
            Self::RunsFirst => "runs first",
            Self::RunsAgain => "runs again",
            Self::Unrecorded => "unrecorded",
            Self::Held => "held",
            Self::Undecodable => "undecodable",
            Self::NoCode => "no code",
            Self::Damaged => "damaged",
        })
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// What it means for the run.
    pub outlook: Outlook,
    /// The token of the package in whose body it was found; none for the orchestrator's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The step, package or thread that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The `pos` of the recorded envelope that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pos: Option<u64>,
    /// All of it, as a sentence.
    pub message: String,
}

impl Replayed {
    /// Whether the run would go on as recorded.
    pub fn goes_on(&self) -> bool {
        self.outlook == Outlook::GoesOn
    }
}

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

/// A body that is to be driven.
struct Driven {
    id: String,
    birth: Millis,
    past: Vec<Topic>,
    body: Prepared,
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
        let body: Prepared = Box::new(move |scope| {
            let body = entry.run(scope, args);
            Ok(Box::pin(async move { body.await.map(|ran| ran.json) }) as _)
        });
        let first = Driven {
            id: run.to_string(),
            birth: created.envelope.at,
            past: seat.past,
            body,
            within: None,
            token: None,
        };
        self.drive(run, first, ended, &mut told).await?;
        Ok(told)
    }

    /// Drives a body, and those of the packages that it assigns, as far as the log goes.
    async fn drive(&self, run: &RunId, first: Driven, ended: bool, told: &mut Replayed) -> Result<(), Error> {
        let mut board = BoardView::default();
        let mut births = HashMap::new();
        for (envelope, fact) in facts(&self.ledger, run)? {
            board.record(&fact)?;
            if let Fact::Assigned(assigned) = fact {
                births.insert(assigned.key, envelope.at);
            }
        }
        let mut bodies = VecDeque::from([first]);
        while let Some(Driven {
            id,
            birth,
            past,
            body,
            within,
            token,
        }) = bodies.pop_front()
        {
            let rehearsal = Rehearsal::new(self.upcasters.clone(), self.at);
            let laid = Assigned::default();
            let runtime = self.runtime(&rehearsal, past, within, &laid)?;
            for finding in rehearse(&runtime, &rehearsal, &id, birth, body).await {
                told.found(token.as_deref(), &finding);
            }
            let laid = std::mem::take(&mut *laid.lock().unwrap_or_else(PoisonError::into_inner));
            for (body, laid) in laid {
                bodies.extend(self.package(run, &board, &births, ended, (body, laid), told)?);
            }
        }
        Ok(())
    }

    fn runtime(
        &self,
        rehearsal: &Arc<Rehearsal>,
        past: Vec<Topic>,
        within: Option<Key>,
        laid: &Assigned,
    ) -> Result<Arc<Runtime>, Error> {
        let mut state = self.state.clone();
        let (laid, notes) = (laid.clone(), rehearsal.clone());
        let known = history(&self.ledger, past)?;
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
        run: &RunId,
        board: &BoardView,
        births: &HashMap<String, Millis>,
        ended: bool,
        (body, laid): (Arc<Body>, Laid),
        told: &mut Replayed,
    ) -> Result<Option<Driven>, Error> {
        let Some(package) = board.package(&laid.key) else {
            return Ok(None);
        };
        // What has its answer is not driven again, and what nobody cleared has not begun.
        if package.outcome.is_some() && !ended || !matches!(package.ruling, Some(Verdict::Go { .. })) {
            return Ok(None);
        }
        let token = &package.assigned.token;
        let seat = match package.assigned.kind {
            PackageKind::Orchestrator => Seat::of_orchestrator(run, (String::new(), 0), Some(token)),
            PackageKind::Agent | PackageKind::Plan => Seat::of_token(run, token, (String::new(), 0)),
        };
        if self.ledger.store().head(&seat.topic)? == 0 {
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
        Ok(Some(Driven {
            id: assigned.key.clone(),
            birth: births.get(&assigned.key).copied().unwrap_or(self.at),
            past: seat.past,
            body: job.laid.work.prepare(args, written),
            within: Some(assigned.key.as_str().into()),
            token: Some(token.to_string()),
        }))
    }
}

fn damaged(run: &RunId, name: String, error: &Error) -> Replayed {
    let mut told = Replayed {
        run: run.clone(),
        name,
        build: String::new(),
        outlook: Outlook::GoesOn,
        findings: Vec::new(),
    };
    told.add(
        Outlook::Damaged,
        format!("the log of the run is damaged (`neuron verify` says where): {error}"),
    );
    told
}

impl Replayed {
    fn add(&mut self, outlook: Outlook, message: String) {
        self.push(Found {
            outlook,
            token: None,
            name: None,
            pos: None,
            message,
        });
    }

    fn push(&mut self, found: Found) {
        self.outlook = self.outlook.max(found.outlook);
        self.findings.push(found);
    }

    fn found(&mut self, token: Option<&str>, finding: &Finding) {
        let (outlook, name, pos, message) = match finding {
            Finding::Unasked { name, pos, instead, .. } => (
                Outlook::RunsAgain,
                Some(name),
                Some(*pos),
                match instead {
                    Some(_) => format!("`{name}` is recorded at {pos} with other arguments, and would run again"),
                    None => format!("the code no longer asks for `{name}`, which is recorded at {pos}"),
                },
            ),
            Finding::First { name, before, pos, .. } => (
                Outlook::RunsFirst,
                Some(name),
                Some(*pos),
                format!(
                    "`{name}` would run before `{before}`, which is recorded at {pos}; whether the code asks for that \
                     nobody can know before"
                ),
            ),
            Finding::Held { name, .. } => (
                Outlook::Held,
                Some(name),
                None,
                format!("`{name}` must not happen twice and is recorded otherwise: it would wait for `neuron resolve`"),
            ),
            Finding::Stopped(error) if error.kind() == ErrorKind::ReplayDecode => {
                (Outlook::Undecodable, None, None, error.to_string())
            }
            Finding::Stopped(error) => (Outlook::RunsAgain, None, None, format!("the body stops: {error}")),
            _ => (
                Outlook::Unrecorded,
                None,
                None,
                "the body awaits what is not on the log; await calls of its context only".into(),
            ),
        };
        self.push(Found {
            outlook,
            token: token.map(Into::into),
            name: name.cloned(),
            pos,
            message,
        });
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
    /// ```
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
