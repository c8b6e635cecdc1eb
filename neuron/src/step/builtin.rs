use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::BoxFuture;

use super::{
    deadline,
    halt::{Halt, held},
};
use crate::{
    Error, ErrorKind, Json, Millis, Payload, Result,
    def::{Ran, recorded},
    scope::{Ask, Birth, Manner, Record, Recorded, Scope, Stop, THREAD, Then, by_size, contain},
    vocabulary::step::{ThreadCompleted, ThreadFailed, ThreadStarted, TimerFired, TimerStarted},
};

const SLEEP: &str = "$sleep";

/// When a timer fires.
#[derive(Clone, Copy)]
pub(super) enum Due {
    /// So long after it was set.
    After(Duration),
    /// At this moment of the wall.
    At(Millis),
}

/// A timer: its deadline is on the log before anybody waits for it.
pub(super) fn timer(scope: &Arc<Scope>, due: Due) -> Result<Ask, Error> {
    let mut args = match due {
        Due::After(time) => BTreeMap::from([("ms", Json::of(&milliseconds(time))?)]),
        Due::At(moment) => BTreeMap::from([("at", Json::of(&moment)?)]),
    };
    // What a step waits for it waits for again in its next attempt; a payment it does not make again.
    if scope.attempt() > 1 {
        args.insert("attempt", Json::of(&scope.attempt())?);
    }
    let args = Json::of(&args)?;
    let key = scope.claim(SLEEP, &args)?;
    let (home, id) = (scope.clone(), key.clone());
    let start = move |mut hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let fired = held(&mut hold, fire(&home, &id, due)).await;
            if let Ok(Err(error)) = fired {
                stop(&home, error);
            }
        })
    };
    Ok(Ask::new(scope, key, Box::new(start)))
}

/// A length of time as it stands among the arguments of a call.
pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

async fn fire(home: &Arc<Scope>, key: &Arc<str>, due: Due) -> Result<(), Error> {
    let journal = &home.runtime().journal;
    let (scope, name) = (home.id().to_string(), SLEEP.to_owned());
    let set = home.known(key, |call| call.deadline);
    let (deadline, span) = match due {
        Due::After(time) => (set.unwrap_or_else(|| journal.now().plus(time)), time),
        Due::At(moment) => (moment, Duration::MAX),
    };
    if set.is_none() {
        let started = TimerStarted {
            scope: scope.clone(),
            key: key.to_string(),
            name: name.clone(),
            deadline,
        };
        journal
            .append(Record::of(home.id(), key, &started)?, Box::new(|_| {}))
            .await?;
    }
    deadline::passed(&**journal, deadline, span).await;
    let fired = TimerFired {
        scope,
        key: key.to_string(),
        name,
    };
    let (scope, id) = (home.clone(), key.clone());
    let hand_over: Then = Box::new(move |place| scope.answer(&id, SLEEP, place, Ok(Json::null())));
    journal.append(Record::of(home.id(), key, &fired)?, hand_over).await?;
    Ok(())
}

/// The body of a thread, given its scope.
pub(super) type ThreadBody<T> = Box<dyn FnOnce(Arc<Scope>) -> BoxFuture<'static, Result<T>> + Send>;

/// A thread: known by its name and occurrence, driven like the body that made it.
pub(super) fn thread<T: Payload>(scope: &Arc<Scope>, name: &str, body: ThreadBody<T>) -> Result<Ask, Error> {
    let args = Json::of(&BTreeMap::from([("name", name)]))?;
    let key = scope.claim(THREAD, &args)?;
    let thread = Thread {
        name: name.into(),
        birth: Birth {
            at: scope.now(),
            attempt: scope.attempt(),
            floor: 0,
            manner: if scope.manner() == Manner::Replayed {
                Manner::Replayed
            } else {
                Manner::Free
            },
        },
        home: scope.clone(),
        key: key.clone(),
        body,
    };
    let start = move |mut hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let home = thread.home.clone();
            match thread.run(&mut hold).await {
                Ok(()) | Err(Halt::Dropped) => {}
                Err(Halt::Stopped(stop)) => home.runtime().stop(stop),
            }
        })
    };
    Ok(Ask::spawned(scope, key, Box::new(start)))
}

struct Thread<T> {
    name: String,
    birth: Birth,
    home: Arc<Scope>,
    key: Arc<str>,
    body: ThreadBody<T>,
}

impl<T: Payload> Thread<T> {
    async fn run(self, hold: &mut tokio::sync::oneshot::Receiver<()>) -> Result<(), Halt> {
        let Self {
            name,
            birth,
            home,
            key,
            body,
        } = self;
        let (runtime, id) = (home.runtime().clone(), home.id().to_string());
        let started = ThreadStarted {
            scope: id.clone(),
            key: key.to_string(),
            name: name.clone(),
        };
        runtime.journal.defer(Record::of(home.id(), &key, &started)?);
        let scope = home.thread(key.clone(), birth);
        let work = {
            let scope = scope.clone();
            async move { Ran::of(&recorded(body(scope).await)?) }
        };
        let outcome = tokio::select! {
            biased;
            because = runtime.thread_cancelled(&key) => Ok(Ok(Err(cancelled(&name, because)))),
            outcome = held(hold, contain(&scope, work)) => outcome,
        };
        scope.settle().await;
        if matches!(outcome, Err(Halt::Dropped)) && runtime.stopped().is_none() {
            runtime.leave_open(&key, &mut scope.take_past());
        }
        // What a step's thread took, the step took.
        if scope.manner() == Manner::Free {
            home.burn(scope.burnt());
            home.child_took(scope.children_ms());
        }
        let outcome = outcome?.map_err(Halt::Stopped)?;
        let (record, answer) = match outcome {
            Ok(ran) => {
                let (output, large) = by_size("output", ran.json.clone());
                let completed = ThreadCompleted {
                    scope: id,
                    key: key.to_string(),
                    name: name.clone(),
                    output,
                };
                (Record::of(home.id(), &key, &completed)?.large(large), Ok(ran))
            }
            Err(error) => {
                let error = error.settled();
                let failed = ThreadFailed {
                    scope: id,
                    key: key.to_string(),
                    name: name.clone(),
                    error: error.clone(),
                };
                (Record::of(home.id(), &key, &failed)?, Err(error))
            }
        };
        let hand_over: Then = Box::new(move |place| {
            let (outcome, typed) = match answer {
                Ok(ran) => (Ok(ran.json), Some(ran.typed)),
                Err(error) => (Err(error), None),
            };
            let mut answer = Recorded::new(place, outcome);
            answer.typed = typed;
            home.answered(&key, &name, answer);
        });
        runtime.journal.append(record, hand_over).await?;
        runtime.gained();
        Ok(())
    }
}

/// What whoever waits for a cancelled thread is told.
fn cancelled(name: &str, because: Option<String>) -> Error {
    let because = because.map_or_else(String::new, |because| format!(": {because}"));
    Error::new(ErrorKind::Cancelled, format!("thread `{name}` was cancelled{because}"))
}

pub(super) fn stop(home: &Arc<Scope>, error: Error) {
    if let Halt::Stopped(stop) = Halt::from(error) {
        home.runtime().stop(Stop::clone(&stop));
    }
}
