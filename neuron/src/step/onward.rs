use std::sync::Arc;

use futures::future::BoxFuture;

use super::{
    builtin::stop,
    halt::{Halt, held},
};
use crate::{
    Agent, Callable, Error, ErrorKind, Json, Result,
    def::{Args, Context as _, Def, Entry, encode},
    scope::{Ask, Onward, Record, Scope, Then},
    step::Cx,
    vocabulary::step::StepFailed,
};

const CONTINUE: &str = "$continue";

impl Cx {
    /// Ends this body and begins the same agent again with other arguments: for a loop that runs for a year without
    /// replaying a year. It never comes back, so it stands last: `Ok(cx.continue_with(watcher, next).await?)`.
    ///
    /// One append ends what was and begins what comes, and a resume reads nothing before it. Nothing in flight is carried
    /// over: calls that have not ended are let go of first, but for `once` steps, which are waited for. Updates that were
    /// not taken are there for the next one. A wait for an envelope has to say from where: hand the `pos` of the last one
    /// that was taken on as an argument, and give it to [`Filter::after`](crate::Filter::after).
    ///
    /// ```no_run
    /// use neuron::{Cx, Result, agent, step};
    /// # use std::time::Duration;
    /// #[step]
    /// async fn look(_cx: &Cx, since: u64) -> Result<u64> {
    ///     Ok(since + 1)
    /// }
    ///
    /// #[agent]
    /// async fn watcher(cx: &Cx, since: u64) -> Result<()> {
    ///     let seen = look(cx, since).await?;
    ///     cx.sleep(Duration::from_hours(1)).await?;
    ///     Ok(cx.continue_with(watcher, seen).await?)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] anywhere but in an agent's own body, for another agent than the one that runs, and for
    /// arguments that cannot be read back because they hold a secret; [`ErrorKind::InDoubt`] if this body let go of a
    /// `once` step of which nobody knows whether it has happened.
    pub async fn continue_with<M, F>(
        &self,
        _agent: F,
        args: <<F::Def as Def>::Args as Args>::Bare,
    ) -> Result<<F::Def as Def>::Output, Error>
    where
        F: Callable<M>,
        F::Def: Agent,
    {
        let ask = onward::<F::Def>(self.scope(), &Args::from_bare(args))?;
        match ask.await {
            Err(refusal) => Err(refusal),
            Ok(_) => Err(Error::new(
                ErrorKind::Corrupt,
                "the log holds an output of a call that gives none",
            )),
        }
    }
}

fn onward<D: Def>(scope: &Arc<Scope>, args: &D::Args) -> Result<Ask, Error> {
    let entry = const { &Entry::of::<D>() };
    let name = entry.meta().name;
    match scope.agent() {
        Some(agent) if agent == name => {}
        Some(agent) => {
            let why = format!("`{agent}` cannot go on as `{name}`: an agent continues as itself");
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        None => {
            let why = "only an agent's own body begins again: return from the step, thread or orchestrator instead";
            return Err(Error::new(ErrorKind::Misuse, why));
        }
    }
    let args = encode::<D>(args)?;
    if args.recorded != args.revealed {
        let why =
            format!("`{name}` cannot begin again with a secret, which is not on the log: take it from `cx.state`");
        return Err(Error::new(ErrorKind::Misuse, why));
    }
    let key = scope.claim(CONTINUE, &Json::null())?;
    let onward = Onward {
        args: args.recorded,
        schema: entry.form().args_schema(),
    };
    let (home, id) = (scope.clone(), key.clone());
    let start = move |mut hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match held(&mut hold, home.runtime().unsettled.none()).await {
                Err(Halt::Dropped | Halt::Stopped(_)) => {}
                Ok(Ok(())) => home.go_onward(onward),
                Ok(Err((step, name))) => {
                    if let Err(error) = refuse(&home, &id, &step, &name).await {
                        stop(&home, error);
                    }
                }
            }
        })
    };
    Ok(Ask::new(scope, key, Box::new(start)))
}

/// The call is answered, since a replay is to be told the same.
async fn refuse(home: &Arc<Scope>, key: &Arc<str>, step: &str, name: &str) -> Result<(), Error> {
    let why = format!(
        "the body let go of `{name}`, and nobody knows whether it has happened ({step}): await it before it begins again"
    );
    let error = Error::new(ErrorKind::InDoubt, why).settled();
    let failed = StepFailed {
        scope: home.id().to_string(),
        key: key.to_string(),
        name: CONTINUE.into(),
        attempt: 1,
        error: error.clone(),
        resolved: None,
    };
    let record = Record::of(home.id(), key, &failed)?;
    let (scope, key) = (home.clone(), key.clone());
    let hand_over: Then = Box::new(move |place| scope.answer(&key, CONTINUE, place, Err(error)));
    home.runtime().journal().append(record, hand_over).await?;
    Ok(())
}
