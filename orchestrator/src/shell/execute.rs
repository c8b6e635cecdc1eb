use std::sync::Arc;

use neuron::{
    Author, Cause, Error, ErrorKind, Json, Ledger, Millis, Result, RunId, TokenId, Topic,
    agent::{LedgerJournal, Place, inherited},
    def::Entry,
    schema::Upcasters,
    scope::{Admission, History, Manner, Runtime, Scope, State, Stop, contain, incarnations},
    topic::catalog,
};

use super::{assign::Prepared, engine::Engine, signal::Signal};
use crate::{ancestry::Before, package::Key};

/// Where a body writes, and whom it obeys.
pub(crate) struct Seat {
    pub(crate) topic: Topic,
    /// Where its answers, and what it has assigned, stand.
    pub(crate) past: Vec<Topic>,
    /// Where, of a fork, those stand that it begins with.
    pub(crate) before: Before,
    /// The run, if it is a fork.
    pub(crate) fork: Option<RunId>,
    pub(crate) author: Author,
    pub(crate) owner: (String, u64),
    pub(crate) control: Vec<Topic>,
    /// On which of these it is answered and asked.
    pub(crate) given: Topic,
    pub(crate) cause: Option<Cause>,
    pub(crate) progress: Topic,
    /// The `pos` of what created the run.
    pub(crate) born: u64,
    /// Whether the log may hold something of it already.
    pub(crate) resumed: bool,
    /// Whether the owner before this one died.
    pub(crate) taken_over: bool,
}

impl Seat {
    /// The seat of an orchestrator's body: the run's, or that of the package with this token.
    pub(crate) fn of_orchestrator(run: &RunId, owner: (String, u64), token: Option<&TokenId>) -> Self {
        Self {
            topic: catalog::lifecycle(run),
            past: vec![catalog::lifecycle(run), catalog::packages(run)],
            before: Before::new(),
            fork: None,
            author: Author::from(run),
            owner,
            control: std::iter::once(catalog::run_control(run))
                .chain(token.map(catalog::control))
                .collect(),
            given: catalog::run_control(run),
            cause: None,
            progress: catalog::progress(run),
            born: 0,
            resumed: false,
            taken_over: false,
        }
    }

    /// The seat of an agent, or of the rows of a plan.
    pub(crate) fn of_token(run: &RunId, token: &TokenId, owner: (String, u64)) -> Self {
        Self {
            topic: catalog::steps(token),
            past: vec![catalog::steps(token)],
            before: Before::new(),
            fork: None,
            author: Author::from(token),
            owner,
            control: vec![catalog::run_control(run), catalog::control(token)],
            given: catalog::control(token),
            cause: None,
            progress: catalog::progress(run),
            born: 0,
            resumed: false,
            taken_over: false,
        }
    }

    /// What the scopes of the body share.
    pub(crate) async fn runtime(
        self,
        engine: &Engine,
        state: State,
        admission: Option<impl Admission>,
    ) -> Result<Arc<Runtime>, Error> {
        let past = if self.resumed {
            past(engine.ledger.clone(), self.before, self.past).await?
        } else {
            History::new()
        };
        let place = Place {
            topic: self.topic,
            author: self.author,
            owner: self.owner,
            control: self.control,
            given: self.given,
            cause: self.cause,
            progress: Some(self.progress),
        };
        let upcasters: Arc<Upcasters> = engine.upcasters.clone();
        let journal = Arc::new(LedgerJournal::new(engine.ledger.clone(), place, upcasters));
        let runtime = Runtime::new(journal)
            .history(past)
            .code(engine.registry.clone())
            .state(state)
            .born(self.born)
            .strict(engine.strict)
            .taken_over(self.taken_over);
        let runtime = match &self.fork {
            Some(run) => runtime.fork(run.as_str()),
            None => runtime,
        };
        Ok(Arc::new(match admission {
            Some(admission) => runtime.admission(Arc::new(admission)),
            None => runtime,
        }))
    }
}

async fn past(ledger: Ledger, before: Before, topics: Vec<Topic>) -> Result<History, Error> {
    let read = tokio::task::spawn_blocking(move || inherited(&ledger, before, topics)).await;
    read.map_err(|error| Error::new(ErrorKind::Io, error))?
}

/// Drives a body to its end, that of an agent also through each new beginning; `Err` if it was left without one.
pub(crate) async fn execute(
    runtime: Arc<Runtime>,
    id: &str,
    birth: Millis,
    body: Prepared,
    agent: Option<&'static Entry>,
) -> Result<Result<Json, Error>, Stop> {
    if let Some(agent) = agent {
        return incarnations(&runtime, id, birth, agent, body).await;
    }
    let scope = Scope::root(&runtime, id, birth, Manner::Replayed);
    match body(scope.clone()) {
        Ok(body) => contain(&scope, body).await,
        Err(error) => Ok(Err(error)),
    }
}

/// What the driver is told of a body that was left or has ended.
pub(crate) fn told(package: Option<Key>, ended: Result<Result<Json, Error>, Stop>) -> Signal {
    let outcome = match ended {
        Ok(outcome) => outcome.map_err(Error::settled),
        Err(Stop::Cancelled) => Err(Stop::Cancelled.into_error()),
        // An append that expected no cancel met one.
        Err(Stop::Refused(error)) if error.kind() == ErrorKind::Cancelled => Err(error),
        Err(stop @ Stop::Continued) => return Signal::Broken(stop.into_error()),
        Err(Stop::Refused(error) | Stop::Held(error)) => return Signal::Broken(error),
    };
    match package {
        Some(package) => Signal::Ended { package, outcome },
        None => Signal::BodyEnded { outcome },
    }
}
