//! What a step costs: how many commits, counted where they are made.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use neuron::{
    Author, Callable, Cx, Error, Ledger, Millis, Result, SystemClock, TokenId, agent,
    agent::{LedgerJournal, Place},
    def::Def,
    pipeline::Pipeline,
    schema::Upcasters,
    scope::{Manner, Runtime, Scope, contain},
    step,
    store::{Fault, Memory, Point},
    topic::catalog,
};
use world::entry;

const STEPS: u64 = 10;

#[derive(Debug, Default)]
struct Commits(AtomicU64);

impl Fault for Commits {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == Point::AfterCommit {
            self.0.fetch_add(1, SeqCst);
        }
        Ok(())
    }
}

#[step]
async fn plain(_cx: &Cx, number: u64) -> Result<u64> {
    Ok(number)
}

#[step]
async fn keeps(cx: &Cx, number: u64) -> Result<u64> {
    cx.artifact("same", "log", "the same").await?;
    Ok(number)
}

#[step(once)]
async fn guarded(_cx: &Cx, number: u64) -> Result<u64> {
    Ok(number)
}

#[agent]
async fn plains(cx: &Cx) -> Result<()> {
    for number in 0..STEPS {
        plain(cx, number).await?;
    }
    Ok(())
}

#[agent]
async fn keepers(cx: &Cx) -> Result<()> {
    for number in 0..STEPS {
        keeps(cx, number).await?;
    }
    Ok(())
}

#[agent]
async fn guards(cx: &Cx) -> Result<()> {
    for number in 0..STEPS {
        guarded(cx, number).await?;
    }
    Ok(())
}

/// The commits of one run.
async fn run<M, F: Callable<M>>(agent: F) -> u64
where
    F::Def: Def<Args = ()>,
{
    let commits = Arc::new(Commits::default());
    let clock = Arc::new(SystemClock);
    let store = Arc::new(Memory::with(clock.clone(), Some(commits.clone())).unwrap());
    let ledger = Ledger::over(store, clock, Pipeline::default()).unwrap();
    let token = TokenId::new("counted-1").unwrap();
    let place = Place {
        topic: catalog::steps(&token),
        author: Author::from(&token),
        owner: ("run:r".into(), 0),
        control: vec![catalog::control(&token)],
        given: catalog::control(&token),
        cause: None,
        progress: None,
    };
    let journal = Arc::new(LedgerJournal::new(ledger, place, Arc::new(Upcasters::default())));
    let runtime = Arc::new(Runtime::new(journal));
    let scope = Scope::root(&runtime, "package", Millis(1), Manner::Replayed);
    let none = neuron::Json::parse("{}").unwrap();
    let before = commits.0.load(SeqCst);
    contain(&scope, entry(agent).run(scope.clone(), none))
        .await
        .unwrap()
        .unwrap();
    commits.0.load(SeqCst) - before
}

/// A start that found no commit to ride on for 100 ms makes its own; of several runs, one is not held up so long.
async fn least<M, F: Callable<M>>(agent: F) -> u64
where
    F::Def: Def<Args = ()>,
{
    let mut least = u64::MAX;
    for _ in 0..5 {
        least = least.min(run(agent).await);
    }
    least
}

#[tokio::test]
async fn a_completed_step_costs_one_commit_with_its_start_and_what_it_kept() {
    assert_eq!(least(plains).await, STEPS);
    assert_eq!(least(keepers).await, STEPS);
}

#[tokio::test]
async fn a_step_that_must_not_happen_twice_costs_two_commits() {
    assert_eq!(least(guards).await, 2 * STEPS);
}
