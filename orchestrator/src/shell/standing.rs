use std::io::Read as _;

use neuron::{
    Envelope, Error, ErrorKind, Json, Ledger, Pattern, Result, RunId,
    ledger::From,
    store::Select,
    topic::catalog,
    vocabulary::{
        Message as _,
        orchestration::{OrchestrationCancelled, OrchestrationCompleted, OrchestrationCreated, OrchestrationFailed},
    },
};

/// What a run gave, or why it gave nothing.
pub(crate) type End = Result<Json, Error>;

/// How a run stands on the log.
pub(crate) enum Standing {
    /// Nobody began it.
    New,
    /// It began and has not ended.
    Open(Box<Created>),
    /// It has ended.
    Ended(Box<Created>, End),
}

/// The beginning of a run.
pub(crate) struct Created {
    pub(crate) envelope: Envelope,
    pub(crate) name: String,
    /// The program that began it.
    pub(crate) build: String,
    pub(crate) args: Json,
}

/// How a run stands. Blocks.
pub(crate) fn standing(ledger: &Ledger, run: &RunId) -> Result<Standing, Error> {
    let topic = catalog::lifecycle(run);
    if ledger.store().head(&topic)? == 0 {
        return Ok(Standing::New);
    }
    let read = || ledger.read(Select::Topic(topic.clone())).checked();
    let Some(first) = read().limit(1).envelopes().next().transpose()? else {
        return Ok(Standing::New);
    };
    let created = created(ledger, first)?;
    // The end is the last word on the topic, but for what a resumed body may have found out.
    for envelope in read().newest_first().envelopes() {
        let envelope = envelope?;
        if let Some(end) = end(ledger, &envelope)? {
            return Ok(Standing::Ended(Box::new(created), end));
        }
        if !envelope.body.kind.as_str().starts_with("replay.") {
            break;
        }
    }
    Ok(Standing::Open(Box::new(created)))
}

fn created(ledger: &Ledger, envelope: Envelope) -> Result<Created, Error> {
    let Some(payload) = OrchestrationCreated::read(&envelope)? else {
        let why = format!(
            "{} does not begin with `{}`",
            envelope.topic,
            OrchestrationCreated::TYPE
        );
        return Err(Error::new(ErrorKind::Corrupt, why));
    };
    Ok(Created {
        args: value(ledger, &envelope, payload.args)?,
        name: payload.name,
        build: payload.build,
        envelope,
    })
}

/// The end of a run, if the envelope is one.
pub(crate) fn end(ledger: &Ledger, envelope: &Envelope) -> Result<Option<End>, Error> {
    Ok(Some(match envelope.body.kind.as_str() {
        OrchestrationCompleted::TYPE => {
            let output = envelope.decode::<OrchestrationCompleted>()?.output;
            Ok(value(ledger, envelope, output)?)
        }
        OrchestrationFailed::TYPE => Err(envelope.decode::<OrchestrationFailed>()?.error),
        OrchestrationCancelled::TYPE => Err(cancelled(envelope.decode::<OrchestrationCancelled>()?.because)),
        _ => return Ok(None),
    }))
}

/// What whoever waits for a cancelled run is told.
pub(crate) fn cancelled(because: Option<String>) -> Error {
    let because = because.map_or_else(String::new, |because| format!(": {because}"));
    Error::new(ErrorKind::Cancelled, format!("the run was cancelled{because}"))
}

/// A value of the payload, or the artifact that it stands as.
pub(crate) fn value(ledger: &Ledger, envelope: &Envelope, inline: Option<Json>) -> Result<Json, Error> {
    if let Some(value) = inline {
        return Ok(value);
    }
    let mut artifacts = envelope.body.artifacts.iter();
    let large = artifacts.find(|artifact| artifact.kind.as_deref() == Some("payload"));
    let Some(hash) = large.and_then(|artifact| artifact.hash) else {
        return Ok(Json::null());
    };
    let mut text = String::new();
    ledger.blob(&hash)?.read_to_string(&mut text)?;
    Json::parse(&text)
}

/// Waits until the log holds the end of a run that another process drives.
pub(crate) async fn ended(ledger: &Ledger, run: &RunId, after: u64) -> Result<(), Error> {
    let topic = catalog::lifecycle(run);
    let mut log = ledger.subscribe(Pattern::exactly(&topic), From::After(after))?;
    loop {
        let envelope = log.next().await?;
        if end(ledger, &envelope)?.is_some() {
            return Ok(());
        }
    }
}
