use std::sync::Arc;

use neuron::{
    Append, Artifact, Author, Error, ErrorKind, Expectation, Json, Result, RunId,
    def::{Encoded, Entry},
    limits,
    ownership::{Claimed, Takeover},
    topic::catalog,
    vocabulary::{Message as _, orchestration::OrchestrationCreated},
};

use crate::builds::Builds;

use super::{
    driver::Driver,
    engine::{Engine, conflict, fingerprint},
    standing::{Created, End, Standing, ended, standing},
};

/// A run that this process is to bring to its end.
pub(crate) struct Errand {
    pub(crate) id: RunId,
    pub(crate) entry: &'static Entry,
    pub(crate) args: Encoded,
    /// The claim, if it was made already.
    pub(crate) claimed: Option<Claimed>,
}

/// The name under which a run is owned.
pub(crate) fn owned(run: &RunId) -> String {
    format!("run:{run}")
}

/// Gives the recorded end of a run, waits for the process that drives it, or drives it, whichever is the case.
pub(crate) async fn supervise(engine: &Arc<Engine>, errand: Errand) -> End {
    let (id, name) = (&errand.id, owned(&errand.id));
    let mut standing = look(engine, &errand).await?;
    let mut claimed = errand.claimed.clone();
    loop {
        if let Standing::Ended(_, end) = standing {
            return end;
        }
        let claim = match claimed.take() {
            Some(claimed) => claimed,
            None => match engine.ownership.claim(&name).await {
                Err(error) if error.kind() == ErrorKind::Owned => {
                    let after = if let Standing::Open(created) = &standing {
                        created.envelope.pos
                    } else {
                        0
                    };
                    tokio::select! {
                        claimed = engine.ownership.claim_when_free(&name) => claimed?,
                        ended = ended(&engine.ledger, id, after) => {
                            ended?;
                            standing = look(engine, &errand).await?;
                            continue;
                        }
                    }
                }
                claimed => claimed?,
            },
        };
        // Somebody else may have begun or ended it between the look and the claim.
        if claim.from != Takeover::Free || claim.epoch > 1 {
            standing = look(engine, &errand).await?;
        }
        match standing {
            Standing::Ended(_, end) => {
                engine.ownership.release(&name).await?;
                return end;
            }
            Standing::Open(created) => {
                if let Err(refused) = Builds::of(&engine.ledger)?.takes_up(&engine.build, &created.build) {
                    engine.ownership.release(&name).await?;
                    return Err(refused);
                }
                return Driver::resume(engine, &errand, claim).await?.drive().await;
            }
            Standing::New => {}
        }
        match create(engine, &errand, &claim).await {
            Ok(created) => return Driver::begin(engine, &errand, &claim, &created).drive().await,
            // The log is not as it was read: look again, under the claim.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                claimed = Some(claim);
                standing = look(engine, &errand).await?;
            }
            Err(error) => {
                if error.kind() == ErrorKind::Denied {
                    engine.ownership.release(&name).await?;
                }
                return Err(error);
            }
        }
    }
}

/// How the run stands; a conflict if it is one of another orchestrator or with other arguments.
async fn look(engine: &Arc<Engine>, errand: &Errand) -> Result<Standing, Error> {
    let (ledger, id) = (engine.ledger.clone(), errand.id.clone());
    let read = tokio::task::spawn_blocking(move || standing(&ledger, &id)).await;
    let standing = read.map_err(|error| Error::new(ErrorKind::Io, error))??;
    if let Standing::Open(created) | Standing::Ended(created, _) = &standing {
        same(engine, errand, created)?;
    }
    Ok(standing)
}

fn same(engine: &Engine, errand: &Errand, created: &Created) -> Result<(), Error> {
    let Errand { entry, args, .. } = errand;
    if entry.meta().is_called(&created.name) {
        let by_present_types = || engine.registry.identity_of(entry, &created.args);
        if created.args == args.recorded || by_present_types().is_ok_and(|identity| identity == args.identity) {
            return Ok(());
        }
    }
    Err(conflict(&errand.id, &created.name))
}

async fn create(engine: &Arc<Engine>, errand: &Errand, claim: &Claimed) -> Result<neuron::Receipt, Error> {
    let builds = Builds::of(&engine.ledger)?;
    builds.begins(&engine.build)?;
    let topic = catalog::lifecycle(&errand.id);
    let recorded = errand.args.recorded.clone();
    let is_large = recorded.len() > limits::INLINE_VALUE_BYTES_MAX;
    let created = OrchestrationCreated {
        name: errand.entry.meta().name.into(),
        args: (!is_large).then(|| recorded.clone()),
        build: engine.build.clone(),
        registry: fingerprint(&engine.registry)?,
        fork: None,
    };
    let mut draft = created.draft(topic.clone(), Author::from(&errand.id))?;
    if is_large {
        draft = draft.artifact(store(engine, recorded).await?);
    }
    let append = Append::of([draft])
        .expect(Expectation::Head(topic, 0))
        // An order that is given meanwhile is obeyed.
        .expect(Expectation::Head(catalog::builds(), builds.head()))
        .owner(&claim.name, claim.epoch);
    let receipts = engine.ledger.append(append).await?;
    let first = receipts.into_iter().next();
    first.ok_or_else(|| Error::new(ErrorKind::Corrupt, "the store gave no receipt"))
}

async fn store(engine: &Arc<Engine>, value: Json) -> Result<Artifact, Error> {
    let ledger = engine.ledger.clone();
    let stored = tokio::task::spawn_blocking(move || ledger.store_blob(value.as_str().as_bytes())).await;
    Ok(Artifact {
        name: "args".into(),
        hash: Some(stored.map_err(|error| Error::new(ErrorKind::Io, error))??),
        kind: Some("payload".into()),
    })
}
