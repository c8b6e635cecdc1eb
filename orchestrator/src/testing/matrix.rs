use std::{collections::BTreeMap, fmt, future::IntoFuture, pin::Pin, sync::Arc};

use futures::future::BoxFuture;
use neuron::{
    Callable, Error, ErrorKind, Json, Ledger, Millis, Orchestrator, Pattern, Result,
    def::{Args, Def},
    ledger::From,
    limits,
    store::{Point, Select, verify::verify},
    testing::{Cut, Faults, PausedClock, tail},
    vocabulary::{
        Message as _,
        step::{ReplayOnceChanged, StepCompleted, StepDoubted, StepFailed},
    },
};
use serde_json::Value;

use super::place::Place;
use crate::{Board, Builder, Neuron};

/// Envelopes at the end of a log that a finding shows.
const TAIL: u64 = 12;
/// How often in a row nothing may happen before a run is stuck: a commit of another thread is nothing that tokio sees.
const QUIET: u32 = 3;

type Runner = dyn Fn(&Neuron) -> BoxFuture<'static, Result<Json, Error>> + Send + Sync;

/// Crashes a run of an orchestrator at each of its commits in turn, runs it again, and holds what comes of it to what
/// neuron promises: the same output, no step that had an answer ran again, no call has two answers, the code asks for what
/// the log has recorded, and the log verifies. The first crash after which that is not so is the error; it names the
/// commit and shows the end of the log.
///
/// The run is crashed both after each commit and before it (a step has acted, and its end is lost). Nothing is killed: at
/// the moment of the crash commits end, bodies of steps are polled no more, and the runtime of that run is dropped with
/// all its tasks. A process that the system kills is what
/// [`Crash`](neuron::store::Crash) is for. The time is paused and jumps to the next timer whenever nothing else is to be
/// done, so that sleeps and waits between attempts take next to none (a body that sleeps looks at the clock every
/// [`CLOCK_LOOK`](neuron::limits::CLOCK_LOOK): keep sleeps of days short in a test).
///
/// `builder` sets up each process, as the program itself does: shared state that belongs to the outside (a mailbox that
/// records what was sent) is to be made once and cloned in.
///
/// ```standalone_crate
/// use orchestrator::{prelude::*, testing::crash_matrix};
///
/// #[step]
/// async fn count(_cx: &Cx, word: String) -> Result<usize> {
///     Ok(word.len())
/// }
///
/// #[agent]
/// async fn reader(cx: &Cx, word: String) -> Result<usize> {
///     Ok(count(cx, word.clone()).await? + count(cx, word).await?)
/// }
///
/// #[orchestrator]
/// async fn letters(board: &Board, word: String) -> Result<usize> {
///     Ok(board.assign(reader, word).await?)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let survived = crash_matrix(Neuron::builder, letters, "word".into()).await?;
/// assert!(survived.crashes > 10);
/// # Ok(())
/// # }
/// ```
pub fn crash_matrix<M, F>(
    builder: impl Fn() -> Builder + Send + Sync + 'static,
    orchestrator: F,
    args: <<F::Def as Def>::Args as Args>::Bare,
) -> CrashMatrix
where
    F: Callable<M>,
    F::Def: Orchestrator + Def<Context = Board>,
    <<F::Def as Def>::Args as Args>::Bare: Clone + Send + Sync + 'static,
{
    let run = move |neuron: &Neuron| -> BoxFuture<'static, Result<Json, Error>> {
        let run = neuron.run(orchestrator, args.clone()).id("matrix");
        Box::pin(async move { Json::of(&run.await?) })
    };
    CrashMatrix {
        builder: Arc::new(builder),
        run: Arc::new(run),
        on_disk: false,
    }
}

/// A crash matrix that is about to be walked: await it.
#[derive(Clone)]
#[must_use = "a crash matrix does nothing until it is awaited"]
pub struct CrashMatrix {
    builder: Arc<dyn Fn() -> Builder + Send + Sync>,
    run: Arc<Runner>,
    on_disk: bool,
}

/// What a crash matrix has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Survived {
    /// Crashes, all of which the run has survived.
    pub crashes: u64,
    /// Those after which the run waits for a ruling, because nobody knows whether a `once` step has happened. That is as
    /// it should be, and its output is not looked at; `resolve = …` on the step lets the program find out by itself.
    pub in_doubt: u64,
}

/// How one process has ended.
enum Ended {
    Whole(Result<Json, Error>),
    Crashed,
    InDoubt(String),
    Stuck,
}

/// A crash, to be told about.
#[derive(Clone, Copy)]
struct Crash {
    point: Point,
    commit: u64,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = if self.point == Point::AfterCommit {
            "after"
        } else {
            "before"
        };
        write!(f, "crashed {point} commit {} and run again", self.commit)
    }
}

impl CrashMatrix {
    /// Each run has an SQLite file of its own, in a folder that is gone afterwards; in memory unless said so.
    pub fn on_disk(mut self) -> Self {
        self.on_disk = true;
        self
    }

    fn walk(&self) -> Result<Survived, Error> {
        let wanted = self.undisturbed()?;
        let mut survived = Survived::default();
        for point in [Point::AfterCommit, Point::BeforeCommit] {
            for commit in 1.. {
                match self.crashed(Crash { point, commit }, &wanted)? {
                    None => break,
                    Some(in_doubt) => {
                        survived.crashes += 1;
                        survived.in_doubt += u64::from(in_doubt);
                    }
                }
            }
        }
        Ok(survived)
    }

    fn place(&self) -> Result<Place, Error> {
        if self.on_disk {
            Place::folder()
        } else {
            Ok(Place::memory())
        }
    }

    /// What a run gives that nothing disturbs.
    fn undisturbed(&self) -> Result<Result<Json, Error>, Error> {
        let mut place = self.place()?;
        let cut = Cut::at(Point::AfterCommit, 0);
        self.process((&mut place, None), &cut, &Faults::new(), |ended, ledger| match ended {
            Ended::Whole(outcome) => Ok(outcome),
            Ended::InDoubt(step) => Err(found(
                ErrorKind::InDoubt,
                &format!("undisturbed, it waits for a ruling on {step}"),
                ledger,
            )),
            Ended::Stuck | Ended::Crashed => Err(found(ErrorKind::Failed, "undisturbed, it never ends", ledger)),
        })
    }

    /// Crashes a run and runs it again; `None` if it has fewer commits, else whether it waits for a ruling.
    fn crashed(&self, crash: Crash, wanted: &Result<Json, Error>) -> Result<Option<bool>, Error> {
        let mut place = self.place()?;
        let cut = Cut::at(crash.point, crash.commit);
        let died = self.process((&mut place, None), &cut, &Faults::new(), |ended, ledger| match ended {
            Ended::Crashed => Ok(Some((ledger.clock().now(), answers(ledger)?))),
            Ended::Whole(outcome) if outcome == *wanted => Ok(None),
            Ended::Whole(outcome) => {
                let why = format!(
                    "two undisturbed runs differ: {}, then {}",
                    shown(wanted),
                    shown(&outcome)
                );
                Err(found(ErrorKind::Diverged, &why, ledger))
            }
            Ended::InDoubt(_) | Ended::Stuck => {
                Err(found(ErrorKind::Failed, "undisturbed, it does not always end", ledger))
            }
        })?;
        let Some((at, answered)) = died else { return Ok(None) };
        let (cut, faults) = (Cut::at(Point::AfterCommit, 0), Faults::new());
        let (ended, findings) = self.process((&mut place, Some(at)), &cut, &faults, |ended, ledger| {
            // What is only deferred counts as well.
            ledger.store().flush();
            Ok((ended, Findings::of(ledger)?))
        })?;
        let tell = |kind, why: &str| {
            Err(Error::new(
                kind,
                format!("{crash}: {why}\nthe end of the log:\n{}", findings.tail),
            ))
        };
        if let Some(call) = faults.entered().iter().find(|call| answered.contains_key(&*call.key)) {
            return tell(
                ErrorKind::Failed,
                &format!("`{}` had an answer and ran again (key {})", call.name, call.key),
            );
        }
        if let Some((key, _)) = findings.answers.iter().find(|(_, count)| **count > 1) {
            return tell(ErrorKind::Failed, &format!("the call {key} has two answers"));
        }
        if let Some(divergence) = findings.divergence {
            return tell(
                ErrorKind::Diverged,
                &format!("the code asked for something else than it had: {divergence}"),
            );
        }
        if let Some(damage) = findings.damage {
            return tell(ErrorKind::Corrupt, &format!("the log does not verify: {damage}"));
        }
        match ended {
            Ended::Whole(outcome) if outcome == *wanted => Ok(Some(false)),
            Ended::Whole(outcome) => tell(
                ErrorKind::Failed,
                &format!("it gives {}, undisturbed {}", shown(&outcome), shown(wanted)),
            ),
            Ended::InDoubt(_) => Ok(Some(true)),
            Ended::Stuck | Ended::Crashed => tell(ErrorKind::Failed, "it never ends"),
        }
    }

    /// One process: a runtime of its own, which is dropped with all that still runs in it. `from` is where its log stands
    /// and when it begins.
    fn process<T>(
        &self,
        from: (&mut Place, Option<Millis>),
        cut: &Arc<Cut>,
        faults: &Faults,
        look: impl FnOnce(Ended, &Ledger) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (place, at) = from;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let clock = match at {
                None => PausedClock::new()?,
                Some(at) => PausedClock::from(at)?,
            };
            let neuron = place.open((self.builder)(), clock, faults, cut).await?;
            let ledger = neuron.ledger();
            let ended = tokio::select! {
                biased;
                () = cut.fallen() => Ended::Crashed,
                outcome = (self.run)(&neuron) => if cut.has_fallen() { Ended::Crashed } else { Ended::Whole(outcome) },
                doubted = doubted(ledger) => Ended::InDoubt(doubted?),
                quiet = quiet(ledger) => quiet.map(|()| Ended::Stuck)?,
            };
            look(ended, ledger)
        })
    }
}

impl IntoFuture for CrashMatrix {
    type Output = Result<Survived, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            // Each process has a runtime of its own, which cannot stand inside the caller's.
            let walked = tokio::task::spawn_blocking(move || self.walk()).await;
            walked.unwrap_or_else(|panic| Err(Error::new(ErrorKind::Panicked, panic)))
        })
    }
}

impl fmt::Debug for CrashMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashMatrix")
            .field("on_disk", &self.on_disk)
            .finish_non_exhaustive()
    }
}

/// What the log of a run says that was crashed and run again.
struct Findings {
    answers: BTreeMap<String, u64>,
    divergence: Option<String>,
    damage: Option<Error>,
    tail: String,
}

impl Findings {
    fn of(ledger: &Ledger) -> Result<Self, Error> {
        let mut divergence = None;
        for envelope in ledger.read(Select::All).envelopes() {
            let envelope = envelope?;
            let kind = envelope.body.kind.as_str();
            if kind.starts_with("replay.") && kind != ReplayOnceChanged::TYPE {
                let payload = envelope.body.payload.as_ref().map_or("", Json::as_str);
                divergence = Some(format!("{kind} at pos {}: {payload}", envelope.pos));
                break;
            }
        }
        Ok(Self {
            answers: answers(ledger)?,
            divergence,
            damage: verify(&**ledger.store()).err(),
            tail: tail(ledger, TAIL)?,
        })
    }
}

/// How often each call of a step was answered.
fn answers(ledger: &Ledger) -> Result<BTreeMap<String, u64>, Error> {
    let mut answers = BTreeMap::new();
    for kind in [StepCompleted::TYPE, StepFailed::TYPE] {
        for envelope in ledger.read(Select::Kind(neuron::Kind::new(kind)?)).envelopes() {
            let payload: Value = envelope?.decode()?;
            let key = payload["key"].as_str().unwrap_or_default();
            *answers.entry(key.to_owned()).or_default() += 1;
        }
    }
    Ok(answers)
}

/// Waits until a step is in doubt, and says which.
async fn doubted(ledger: &Ledger) -> Result<String, Error> {
    let mut all = ledger.subscribe(Pattern::new("**")?, From::Start)?;
    loop {
        let envelope = all.next().await?;
        if [StepDoubted::TYPE, ReplayOnceChanged::TYPE].contains(&envelope.body.kind.as_str()) {
            let payload: Value = envelope.decode()?;
            return Ok(format!("`{}`", payload["name"].as_str().unwrap_or_default()));
        }
    }
}

/// Waits until nothing happens any more.
async fn quiet(ledger: &Ledger) -> Result<(), Error> {
    let (mut last, mut rounds) = (0, 0);
    while rounds < QUIET {
        tokio::time::sleep(limits::TEST_STUCK_AFTER).await;
        let store = ledger.store().clone();
        let flushed = tokio::task::spawn_blocking(move || store.flush()).await;
        flushed.map_err(|error| Error::new(ErrorKind::Io, error))?;
        let now = ledger.store().last()?.0;
        rounds = if now == last { rounds + 1 } else { 0 };
        last = now;
    }
    Ok(())
}

fn shown(outcome: &Result<Json, Error>) -> String {
    match outcome {
        Ok(output) => format!("`{}`", output.as_str()),
        Err(error) => format!("the failure `{error}`"),
    }
}

fn found(kind: ErrorKind, why: &str, ledger: &Ledger) -> Error {
    let tail = tail(ledger, TAIL).unwrap_or_else(|error| format!("    it cannot be read: {error}"));
    Error::new(kind, format!("{why}\nthe end of the log:\n{tail}"))
}
