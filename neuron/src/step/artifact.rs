use std::{collections::BTreeMap, future::Future, sync::Arc};

use futures::future::BoxFuture;

use super::{builtin::stop, halt::held};
use crate::{
    Artifact, ArtifactRef, Digest, Error, ErrorKind, Json, Result,
    envelope::bounded,
    scope::{Answer, Ask, Committed, Content, Manner, Record, Recorded, Scope, Then},
    vocabulary::step::{StepArtifact, StepFailed},
};

const ARTIFACT: &str = "$artifact";

/// Kinds with a meaning of their own to the engine.
const RESERVED: [&str; 4] = ["payload", "superseded", "head", "member"];

/// Keeps a blob and says so on the log: as a call with an answer where the body is replayed, beside the step's end where
/// it is not.
pub(super) fn artifact<'a>(scope: &'a Arc<Scope>, name: &str, kind: &str, content: Content) -> Answer<'a, ArtifactRef> {
    let evidence = match Evidence::claim(scope, name, kind) {
        Ok(evidence) => evidence,
        Err(error) => return Answer::new(Err(error)),
    };
    if scope.manner() == Manner::Free {
        return Answer::work(Box::pin(evidence.keep(content)));
    }
    let key = evidence.key.clone();
    let start = move |mut hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let home = evidence.home.clone();
            if let Ok(Err(error)) = held(&mut hold, evidence.answer(content)).await {
                stop(&home, error);
            }
        })
    };
    Answer::new(Ok(Ask::new(scope, key, Box::new(start))))
}

/// A call of `artifact`: it is known by name, kind and occurrence, not by a content that may be streamed.
struct Evidence {
    home: Arc<Scope>,
    key: Arc<str>,
    name: String,
    kind: String,
}

impl Evidence {
    fn claim(scope: &Arc<Scope>, name: &str, kind: &str) -> Result<Self, Error> {
        bounded("the name of an artifact", name)?;
        bounded("the kind of an artifact", kind)?;
        if RESERVED.contains(&kind) {
            let why = format!("artifact `{name}`: kind `{kind}` belongs to the engine, choose another");
            return Err(Error::new(ErrorKind::Misuse, why));
        }
        let args = Json::of(&BTreeMap::from([("kind", kind), ("name", name)]))?;
        Ok(Self {
            home: scope.clone(),
            key: scope.claim(ARTIFACT, &args)?,
            name: name.into(),
            kind: kind.into(),
        })
    }

    /// In a body that is replayed: the reference is the answer, and so is a reader that fails.
    async fn answer(self, content: Content) -> Result<(), Error> {
        let journal = self.home.runtime().journal.clone();
        let (record, outcome) = match journal.store(content).await? {
            Ok(hash) => (self.record(hash)?, Json::of(&hash)),
            Err(error) => {
                let error = error.settled();
                (self.failed(&error)?, Err(error))
            }
        };
        let hand_over: Then = Box::new(move |place| self.home.answer(&self.key, ARTIFACT, place, outcome));
        journal.append(record, hand_over).await?;
        Ok(())
    }

    /// In a body that is not: what a step does again it keeps again, and says so unless the log says the same already.
    fn keep(self, content: Content) -> impl Future<Output = Result<ArtifactRef, Error>> + Send {
        let journal = self.home.runtime().journal.clone();
        async move {
            let stored = journal.store(content).await;
            let hash = stored.inspect_err(|error| stop(&self.home, error.clone()))??;
            let reference = Json::of(&hash)?;
            if self.home.recorded(&self.key) != Some(Ok(reference.clone())) {
                journal.defer(self.record(hash)?);
                let place = Committed {
                    pos: 0,
                    at: self.home.now(),
                };
                let kept = Recorded::new(place, Ok(reference));
                self.home.known(&self.key, |call| call.answers(ARTIFACT, kept));
            }
            Ok(ArtifactRef(hash))
        }
    }

    fn record(&self, hash: Digest) -> Result<Record, Error> {
        let kept = StepArtifact {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: ARTIFACT.into(),
        };
        let mut record = Record::of(self.home.id(), &self.key, &kept)?;
        record.artifacts.push(Artifact {
            name: self.name.clone(),
            hash: Some(hash),
            kind: Some(self.kind.clone()),
        });
        Ok(record)
    }

    fn failed(&self, error: &Error) -> Result<Record, Error> {
        let failed = StepFailed {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: ARTIFACT.into(),
            attempt: 1,
            error: error.clone(),
            resolved: None,
        };
        Record::of(self.home.id(), &self.key, &failed)
    }
}
