mod begin;
mod carry;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use neuron::{
    Error, ErrorKind, Json, Result, RunId, TokenId,
    def::Entry,
    limits,
    scope::{Runtime, Stop},
    token::ThreadOrder,
    vocabulary::orchestration::PackageAssigned,
};
use tokio::sync::mpsc;

use super::{
    body::Body,
    engine::Engine,
    job::Job,
    laid::Laid,
    scribe::Scribe,
    signal::{Signal, Signals},
    standing::{End, cancelled},
};
use crate::{
    ancestry::Ancestry,
    fact::Conclusion,
    package::Key,
    protocol::{Assignment, Command, Event, State},
};

/// Brings one run to its end in this process: the only one that rules and appends for it.
pub(crate) struct Driver {
    engine: Arc<Engine>,
    id: RunId,
    owner: (String, u64),
    taken_over: bool,
    /// Whether the log held something of the run when it was taken up.
    resumed: bool,
    /// When and as what it began.
    ancestry: Ancestry,
    state: State,
    scribe: Scribe,
    jobs: HashMap<Key, Job>,
    body: Option<Arc<Runtime>>,
    output: Option<Json>,
    link: Signals,
    signals: mpsc::UnboundedReceiver<Signal>,
    entry: &'static Entry,
    args: Json,
    tokens: BTreeSet<TokenId>,
    /// What is to be done once everything that was recorded stands.
    acts: VecDeque<Command>,
}

impl Driver {
    /// Drives the run until it ends, or until this process may or can drive it no further.
    pub(crate) async fn drive(mut self) -> End {
        let end = match self.run_out().await {
            Ok(end) => end,
            Err(error) => {
                self.leave(&error).await;
                Err(error)
            }
        };
        self.engine.switchboard.disconnect(&self.id, &self.tokens);
        end
    }

    /// Leaves the run without an end: nothing of it goes on here, and whoever takes it up next does so under a new epoch,
    /// so that work which has not stopped by then can append nothing.
    async fn leave(&mut self, error: &Error) {
        tracing::warn!(%error, "the run is left without an end");
        self.stop_all(error);
        self.engine.switchboard.leave(&self.id, &self.tokens);
        // Orders that this driver was handed and did not come to.
        while let Ok(signal) = self.signals.try_recv() {
            if matches!(signal, Signal::Ordered { .. } | Signal::ThreadOrdered { .. }) {
                self.engine.switchboard.speak(&self.id);
            }
        }
        if let Err(error) = self.engine.ownership.release(&self.owner.0).await {
            tracing::debug!(%error, "the run could not be given back");
        }
    }

    /// How the run has ended, as it stands on the log.
    async fn run_out(&mut self) -> Result<End, Error> {
        self.engine.switchboard.connect_run(&self.id, &self.link);
        self.obey_standing_orders().await?;
        self.flush().await?;
        self.start_body().await?;
        loop {
            if let Some(conclusion) = self.state.conclusion() {
                return Ok(match conclusion.clone() {
                    Conclusion::Completed => Ok(self.output.take().unwrap_or_else(Json::null)),
                    Conclusion::Failed(error) => Err(error),
                    Conclusion::Cancelled { because } => Err(cancelled(because)),
                });
            }
            let signal = self.signals.recv().await;
            let signal = signal.ok_or_else(|| Error::new(ErrorKind::Misuse, "nobody signals the run's driver"))?;
            self.take(signal).await?;
            // Whatever else has happened by now rides with the same commit.
            for _ in 1..limits::SIGNALS_AT_ONCE_MAX {
                let Ok(signal) = self.signals.try_recv() else { break };
                self.take(signal).await?;
                if self.state.conclusion().is_some() {
                    break;
                }
            }
            self.flush().await?;
        }
    }

    fn connect(&mut self, token: &TokenId) {
        self.engine.switchboard.connect_token(token, &self.link);
        self.tokens.insert(token.clone());
    }

    async fn take(&mut self, signal: Signal) -> Result<(), Error> {
        let event = match signal {
            Signal::Assigned { body, packages } => return self.assigned(&body, packages).await,
            Signal::Ended { package, outcome } => {
                let Some(job) = self.jobs.get_mut(&package) else {
                    return Ok(());
                };
                job.runtime = None;
                let (output, outcome) = split(outcome);
                job.output = output;
                Event::Ended { package, outcome }
            }
            Signal::Amended {
                package,
                step,
                name,
                claims,
                reply,
            } => {
                // A package that was stopped meanwhile asks in vain.
                let Some(job) = self.jobs.get_mut(&package).filter(|job| job.runtime.is_some()) else {
                    return Ok(());
                };
                job.asking.insert(step.clone(), reply);
                Event::Amended {
                    package,
                    step,
                    name,
                    claims,
                }
            }
            Signal::Ordered { token, order } => Event::Ordered { token, order },
            Signal::ThreadOrdered { token, thread, order } => {
                self.order_thread(&token, &thread, &order);
                return Ok(());
            }
            Signal::BodyEnded { outcome } => {
                let (output, outcome) = split(outcome);
                self.output = output;
                Event::BodyEnded { outcome }
            }
            Signal::Broken(error) => return Err(error),
        };
        self.advance(event).await
    }

    /// An order for one thread. Of a package that does not run yet it is read from the log when that begins.
    fn order_thread(&self, token: &TokenId, thread: &str, order: &ThreadOrder) {
        let mut packages = self.state.board().packages().iter();
        let package = packages.find(|package| package.assigned.token == *token);
        let job = package.and_then(|package| self.jobs.get(package.assigned.key.as_str()));
        if let Some(runtime) = job.and_then(|job| job.runtime.as_ref()) {
            runtime.order_thread(thread, order);
        }
    }

    async fn assigned(&mut self, body: &Arc<Body>, laid: Vec<Laid>) -> Result<(), Error> {
        let within = body.link().and_then(|link| link.within.clone());
        let mut packages = Vec::with_capacity(laid.len());
        for laid in laid {
            let assigned = self.assignment(body, &laid)?;
            self.connect(&assigned.token);
            packages.push(Assignment {
                assigned,
                edges: laid.edges(|place| body.key(place)),
                known: true,
            });
            self.jobs.insert(laid.key.clone(), Job::new(laid, body.clone()));
        }
        self.advance(Event::Assigned { within, packages }).await
    }

    fn assignment(&self, body: &Body, laid: &Laid) -> Result<PackageAssigned, Error> {
        let occurrence = laid.key.rsplit_once('#').and_then(|(_, digits)| digits.parse().ok());
        // A package that stands on the board keeps its token, also under another name.
        let standing = self.state.board().package(&laid.key);
        let token = match standing {
            Some(package) => package.assigned.token.clone(),
            None => TokenId::mint(laid.work.name, &self.id, &laid.key, 1)?,
        };
        Ok(PackageAssigned {
            scope: body.scope.id().to_string(),
            key: laid.key.to_string(),
            name: laid.work.name.into(),
            kind: laid.work.kind,
            occurrence: occurrence.unwrap_or(1),
            token,
            attempt: 1,
            args: Some(laid.literals()?),
            claims: laid.work.claims.clone(),
            estimate: laid.work.estimate,
            priority: 0,
        })
    }

    /// Nothing of this run is driven any further in this process.
    fn stop_all(&self, error: &Error) {
        let running = self.jobs.values().filter_map(|job| job.runtime.as_ref());
        for runtime in running.chain(&self.body) {
            runtime.stop(Stop::Refused(error.clone()));
        }
    }
}

fn split(outcome: Result<Json, Error>) -> (Option<Json>, Result<(), Error>) {
    match outcome {
        Ok(output) => (Some(output), Ok(())),
        Err(error) => (None, Err(error)),
    }
}
