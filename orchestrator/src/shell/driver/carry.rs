//! What the protocol commands is carried out.

use std::{collections::VecDeque, sync::Arc};

use neuron::{
    Error, ErrorKind, Json, Result, limits,
    scope::{Runtime, Stop},
};
use tracing::Instrument as _;

use super::{
    super::{
        admission::Gatekeeper,
        execute::{Seat, execute, told},
        job::Job,
        scribe::Beat,
    },
    Driver,
};
use crate::{
    fact::Fact,
    package::{Key, Outcome, PackageKind},
    protocol::{Command, Event, advance},
};

impl Driver {
    /// Takes an event through the protocol. What follows is appended and done by the next [`flush`](Self::flush).
    pub(super) async fn advance(&mut self, event: Event) -> Result<(), Error> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for command in advance(&mut self.state, event)? {
                match command {
                    Command::Record(fact) => self.record(fact).await?,
                    Command::Answer { package, outcome } => self.answer(&package, outcome).await?,
                    Command::Conclude(conclusion) => {
                        let output = self.output.clone();
                        self.scribe.conclude(&conclusion, output).await?;
                    }
                    Command::Plan { package } => {
                        // A plan may read what an answer gave, which counts once it stands.
                        if self.scribe.has_answers() {
                            self.scribe.commit().await?;
                        }
                        events.push_back(self.plan(package)?);
                    }
                    act => self.acts.push_back(act),
                }
            }
        }
        Ok(())
    }

    /// Appends what was recorded, and then does what relies on it.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        self.scribe.commit().await?;
        while let Some(act) = self.acts.pop_front() {
            self.act(act).await?;
        }
        Ok(())
    }

    async fn record(&mut self, mut fact: Fact) -> Result<(), Error> {
        let mut large = None;
        if let Fact::Assigned(assigned) = &mut fact
            && let Some(args) = &assigned.args
        {
            let whole = Json::of(args)?;
            if whole.len() > limits::INLINE_VALUE_BYTES_MAX {
                assigned.args = None;
                large = Some(("args", whole));
            }
        }
        self.scribe.record(&fact, large).await
    }

    async fn answer(&mut self, package: &Key, outcome: Outcome) -> Result<(), Error> {
        let job = self.job(package)?;
        let outcome = match outcome {
            Ok(()) => Ok(job.output.take().unwrap_or_else(Json::null)),
            Err(error) => Err(error),
        };
        let (scope, name, schema) = (
            job.body.scope.clone(),
            job.laid.work.name,
            job.laid.work.output_schema(),
        );
        self.scribe.answer(&scope, package, name, outcome, schema).await
    }

    fn plan(&mut self, package: Key) -> Result<Event, Error> {
        let board = self.state.board();
        let assigned = board.package(&package).map(|package| package.assigned.clone());
        let job = self.job(&package)?;
        let assigned = assigned.ok_or_else(|| unknown(&package))?;
        let (plan, written) = job.laid.work.plan(&assigned, &job.inputs());
        job.written = written;
        Ok(Event::Planned { package, plan })
    }

    async fn act(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Start { package } => self.start(&package).await?,
            Command::Rule { package, step, verdict } => {
                if let Some(reply) = self.job(&package)?.asking.remove(&step) {
                    // Whoever asked may have been dropped by its body meanwhile.
                    let _ = reply.send(verdict);
                }
            }
            Command::Hold { package } => self.running(&package, Runtime::pause),
            Command::Release { package } => self.running(&package, Runtime::resume),
            Command::Stop { package } => self.running(&package, |runtime| runtime.stop(Stop::Cancelled)),
            Command::Abandon => {
                if let Some(body) = &self.body {
                    body.stop(Stop::Cancelled);
                }
            }
            Command::Record(_) | Command::Answer { .. } | Command::Conclude(_) | Command::Plan { .. } => {}
        }
        Ok(())
    }

    fn running(&self, package: &Key, act: impl FnOnce(&Runtime)) {
        if let Some(runtime) = self.jobs.get(package).and_then(|job| job.runtime.as_deref()) {
            act(runtime);
        }
    }

    async fn start(&mut self, package: &Key) -> Result<(), Error> {
        let known = self.state.board().package(package).ok_or_else(|| unknown(package))?;
        let (token, kind) = (known.assigned.token.clone(), known.assigned.kind);
        let claims = known.claims();
        let assigned = self.ancestry.assigned(package).or_else(|| self.scribe.born(package));
        let birth = assigned.unwrap_or_else(|| self.ancestry.birth());
        let job = self.job(package)?;
        let (args, written) = (job.args()?, job.written.take());
        let (seat, before) = match kind {
            PackageKind::Orchestrator => (
                Seat::of_orchestrator(&self.id, self.owner.clone(), Some(&token)),
                self.ancestry.of_orchestrator(),
            ),
            PackageKind::Agent | PackageKind::Plan => (
                Seat::of_token(&self.id, &token, self.owner.clone()),
                self.ancestry.of_package(package),
            ),
        };
        let gate = (kind != PackageKind::Orchestrator).then(|| Gatekeeper {
            package: package.clone(),
            token: token.clone(),
            outline: written.as_ref().map(|written| Arc::new(written.outline().clone())),
            claims,
            ledger: self.engine.ledger.clone(),
            owner: self.owner.clone(),
            signals: self.link.clone(),
        });
        let seat = Seat {
            cause: self.scribe.cause(package, Beat::Ruled),
            born: self.ancestry.born(),
            before,
            fork: self.fork(),
            resumed: self.resumed,
            taken_over: self.taken_over,
            ..seat
        };
        let state = self.shared(Some(package.clone()));
        let runtime = seat.runtime(&self.engine, state, gate).await?;
        self.obey_for_threads(&token, &runtime)?;
        let job = self.job(package)?;
        job.runtime = Some(runtime.clone());
        let span = tracing::info_span!("agent", name = job.laid.work.name, %token);
        let agent = job.laid.work.entry.filter(|_| kind == PackageKind::Agent);
        let body = job.laid.work.prepare(args, written);
        let (link, key) = (self.link.clone(), package.clone());
        let driven = async move {
            let ended = execute(runtime, &key, birth, body, agent).await;
            // A driver that is gone needs no answer.
            let _ = link.send(told(Some(key), ended));
        };
        tokio::spawn(driven.instrument(span));
        Ok(())
    }

    fn job(&mut self, package: &Key) -> Result<&mut Job, Error> {
        self.jobs.get_mut(package).ok_or_else(|| unknown(package))
    }
}

fn unknown(package: &str) -> Error {
    Error::new(ErrorKind::Misuse, format!("package `{package}` is not one of this run"))
}
