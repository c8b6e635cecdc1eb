use std::sync::Arc;

use futures::future::BoxFuture;

use super::{INCARNATION, Incarnation, Manner, Record, Runtime, Scope, Stop, by_size, contain};
use crate::{Error, ErrorKind, Json, Millis, Result, def::Entry, vocabulary::step::AgentContinued};

/// Drives an agent's body to its end: the first one on `first`, and after each `continue_with` the next on its
/// arguments, in a scope of its own. What the log holds already is where it goes on.
///
/// # Errors
/// Why the body was left without an end.
pub async fn incarnations(
    runtime: &Arc<Runtime>,
    id: &str,
    birth: Millis,
    entry: &'static Entry,
    first: impl FnOnce(Arc<Scope>) -> Result<BoxFuture<'static, Result<Json, Error>>, Error> + Send,
) -> Result<Result<Json, Error>, Stop> {
    let mut next = if let Some(incarnation) = runtime.take_continued() {
        incarnation
    } else {
        let scope = Scope::root(runtime, id, birth, Manner::Replayed);
        scope.is_body_of(entry.meta().name);
        let ended = match first(scope.clone()) {
            Ok(body) => contain(&scope, body).await,
            Err(error) => Ok(Err(error)),
        };
        match ended {
            Err(Stop::Continued) => begin_again(runtime, id, &scope, 1, entry).await?,
            ended => return ended,
        }
    };
    loop {
        let scope = Scope::root(runtime, &next.scope, next.at, Manner::Replayed);
        scope.is_body_of(entry.meta().name);
        let body = again(runtime, entry, &next, &scope).map_err(Stop::Held)?;
        match contain(&scope, body).await {
            Err(Stop::Continued) => next = begin_again(runtime, id, &scope, next.number + 1, entry).await?,
            ended => return ended,
        }
    }
}

/// The body that begins again.
///
/// # Errors
/// [`ErrorKind::ReplayDecode`] if what it began again with is not what it takes today.
pub(super) fn again(
    runtime: &Runtime,
    entry: &'static Entry,
    last: &Incarnation,
    scope: &Arc<Scope>,
) -> Result<BoxFuture<'static, Result<Json, Error>>, Error> {
    runtime.begins_again();
    let body = entry.run(scope.clone(), present(runtime, entry, last)?);
    Ok(Box::pin(async move { body.await.map(|ran| ran.json) }))
}

/// The recorded arguments by the present types.
fn present(runtime: &Runtime, entry: &Entry, next: &Incarnation) -> Result<Json, Error> {
    let (args, recorded) = &next.args;
    let read = entry.normalise(args).or_else(|failed| {
        let present = entry.form().args_schema();
        if *recorded == present {
            return Err(failed);
        }
        entry.normalise(&runtime.journal.upcast(args.clone(), *recorded, present)?)
    });
    let read = read.map_err(|error| {
        let why = format!(
            "the arguments with which `{}` began again do not decode today: {error}",
            entry.meta().name
        );
        Error::new(ErrorKind::ReplayDecode, why)
    });
    read.map(|args| args.revealed)
}

/// One append ends what was and begins what comes. Everything of the old scope has ended or was abandoned by now.
async fn begin_again(
    runtime: &Runtime,
    id: &str,
    ended: &Arc<Scope>,
    number: u64,
    entry: &Entry,
) -> Result<Incarnation, Stop> {
    let onward = ended.take_onward().ok_or(Stop::Continued)?;
    let scope: Arc<str> = format!("{id}~{number}").into();
    let (args, large) = by_size("args", onward.args.clone());
    let (updates, returned) = runtime.updates.handed();
    let continued = AgentContinued {
        scope: ended.id().to_string(),
        key: scope.to_string(),
        name: entry.meta().name.into(),
        incarnation: number,
        args,
        args_schema: onward.schema,
        updates,
        returned,
    };
    let record = Record::of(ended.id(), &scope, &continued);
    let mut record = record.map_err(Stop::Refused)?.large(large);
    record.keyed = Some(INCARNATION.into());
    let place = runtime.journal.append(record, Box::new(|_| {})).await;
    let place = place.map_err(|error| match error.kind() {
        ErrorKind::Cancelled => Stop::Cancelled,
        _ => Stop::Refused(error),
    })?;
    runtime.gained();
    Ok(Incarnation {
        scope,
        number,
        args: (onward.args, onward.schema),
        at: place.at,
    })
}
