use super::{
    execute::Execution,
    halt::{Found, Halt, Next, held},
};
use crate::{
    Json, Result, limits,
    scope::{Committed, Ruling, contain},
    vocabulary::step::{Resolved, StepDoubted},
};

impl Execution {
    /// A start without an end: of a step that must never happen twice, or so many of any step that it may be the one
    /// that kills the process.
    pub(super) async fn settle_doubt(&mut self) -> Result<Next, Halt> {
        let (open, attempts, doubted) = self
            .home
            .known(&self.key, |call| (call.open, call.attempts, call.doubted));
        let once = self.entry.meta().once && open > 0;
        if !once && doubted.is_none() && open < limits::STARTS_WITHOUT_END_MAX {
            return Ok(Next::Again);
        }
        self.attempt = attempts + 1;
        match self.resolve().await? {
            Found::Done(output) => self
                .complete(output, None, Some(Resolved::Step))
                .await
                .map(|()| Next::Answered),
            Found::NotDone => Ok(self.undoubted()),
            Found::Unknown if once => self.doubt("it began and its end is not on the log".into()).await,
            Found::Unknown => {
                let reason = format!("it began {open} times and never ended; it may be what stops the process");
                self.doubt(reason).await
            }
        }
    }

    /// Nobody knows whether it has happened: it waits for a ruling.
    pub(super) async fn doubt(&mut self, reason: String) -> Result<Next, Halt> {
        let pos = match self.home.known(&self.key, |call| call.doubted) {
            Some(pos) => pos,
            None => self.doubted(reason).await?,
        };
        let (step, key) = (self.entry.meta().name, &*self.key);
        tracing::warn!(
            step,
            key,
            "in doubt: the run waits for a ruling (`neuron waiting`, `neuron resolve`)"
        );
        self.ruled(pos).await
    }

    async fn doubted(&mut self, reason: String) -> Result<u64, Halt> {
        let doubted = StepDoubted {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: self.entry.meta().name.into(),
            attempt: self.attempt,
            reason,
        };
        let (home, key) = (self.home.clone(), self.key.clone());
        let note = move |place: Committed| home.known(&key, |call| call.doubted = Some(place.pos));
        Ok(self.append(&doubted, note).await?)
    }

    /// Asks the step that `resolve` names. It runs as an attempt of this call would: under its key, on its arguments.
    pub(super) async fn resolve(&mut self) -> Result<Found, Halt> {
        let Some(resolver) = self.entry.meta().resolve else {
            return Ok(Found::Unknown);
        };
        let scope = self.scope();
        let body = (resolver.run)(scope.clone(), self.args.revealed.clone());
        let outcome = held(&mut self.held, contain(&scope, body)).await;
        scope.settle().await;
        self.past = scope.take_past();
        Ok(match outcome?.map_err(Halt::Stopped)? {
            Ok(found) if found.json == Json::null() => Found::NotDone,
            Ok(found) => Found::Done(found.json),
            Err(_) => Found::Unknown,
        })
    }

    /// Waits for a ruling that is given after `pos`. One that gives no output of this step is answered with the doubt.
    pub(super) async fn ruled(&mut self, mut pos: u64) -> Result<Next, Halt> {
        loop {
            let ruling = self.home.runtime().journal.ruling(&self.key, pos);
            let output = match held(&mut self.held, ruling).await?? {
                Ruling::Redo => return Ok(self.undoubted()),
                Ruling::Fail(error) => return self.fail(error, Some(Resolved::Ruling)).await,
                Ruling::Done(output) => output,
            };
            let Err(error) = self.entry.check(&output) else {
                self.complete(output, None, Some(Resolved::Ruling)).await?;
                return Ok(Next::Answered);
            };
            pos = self
                .doubted(format!("the ruling gives an output that is none of this step: {error}"))
                .await?;
        }
    }

    fn undoubted(&self) -> Next {
        self.home.runtime().unsettled.settled(&self.key);
        self.home.known(&self.key, |call| {
            call.open = 0;
            call.doubted = None;
        });
        Next::Again
    }
}
