use std::{
    collections::BTreeMap,
    fmt,
    future::poll_fn,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::{
    builtin::stop,
    halt::{Halt, held},
    question::present,
};
use crate::{
    Cause, Error, ErrorKind, Json, Payload, Result, SchemaUse, limits, schema,
    scope::{Answer, Ask, Given, Record, Recorded, Request, Scope, Sought, Taken, Then, UPDATE, by_size},
    vocabulary::{
        Message,
        dialogue::{UpdateAccepting, UpdateAnswered, UpdateRefused, UpdateTaken},
    },
};

const RESPOND: &str = "$respond";

/// Requests into a body that runs, in their order: take one, respond, take the next.
///
/// While it lives, the body takes updates of its name; keep it for as long as that. A request that a step has taken and not
/// responded to is taken again if a crash cuts the step off: by its next attempt, or by whoever has let go of it.
#[must_use = "no update is taken until `next` is awaited"]
pub struct Updates<'a, Q, R> {
    scope: &'a Arc<Scope>,
    name: Arc<str>,
    /// Whether it was said on the log that they are taken.
    said: Arc<AtomicBool>,
    types: PhantomData<fn(Q) -> R>,
}

/// A request into a body that runs. Whoever made it waits for [`answer`](Self::answer) or [`refuse`](Self::refuse).
#[must_use = "whoever made the request waits for its response"]
pub struct Update<'a, Q, R> {
    /// What is asked.
    pub request: Q,
    asked: u64,
    scope: &'a Arc<Scope>,
    response: PhantomData<fn(R)>,
}

impl<'a, Q: Payload, R: Payload> Updates<'a, Q, R> {
    pub(super) fn new(scope: &'a Arc<Scope>, name: &str) -> Self {
        Self {
            scope,
            name: name.into(),
            said: Arc::default(),
            types: PhantomData,
        }
    }

    /// The next request. Each is taken once, in the order in which they were made, and a replay is given the same.
    /// Dropping the future loses none, so it may stand in a `select!`: what was taken for it is there for the next one.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the name is empty or longer than
    /// [`limits::UPDATE_NAME_BYTES_MAX`] bytes.
    pub async fn next(&mut self) -> Result<Update<'a, Q, R>, Error> {
        let Taken { json, schema, .. } = take::<Q, R>(self.scope, &self.name, &self.said)?.await?;
        let (asked, json): (u64, Json) = json.decode()?;
        let request = Taken {
            json,
            typed: None,
            schema,
        };
        let mut request = Some(request);
        let request = poll_fn(|_| match request.take() {
            Some(request) => present::<Q>("update", self.scope, request),
            // It is held: nobody polls it again.
            None => std::task::Poll::Pending,
        })
        .await;
        Ok(Update {
            request,
            asked,
            scope: self.scope,
            response: PhantomData,
        })
    }
}

impl<'a, Q, R: Payload> Update<'a, Q, R> {
    /// Responds. The response is on the log, once, and whoever made the request is given it.
    #[must_use = "it is not responded until it is awaited"]
    pub fn answer(self, response: &R) -> Answer<'a, ()> {
        Answer::new(Json::of(response).and_then(|response| respond(self.scope, self.asked, Ok(response))))
    }

    /// Refuses: whoever made the request is given the reason as an error.
    #[must_use = "it is not refused until it is awaited"]
    pub fn refuse(self, why: impl fmt::Display) -> Answer<'a, ()> {
        Answer::new(respond(self.scope, self.asked, Err(Error::terminal(why.to_string()))))
    }
}

impl<Q, R> fmt::Debug for Updates<'_, Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Updates({})", self.name)
    }
}

impl<Q: fmt::Debug, R> fmt::Debug for Update<'_, Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update")
            .field("request", &self.request)
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

fn take<Q: Payload, R: Payload>(scope: &Arc<Scope>, name: &Arc<str>, said: &Arc<AtomicBool>) -> Result<Ask, Error> {
    let (len, max) = (name.len(), limits::UPDATE_NAME_BYTES_MAX);
    if len == 0 || len > max {
        let why = format!("the name of an update has {len} bytes: use 1 to {max}");
        return Err(Error::new(ErrorKind::Malformed, why));
    }
    let args = Json::of(&BTreeMap::from([("name", name)]))?;
    let key = scope.claim(UPDATE, &args)?;
    said.fetch_or(scope.is_heard(&key), Ordering::Relaxed);
    let taking = Taking {
        home: scope.clone(),
        key,
        name: name.clone(),
        said: said.clone(),
        request: schema::of::<Q>()?,
        response: schema::of::<R>()?,
        check: |json| json.decode::<Q>().map(drop),
    };
    let key = taking.key.clone();
    let start = move |mut hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match taking.run(&mut hold).await {
                // Its body may have gone on meanwhile.
                Ok(()) if taking.home.is_let_go(&taking.key) => taking.home.leave(&taking.key, || None),
                Ok(()) | Err(Halt::Dropped) => {}
                Err(Halt::Stopped(why)) => taking.home.runtime().stop(why),
            }
        })
    };
    Ok(Ask::new(scope, key, Box::new(start)))
}

/// A body that waits for an update, without the types of it.
struct Taking {
    home: Arc<Scope>,
    key: Arc<str>,
    name: Arc<str>,
    /// Whether its handle has said that it takes them.
    said: Arc<AtomicBool>,
    request: Arc<SchemaUse>,
    response: Arc<SchemaUse>,
    check: fn(&Json) -> Result<(), Error>,
}

impl Taking {
    async fn run(&self, hold: &mut oneshot::Receiver<()>) -> Result<(), Halt> {
        let runtime = self.home.runtime();
        if !self.said.swap(true, Ordering::Relaxed) {
            self.accept().await?;
        }
        // One at a time, so that each request is taken once, whoever takes it.
        let queue = runtime.updates.queue(&self.name);
        let _turn = held(hold, queue.turn()).await?;
        loop {
            let after = queue.reach().after();
            let wanted = Sought::Update(self.name.clone());
            let next = async {
                tokio::select! {
                    given = runtime.journal().given(wanted, after) => given.map(Some),
                    () = queue.returned() => Ok(None),
                }
            };
            let Some(given) = held(hold, next).await?? else {
                continue;
            };
            queue.reach().take(given.pos);
            // From here on nothing is let go of half done.
            match (self.check)(&given.value) {
                Ok(()) => return self.taken(given).await,
                Err(error) => self.refused(&given, &error).await?,
            }
        }
    }

    async fn accept(&self) -> Result<(), Halt> {
        let accepting = UpdateAccepting {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: UPDATE.into(),
            update: self.name.to_string(),
            request: self.request.reference(),
            response: self.response.reference(),
        };
        let mut record = self.record(&accepting)?;
        record.named.extend([self.request.clone(), self.response.clone()]);
        record.keyed = Some(UpdateAccepting::keyed(&self.name).into());
        let (home, key) = (self.home.clone(), self.key.clone());
        let note: Then = Box::new(move |place| home.known(&key, |call| call.heard = Some(place.pos)));
        self.home.runtime().journal().append(record, note).await?;
        Ok(())
    }

    async fn taken(&self, given: Given) -> Result<(), Halt> {
        let (request, large) = by_size("request", given.value.clone());
        let schema = self.request.reference();
        let taken = UpdateTaken {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: UPDATE.into(),
            update: self.name.to_string(),
            asked: given.pos,
            request,
            request_schema: schema,
        };
        let mut record = self.record(&taken)?.large(large);
        record.cause = given.cause.map(Cause::Envelope);
        let outcome = Json::of(&(given.pos, given.value));
        let (home, key) = (self.home.clone(), self.key.clone());
        let took = Request {
            update: self.name.clone(),
            asked: given.pos,
        };
        let hand_over: Then = Box::new(move |place| {
            let mut answer = Recorded::new(place, outcome);
            answer.schema = Some(schema);
            home.known(&key, |call| call.took = Some(took));
            home.answered(&key, UPDATE, answer);
        });
        self.home.runtime().journal().append(record, hand_over).await?;
        Ok(())
    }

    async fn refused(&self, given: &Given, error: &Error) -> Result<(), Halt> {
        let refused = UpdateRefused {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: UPDATE.into(),
            update: self.name.to_string(),
            asked: given.pos,
            reason: error.to_string(),
        };
        let mut record = self.record(&refused)?;
        record.cause = given.cause.clone().map(Cause::Envelope);
        self.home.runtime().journal().append(record, Box::new(|_| {})).await?;
        Ok(())
    }

    fn record<M: Message>(&self, message: &M) -> Result<Record, Error> {
        Record::of(self.home.id(), &self.key, message)
    }
}

/// The response to a request: known by the request, so that it is given once.
fn respond(scope: &Arc<Scope>, asked: u64, outcome: Result<Json, Error>) -> Result<Ask, Error> {
    let key = scope.claim(RESPOND, &Json::of(&BTreeMap::from([("asked", asked)]))?)?;
    let (response, large, error) = match outcome {
        Ok(response) => {
            let (response, large) = by_size("response", response);
            (response, large, None)
        }
        Err(error) => (None, None, Some(error.settled())),
    };
    let answered = UpdateAnswered {
        scope: scope.id().to_string(),
        key: key.to_string(),
        name: RESPOND.into(),
        asked,
        response,
        error,
    };
    let record = Record::of(scope.id(), &key, &answered)?.large(large);
    let (home, id) = (scope.clone(), key.clone());
    let start = move |_hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let (scope, journal) = (home.clone(), home.runtime().journal().clone());
            let hand_over: Then = Box::new(move |place| scope.answer(&id, RESPOND, place, Ok(Json::null())));
            if let Err(error) = journal.append(record, hand_over).await {
                stop(&home, error);
            }
        })
    };
    Ok(Ask::new(scope, key, Box::new(start)))
}
