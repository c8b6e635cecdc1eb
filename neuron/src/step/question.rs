use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::{
    deadline,
    halt::{Halt, held},
};
use crate::{
    Cause, Error, ErrorKind, Json, Payload, Result, SchemaRef, SchemaUse, limits, schema,
    scope::{ASK, Ask, Given, Record, Recorded, Scope, Sought, Stop, Taken, Then, by_size, lapsed},
    vocabulary::{
        Message,
        dialogue::{QuestionAnswered, QuestionAsked, QuestionLapsed, QuestionRefused},
    },
};

/// A question to a person: await it for the answer.
///
/// Nothing is asked before it is awaited, and dropping it withdraws the question.
#[must_use = "nobody is asked until it is awaited"]
pub struct Question<'a, T> {
    ask: Result<Ask, Error>,
    within: Arc<OnceLock<Duration>>,
    context: PhantomData<&'a ()>,
    answer: PhantomData<fn() -> T>,
}

/// A question that may stay unanswered: `None` once its time is over.
#[must_use = "nobody is asked until it is awaited"]
pub struct Within<'a, T>(Question<'a, T>);

impl<T: Payload> Question<'_, T> {
    /// Makes the call: it is known by what it asks, and by its occurrence among equal questions of the body.
    pub(super) fn new(scope: &Arc<Scope>, question: String) -> Self {
        let within = Arc::new(OnceLock::new());
        Self {
            ask: ask::<T>(scope, question, within.clone()),
            within,
            context: PhantomData,
            answer: PhantomData,
        }
    }
}

impl<'a, T> Question<'a, T> {
    /// The answer if it is given in `time`, else `None`, which the code branches on like on any other answer. The time
    /// begins when the question is put on the log, as a moment of the wall: a restart waits for the rest of it. An
    /// answer that is given later is refused.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// let may = cx.ask_human::<bool>("Publish?").within(Duration::from_millis(1)).await?;
    /// assert_eq!(may, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn within(self, time: Duration) -> Within<'a, T> {
        self.within.get_or_init(|| time);
        Within(self)
    }
}

impl<T: Payload> Future for Question<'_, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ask = match &mut self.ask {
            Ok(ask) => ask,
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        match Pin::new(&mut *ask).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(taken)) => present("answer to a question", ask.scope(), taken).map(Ok),
        }
    }
}

impl<T: Payload> Future for Within<'_, T> {
    type Output = Result<Option<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|answer| match answer {
            Err(error) if error.kind() == ErrorKind::Timeout => Ok(None),
            answer => answer.map(Some),
        })
    }
}

impl<T> Unpin for Question<'_, T> {}
impl<T> Unpin for Within<'_, T> {}

impl<T> fmt::Debug for Question<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Question({:?})", self.ask)
    }
}

impl<T> fmt::Debug for Within<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What was given from outside as the present type; an upcaster is asked only where it does not decode. What does not
/// decode holds the body: it is not told of it.
pub(super) fn present<T: Payload>(what: &str, scope: &Arc<Scope>, taken: Taken) -> Poll<T> {
    let (json, from) = (taken.json.clone(), taken.schema);
    let decoded = taken.decode().or_else(|failed| {
        let present = schema::of::<T>()?.reference();
        match from.filter(|from| *from != present) {
            Some(from) => scope.runtime().journal().upcast(json, from, present)?.decode(),
            None => Err(failed),
        }
    });
    match decoded {
        Ok(value) => Poll::Ready(value),
        Err(error) => {
            let why = format!("a recorded {what} does not decode as the present type: {error}");
            let held = Error::new(ErrorKind::ReplayDecode, why);
            scope.runtime().stop(Stop::Held(held));
            Poll::Pending
        }
    }
}

fn ask<T: Payload>(scope: &Arc<Scope>, question: String, within: Arc<OnceLock<Duration>>) -> Result<Ask, Error> {
    let (bytes, max) = (question.len(), limits::QUESTION_BYTES_MAX);
    if bytes > max {
        let why = format!("a question of {bytes} bytes: at most {max} are allowed, keep the rest as an artifact");
        return Err(Error::new(ErrorKind::TooLarge, why));
    }
    let schema = schema::of::<T>()?;
    let args = Json::of(&BTreeMap::from([("question", &question)]))?;
    let key = scope.claim(ASK, &args)?;
    let inquiry = Inquiry {
        home: scope.clone(),
        key: key.clone(),
        question,
        within,
        schema,
        check: |json| json.decode::<T>().map(drop),
    };
    let start = move |mut hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match inquiry.run(&mut hold).await {
                Ok(()) => {}
                Err(Halt::Dropped) => inquiry.home.leave(&inquiry.key, || None),
                Err(Halt::Stopped(why)) => inquiry.home.runtime().stop(why),
            }
        })
    };
    Ok(Ask::new(scope, key, Box::new(start)))
}

/// A question that is being asked, without the type of its answer.
struct Inquiry {
    home: Arc<Scope>,
    key: Arc<str>,
    question: String,
    within: Arc<OnceLock<Duration>>,
    schema: Arc<SchemaUse>,
    check: fn(&Json) -> Result<(), Error>,
}

impl Inquiry {
    async fn run(&self, hold: &mut oneshot::Receiver<()>) -> Result<(), Halt> {
        let journal = self.home.runtime().journal();
        let mut heard = match self.home.known(&self.key, |call| call.heard) {
            Some(pos) => pos,
            None => self.asked().await?,
        };
        let deadline = self.home.known(&self.key, |call| call.deadline);
        let time = self.within.get().copied().unwrap_or(Duration::MAX);
        let over = async {
            match deadline {
                Some(deadline) => deadline::passed(&**journal, deadline, time).await,
                None => std::future::pending().await,
            }
        };
        let mut over = std::pin::pin!(over);
        let mut is_over = false;
        loop {
            let sought = Sought::Answer(self.key.clone());
            let next = async {
                if !is_over {
                    tokio::select! {
                        // What was given while nobody was here comes first.
                        biased;
                        given = journal.given(sought.clone(), heard) => return given.map(Some),
                        () = &mut over => is_over = true,
                    }
                }
                // What another process has committed by now was perhaps not heard yet.
                journal.stands(sought, heard).await
            };
            let Some(given) = held(hold, next).await?? else {
                return self.lapsed().await;
            };
            heard = given.pos;
            // Given after its time, though that was not on the log yet.
            if deadline.is_some_and(|deadline| given.at >= deadline) {
                continue;
            }
            match (self.check)(&given.value) {
                Ok(()) => return self.answered(given).await,
                Err(error) => self.refused(&given, &error).await?,
            }
        }
    }

    async fn asked(&self) -> Result<u64, Halt> {
        let journal = self.home.runtime().journal();
        let deadline = self.within.get().map(|time| journal.now().plus(*time));
        let asked = QuestionAsked {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: ASK.into(),
            question: self.question.clone(),
            answer: self.schema(),
            deadline,
        };
        let mut record = self.record(&asked)?;
        record.named.push(self.schema.clone());
        let (home, key) = (self.home.clone(), self.key.clone());
        let note: Then = Box::new(move |place| {
            home.known(&key, |call| {
                ASK.clone_into(&mut call.name);
                (call.heard, call.deadline) = (Some(place.pos), deadline);
            });
        });
        Ok(journal.append(record, note).await?.pos)
    }

    async fn answered(&self, given: Given) -> Result<(), Halt> {
        let (answer, large) = by_size("answer", given.value.clone());
        let schema = self.schema();
        let answered = QuestionAnswered {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: ASK.into(),
            answer,
            answer_schema: schema,
            by: given.by,
        };
        let mut record = self.record(&answered)?.large(large);
        record.cause = given.cause.map(Cause::Envelope);
        let (home, key) = (self.home.clone(), self.key.clone());
        let hand_over: Then = Box::new(move |place| {
            let mut answer = Recorded::new(place, Ok(given.value));
            answer.schema = Some(schema);
            home.answered(&key, ASK, answer);
        });
        self.home.runtime().journal().append(record, hand_over).await?;
        Ok(())
    }

    async fn lapsed(&self) -> Result<(), Halt> {
        let word = QuestionLapsed {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: ASK.into(),
        };
        let (home, key) = (self.home.clone(), self.key.clone());
        let hand_over: Then = Box::new(move |place| home.answer(&key, ASK, place, Err(lapsed())));
        let record = self.record(&word)?;
        self.home.runtime().journal().append(record, hand_over).await?;
        Ok(())
    }

    async fn refused(&self, given: &Given, error: &Error) -> Result<(), Halt> {
        let (key, reason) = (&*self.key, error.to_string());
        tracing::warn!(
            key,
            reason,
            "an answer to a question is none, and the question stays open"
        );
        let refused = QuestionRefused {
            scope: self.home.id().to_string(),
            key: key.to_owned(),
            name: ASK.into(),
            given: given.pos,
            reason,
        };
        let mut record = self.record(&refused)?;
        record.cause = given.cause.clone().map(Cause::Envelope);
        self.home.runtime().journal().append(record, Box::new(|_| {})).await?;
        Ok(())
    }

    fn schema(&self) -> SchemaRef {
        self.schema.reference()
    }

    fn record<M: Message>(&self, message: &M) -> Result<Record, Error> {
        Record::of(self.home.id(), &self.key, message)
    }
}
