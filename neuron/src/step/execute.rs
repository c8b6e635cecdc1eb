use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio::{sync::oneshot, time::Instant};

use super::{
    backoff::backoff,
    boundary::cross,
    deadline,
    halt::{Found, Halt, Next, held},
};
use crate::{
    Error, ErrorKind, Millis, Result,
    def::{Encoded, Entry, Ran, judged},
    limits,
    scope::{Ask, Birth, Burn, Committed, Entering, Fresh, Manner, Past, Record, Scope, Then, by_size, contain},
    vocabulary::{
        Message,
        step::{ReplayOnceChanged, Resolved, StepAttempted, StepStarted},
    },
};

/// A call of a step: identity now, work later. Direct calls and the rows of a plan are made here alike.
pub(crate) fn ask(scope: &Arc<Scope>, entry: &'static Entry, args: Encoded) -> Result<Ask, Error> {
    let key = scope.claim_renamed(entry.meta().name, entry.meta().was, &args.identity)?;
    if let Some(rehearsal) = scope.runtime().rehearsal().filter(|_| entry.meta().once) {
        rehearsal.is_once(&key, entry.meta().was);
    }
    let (home, id, birth) = (scope.clone(), key.clone(), scope.now());
    let start = move |held| -> BoxFuture<'static, ()> {
        let execution = Execution {
            past: home.runtime().take_past(&id),
            home,
            entry,
            key: id,
            args,
            birth,
            held,
            attempt: 0,
            took: Duration::ZERO,
            burn: Burn::default(),
            children_ms: 0,
        };
        Box::pin(execution.run())
    };
    Ok(Ask::new(scope, key, Box::new(start)))
}

/// One step being carried out, from its first attempt to its answer.
pub(super) struct Execution {
    /// The scope whose body made the call.
    pub(super) home: Arc<Scope>,
    pub(super) entry: &'static Entry,
    pub(super) key: Arc<str>,
    pub(super) args: Encoded,
    /// What the clock of its own scope begins with.
    pub(super) birth: Millis,
    /// What is on the log below it. It belongs to the key, so every attempt is answered from it.
    pub(super) past: Past,
    /// Ends when the body lets go of the call.
    pub(super) held: oneshot::Receiver<()>,
    pub(super) attempt: u32,
    /// What the attempt took, on a monotonic clock.
    pub(super) took: Duration,
    pub(super) burn: Burn,
    pub(super) children_ms: u64,
}

impl Execution {
    async fn run(mut self) {
        match self.until_answered().await {
            Ok(()) => self.home.runtime().gained(),
            Err(Halt::Stopped(stop)) => {
                self.home.runtime().stop(stop);
                self.abandon();
            }
            Err(Halt::Dropped) => {
                self.leave_open();
                self.abandon();
            }
        }
    }

    async fn until_answered(&mut self) -> Result<(), Halt> {
        let is_new = self.home.known(&self.key, |call| {
            call.open == 0 && call.attempts == 0 && call.doubted.is_none()
        });
        if is_new && let Next::Answered = self.clear().await? {
            return Ok(());
        }
        loop {
            if let Next::Answered = self.settle_doubt().await? {
                return Ok(());
            }
            self.wait_for_retry().await?;
            self.start().await?;
            let next = match self.attempt().await? {
                Ok(ran) => return self.complete(ran.json.clone(), Some(ran), None).await,
                Err(error) => self.failed(error).await?,
            };
            if let Next::Answered = next {
                return Ok(());
            }
        }
    }

    /// What has to be known before a step runs that has never run.
    async fn clear(&mut self) -> Result<Next, Halt> {
        let (meta, id) = (self.entry.meta(), self.home.id().clone());
        if meta.once
            && let Some(recorded) = self.home.unclaimed_once(meta.name, meta.was)
        {
            let changed = ReplayOnceChanged {
                scope: id.to_string(),
                key: self.key.to_string(),
                name: meta.name.into(),
                recorded: recorded.to_string(),
            };
            // A ruling may have been given while nobody was here.
            let standing = self.home.known(&self.key, |call| call.changed);
            let pos = match standing {
                Some(pos) => pos,
                None => self.append(&changed, |_| {}).await?,
            };
            return self.ruled(pos).await;
        }
        let Some(admitted) = self.home.runtime().admission_for(|| self.fresh()) else {
            return Ok(Next::Again);
        };
        match held(&mut self.held, admitted).await?? {
            None => Ok(Next::Again),
            Some(refusal) => self.fail(refusal, None).await,
        }
    }

    fn fresh(&self) -> Fresh {
        Fresh {
            scope: self.home.id().clone(),
            key: self.key.clone(),
            name: self.entry.meta().name,
            claims: self.entry.meta().claims(),
        }
    }

    /// Begins an attempt: on the log before the body acts where that has to be known, else with the next commit.
    async fn start(&mut self) -> Result<(), Halt> {
        let meta = self.entry.meta();
        self.attempt = self.home.known(&self.key, |call| call.attempts) + 1;
        (self.took, self.burn, self.children_ms) = (Duration::ZERO, Burn::default(), 0);
        let is_first = self.home.known(&self.key, |call| !call.told);
        let (args, large) = if is_first {
            by_size("args", self.args.recorded.clone())
        } else {
            (None, None)
        };
        let started = StepStarted {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: meta.name.into(),
            attempt: self.attempt,
            args,
            args_schema: is_first.then(|| self.entry.form().args_schema()),
            once: meta.once,
        };
        let mut record = self.record(&started)?.large(large.clone());
        record.unless_cancelled = meta.once;
        record.threads = meta.once.then(|| self.home.threads().clone());
        if !meta.once && record.large.is_none() && !self.home.runtime().is_careful() {
            self.home
                .known(&self.key, |call| call.started(&started, large.map(|(_, args)| args), 0));
            self.home.runtime().journal.defer(record);
            return Ok(());
        }
        let (home, key, name) = (self.home.clone(), self.key.clone(), meta.once.then_some(meta.name));
        let note: Then = Box::new(move |place| {
            if let Some(name) = name {
                home.runtime().unsettled.began(&key, name);
            }
            home.known(&key, |call| {
                call.started(&started, large.map(|(_, args)| args), place.pos);
            });
        });
        match self.home.runtime().journal.append(record, note).await {
            // Its thread is cancelled, and about to let go of it.
            Err(error) if meta.once && error.kind() == ErrorKind::Denied => {
                held(&mut self.held, std::future::pending()).await
            }
            appended => Ok(appended.map(drop)?),
        }
    }

    /// One attempt: the body on the arguments, in a scope of its own.
    async fn attempt(&mut self) -> Result<Result<Ran, Error>, Halt> {
        let scope = self.scope();
        let body = self.entry.run(scope.clone(), self.args.revealed.clone());
        let body = match self.home.runtime().boundary() {
            None => body,
            Some(boundary) => cross(boundary, self.entering(), self.entry, body),
        };
        let limit = self.entry.meta().timeout_ms.map(Duration::from_millis);
        let began = Instant::now();
        let outcome = {
            let mut driven = pin!(deadline::within(limit, contain(&scope, body)));
            match held(&mut self.held, &mut driven).await {
                Err(Halt::Dropped) if scope.is_parted_with_slowly() => {
                    scope.part_with();
                    // One that ends well all the same has done its work, and the log is to say so.
                    match tokio::time::timeout(limits::CANCEL_GRACE, driven).await {
                        Ok(done @ Some(Ok(Ok(_)))) => Ok(done),
                        _ => Err(Halt::Dropped),
                    }
                }
                outcome => outcome,
            }
        };
        // Whatever the body left running ends before anything else happens to this call.
        scope.settle().await;
        self.took = began.elapsed();
        self.past = scope.take_past();
        self.burn += scope.burnt();
        self.children_ms += scope.children_ms();
        match outcome? {
            // What it says while it cleans up is no failure of its work.
            Some(Ok(Err(_))) if scope.cleans_up() => Err(Halt::Dropped),
            Some(Ok(outcome)) => Ok(outcome),
            Some(Err(stop)) => Err(Halt::Stopped(stop)),
            None => {
                let name = self.entry.meta().name;
                let limit = limit.unwrap_or_default();
                Ok(Err(Error::new(
                    ErrorKind::Timeout,
                    format!("`{name}` took longer than {limit:?}"),
                )
                .retryable()))
            }
        }
    }

    fn entering(&self) -> Entering {
        Entering {
            name: self.entry.meta().name,
            key: self.key.clone(),
            attempt: self.attempt,
            args: self.args.recorded.clone(),
        }
    }

    pub(super) fn scope(&mut self) -> Arc<Scope> {
        let birth = Birth {
            at: self.birth,
            attempt: self.attempt,
            floor: self.home.known(&self.key, |call| call.attempted),
            manner: Manner::Free,
        };
        self.home
            .within(self.key.clone(), std::mem::take(&mut self.past), birth)
    }

    async fn failed(&mut self, error: Error) -> Result<Next, Halt> {
        let meta = self.entry.meta();
        if meta.once && !error.is_not_done() {
            match self.resolve().await? {
                Found::Done(output) => {
                    return self
                        .complete(output, None, Some(Resolved::Step))
                        .await
                        .map(|()| Next::Answered);
                }
                Found::Unknown => return self.doubt(format!("attempt {} failed: {error}", self.attempt)).await,
                Found::NotDone => {}
            }
        }
        let is_last = self.attempt >= meta.attempts;
        let error = if is_last { error } else { judged(meta.retry_on, error) };
        if error.is_terminal() || is_last {
            return self.fail(error, None).await;
        }
        let wait = error
            .wait()
            .unwrap_or_else(|| backoff(meta.backoff_ms, self.attempt, &self.key));
        let now = self.home.runtime().journal.now();
        let attempted = StepAttempted {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: meta.name.into(),
            attempt: self.attempt,
            error,
            retry_at: (!wait.is_zero()).then(|| now.plus(wait)),
        };
        let mut record = self.record(&attempted)?;
        record.burn = Some(self.burnt());
        let (home, key) = (self.home.clone(), self.key.clone());
        let note: Then = Box::new(move |place| {
            home.runtime().unsettled.settled(&key);
            home.known(&key, |call| call.attempted(&attempted, place.pos));
        });
        self.home.runtime().journal.append(record, note).await?;
        Ok(Next::Again)
    }

    async fn wait_for_retry(&mut self) -> Result<(), Halt> {
        let (retry_at, asked, attempts) = self
            .home
            .known(&self.key, |call| (call.retry_at, call.retry_wait, call.attempts));
        let Some(retry_at) = retry_at else {
            return Ok(());
        };
        let span = asked.unwrap_or_else(|| backoff(self.entry.meta().backoff_ms, attempts, &self.key));
        let journal = &self.home.runtime().journal;
        held(&mut self.held, deadline::passed(&**journal, retry_at, span)).await
    }

    pub(super) fn record<M: Message>(&self, message: &M) -> Result<Record, Error> {
        Record::of(self.home.id(), &self.key, message)
    }

    /// Appends what the body of the call has to wait for; the `pos` it got.
    pub(super) fn append<M: Message, F>(
        &self,
        message: &M,
        then: F,
    ) -> impl Future<Output = Result<u64, Error>> + Send + use<M, F>
    where
        F: FnOnce(Committed) + Send + 'static,
    {
        let journal = self.home.runtime().journal.clone();
        let record = self.record(message);
        async move { Ok(journal.append(record?, Box::new(then)).await?.pos) }
    }
}
