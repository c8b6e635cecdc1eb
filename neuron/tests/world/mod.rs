//! Bodies driven on a log in memory, cut where a crash would cut it.

#![allow(dead_code, reason = "each test binary uses its part")]

mod log;

use std::sync::{Arc, Mutex, PoisonError};

use neuron::{
    Callable, Error, Millis, Result,
    def::{Args, Def, Entry, Registry, encode},
    scope::{Code, Journal as _, MemoryJournal, Record, Runtime, Stop, incarnations},
};

#[allow(unused_imports, reason = "each test binary uses its part")]
pub(crate) use log::{Log, Ticking, say};

type ArgsOf<F, M> = <<F as Callable<M>>::Def as Def>::Args;
type Bare<F, M> = <ArgsOf<F, M> as Args>::Bare;
type Output<F, M> = <<F as Callable<M>>::Def as Def>::Output;

/// A log, and how a process would come to it.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) strict: bool,
    pub(crate) taken_over: bool,
    pub(crate) code: Registry,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// What a crash right after record `count` leaves.
    pub(crate) fn cut(&self, count: usize) -> Self {
        Self {
            journal: Arc::new(self.journal.cut(count)),
            ..self.clone()
        }
    }

    /// What a crash now leaves: what was deferred and not committed is gone.
    pub(crate) fn crash(&self) -> Self {
        self.cut(usize::MAX)
    }

    pub(crate) fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    pub(crate) fn runtime(&self) -> Arc<Runtime> {
        let code: Arc<dyn Code> = Arc::new(self.code.clone());
        let runtime = Runtime::new(self.journal.clone())
            .history(self.journal.history().unwrap())
            .code(code);
        Arc::new(runtime.strict(self.strict).taken_over(self.taken_over))
    }

    /// Runs an agent to its end.
    pub(crate) async fn run<M, F: Callable<M>>(&self, agent: F, args: Bare<F, M>) -> Result<Output<F, M>, Error> {
        self.run_in(&self.runtime(), agent, args)
            .await
            .map_err(Stop::into_error)?
    }

    pub(crate) async fn run_in<M, F: Callable<M>>(
        &self,
        runtime: &Arc<Runtime>,
        agent: F,
        args: Bare<F, M>,
    ) -> Result<Result<Output<F, M>, Error>, Stop> {
        let entry = entry(agent);
        let args = encode::<F::Def>(&ArgsOf::<F, M>::from_bare(args)).unwrap().revealed;
        let first = move |scope| {
            let body = entry.run(scope, args);
            Ok(Box::pin(async move { body.await.map(|ran| ran.json) }) as _)
        };
        let outcome = incarnations(runtime, "run", Millis(1), entry, first).await?;
        Ok(outcome.map(|json| json.decode().unwrap()))
    }

    /// Commits what was deferred, which else rides with the next commit.
    pub(crate) async fn flush(&self) {
        let last = self.journal.lines().last().cloned().unwrap().1;
        let record = Record {
            kind: "test.flushed",
            ..last
        };
        self.journal.append(record, Box::new(|_| {})).await.unwrap();
    }

    /// The log, as `type name`.
    pub(crate) fn log(&self) -> Vec<String> {
        let lines = self.journal.lines().into_iter();
        let line = |record: Record| {
            let name = record.payload.to_value()["name"].as_str().unwrap_or("").to_owned();
            format!("{} {name}", record.kind).trim().to_owned()
        };
        lines.map(|(_, record)| line(record)).collect()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.log().iter().filter(|known| *known == line).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.journal.lines().len()
    }

    /// The payloads of a type, oldest first.
    pub(crate) fn payloads(&self, kind: &str) -> Vec<serde_json::Value> {
        let lines = self
            .journal
            .lines()
            .into_iter()
            .filter(|(_, record)| record.kind == kind);
        lines.map(|(_, record)| record.payload.to_value()).collect()
    }

    pub(crate) fn completed(&self) -> usize {
        self.log()
            .iter()
            .filter(|line| line.starts_with("step.completed"))
            .count()
    }
}

pub(crate) fn entry<M, F: Callable<M>>(_: F) -> &'static Entry {
    const { &Entry::of::<F::Def>() }
}

/// What steps did, in this process.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Vec<String>>);

impl Seen {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn starting(&self, with: &str) -> usize {
        self.all().iter().filter(|what| what.starts_with(with)).count()
    }
}

/// Runs an agent, then again from every cut of its log: the same result at the last one, every step completed once, and
/// nothing that the code does not ask for.
pub(crate) async fn cut_everywhere<M, F: Callable<M>>(agent: F, args: Bare<F, M>)
where
    Bare<F, M>: Clone,
    Output<F, M>: PartialEq + std::fmt::Debug,
{
    let whole = World::new();
    let want = whole.run(agent, args.clone()).await.unwrap();
    let steps = whole.completed();
    for cut in 0..=whole.len() {
        let world = whole.cut(cut);
        let got = world.run(agent, args.clone()).await.unwrap();
        if cut == whole.len() {
            assert_eq!(got, want, "the whole log gives the same");
        }
        world.flush().await;
        for finding in ["replay.diverged", "replay.reordered", "replay.unrecorded"] {
            assert!(world.payloads(finding).is_empty(), "cut {cut}: {:#?}", world.log());
        }
        assert_eq!(world.completed(), steps, "cut {cut}: {:#?}", world.log());
    }
}
