use std::{future::ready, sync::Arc};

use futures::future::BoxFuture;
use serde::Serialize;

use super::{Cx, builtin::stop, halt::held};
use crate::{
    Artifact, Author, Cause, Draft, EnvelopeRef, Error, ErrorKind, Expectation, Json, Parent, Result, Topic,
    def::Context as _,
    scope::{Answer, Ask, Record, Said, Scope, Then, ThenSaid},
    topic::catalog,
    vocabulary::step::{EmitCompleted, EmitFailed},
};

const EMIT: &str = "$emit";

impl Cx {
    /// What this body may [emit](Self::emit), to be filled in: a payload, headers, a key.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for a name that is no topic or no type.
    pub fn draft(&self, topic: &str, kind: &str) -> Result<Draft, Error> {
        Draft::new(Topic::new(topic)?, Author::engine(), kind)
    }

    /// Says something on a durable topic of the program's own: for other bodies that [wait](Self::wait_for), for
    /// consumers, for other programs. It is said once, whatever crashes: the envelope and the answer that tells this body
    /// so are one batch. Its author is this body, whoever the draft names, and its `caused-by` may name what came before.
    ///
    /// It is known by what it says: topic, type, payload, headers, key, parent, cause and artifacts. In a step the answer
    /// holds for its later attempts, so an attempt that says the same says it no second time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// let placed = cx.draft("orders", "order.placed")?.payload(&7)?.header("region", &"eu")?;
    /// let said = cx.emit(placed).await?;
    /// assert_eq!((said.topic.as_str(), said.seq), ("orders", 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What [`Ledger::append`](crate::Ledger::append) refuses, and a replay is told the same:
    /// [`ErrorKind::UnknownTopic`] for a topic that was not declared, [`ErrorKind::Contract`] for an ephemeral one or one
    /// that is built in, [`ErrorKind::Schema`], [`ErrorKind::TooLarge`], and so on. [`ErrorKind::Misuse`] for a parent or
    /// cause that is given by its place in a batch or as deferred.
    pub fn emit(&self, draft: Draft) -> Answer<'_, EnvelopeRef> {
        Answer::new(emit(self.scope(), draft, Vec::new()))
    }

    /// As [`emit`](Self::emit), only if the expectation holds when it is appended. It is no part of what the call is
    /// known by: the answer of the first time stands.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> neuron::Result<()> {
    /// # let cx: neuron::Cx = neuron::test();
    /// use neuron::{ErrorKind, Expectation, Topic};
    ///
    /// let first = Expectation::Key(Topic::new("seats")?, "12a".into(), None);
    /// let mine = cx.draft("seats", "seat.taken")?.key("12a")?;
    /// cx.emit_if(mine.clone(), first.clone()).await?;
    /// let taken = cx.emit_if(mine, first).await.unwrap_err();
    /// assert_eq!(taken.kind(), ErrorKind::Conflict);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`emit`](Self::emit), and [`ErrorKind::Conflict`] if the expectation does not hold.
    pub fn emit_if(&self, draft: Draft, expectation: Expectation) -> Answer<'_, EnvelopeRef> {
        Answer::new(emit(self.scope(), draft, vec![expectation]))
    }
}

/// What an emission is known by.
#[derive(Serialize)]
struct Args<'a> {
    #[serde(skip_serializing_if = "<[Artifact]>::is_empty")]
    artifacts: &'a [Artifact],
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a EnvelopeRef>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(&'a str, &'a Json)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a Json>,
    topic: &'a str,
    r#type: &'a str,
}

fn args(draft: &Draft) -> Result<Json, Error> {
    let misuse = |why: &str| {
        Err(Error::new(
            ErrorKind::Misuse,
            format!("what is emitted stands alone: {why}"),
        ))
    };
    let parent = match &draft.parent {
        None => None,
        Some(Parent::Seq(seq)) => Some(*seq),
        Some(Parent::Index(_) | Parent::Deferred(_)) => return misuse("give its parent as `Parent::Seq`"),
    };
    let cause = match &draft.cause {
        None => None,
        Some(Cause::Envelope(cause)) => Some(cause),
        Some(Cause::Index(_) | Cause::Deferred(_)) => return misuse("give its cause as `Cause::Envelope`"),
    };
    let headers = draft.headers.iter();
    Json::of(&Args {
        artifacts: &draft.artifacts,
        cause,
        headers: headers.map(|header| (&*header.key, &header.value)).collect(),
        key: draft.key.as_deref(),
        parent,
        payload: draft.payload.as_ref(),
        topic: draft.topic.as_str(),
        r#type: draft.kind.as_str(),
    })
}

fn emit(scope: &Arc<Scope>, mut draft: Draft, expectations: Vec<Expectation>) -> Result<Ask, Error> {
    let topic = &draft.topic;
    if topic.is_reserved() || catalog::contract(topic).is_some() {
        let why = format!("topic {topic} is built in: emit to a durable topic that the program declares");
        return Err(Error::new(ErrorKind::Contract, why));
    }
    draft.trusted = false;
    // Until the journal says who this body is.
    draft.author = Author::engine();
    let key = scope.claim(EMIT, &args(&draft)?)?;
    let saying = Saying {
        home: scope.clone(),
        key: key.clone(),
    };
    let said = Said { draft, expectations };
    let start = move |mut hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let home = saying.home.clone();
            if held(&mut hold, ready(())).await.is_err() {
                return;
            }
            // Nobody calls it off once it is with the store: an attempt that was not told that it stands would say it again.
            if let Err(error) = saying.say(said).await {
                stop(&home, error);
            }
        })
    };
    Ok(Ask::new(scope, key, Box::new(start)))
}

struct Saying {
    home: Arc<Scope>,
    key: Arc<str>,
}

impl Saying {
    async fn say(self, said: Said) -> Result<(), Error> {
        let journal = self.home.runtime().journal().clone();
        let completed = EmitCompleted {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: EMIT.into(),
        };
        let mut answer = Record::of(self.home.id(), &self.key, &completed)?;
        // The first of the batch, which is what was said.
        answer.cause = Some(Cause::Index(0));
        let (home, key) = (self.home.clone(), self.key.clone());
        let hand_over: ThenSaid = Box::new(move |place, said| home.answer(&key, EMIT, place, Json::of(&said)));
        match journal.emit(said, answer, hand_over).await? {
            Ok(()) => Ok(()),
            Err(error) => self.refused(error.settled()).await,
        }
    }

    async fn refused(self, error: Error) -> Result<(), Error> {
        let failed = EmitFailed {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: EMIT.into(),
            error: error.clone(),
        };
        let record = Record::of(self.home.id(), &self.key, &failed)?;
        let journal = self.home.runtime().journal().clone();
        let hand_over: Then = Box::new(move |place| self.home.answer(&self.key, EMIT, place, Err(error)));
        journal.append(record, hand_over).await?;
        Ok(())
    }
}
