use std::io::Read as _;

use crate::{
    Envelope, Error, ErrorKind, Json, Ledger, Result, Topic,
    scope::{Committed, History, INCARNATION},
    store::Select,
    vocabulary::{
        Message as _,
        orchestration::PackageAssigned,
        step::{EmitCompleted, StepArtifact},
    },
};

/// What the log holds for scopes whose answers stand on these topics: one cursor per topic, merged by `pos`. Blocks.
///
/// # Errors
/// A kind of the disk; [`ErrorKind::Corrupt`] for a record that is not the one that was written, or does not decode,
/// naming topic and seq: nothing is answered from damage.
pub fn history(ledger: &Ledger, topics: impl IntoIterator<Item = Topic>) -> Result<History, Error> {
    let mut history = History::new();
    read(ledger, topics, &mut history)?;
    Ok(history)
}

/// As [`history`], for a fork: before its own topics come those of the runs that it parts from, oldest first, each on the
/// log as it stood there. Of these only the answers count: what had begun and not ended begins again.
///
/// # Errors
/// As [`history`].
pub fn inherited(
    ledger: &Ledger,
    before: impl IntoIterator<Item = (Ledger, Vec<Topic>)>,
    topics: Vec<Topic>,
) -> Result<History, Error> {
    let mut history = History::new();
    for (then, topics) in before {
        read(&then, topics, &mut history)?;
        history.keep_answers();
    }
    read(ledger, topics, &mut history)?;
    Ok(history)
}

fn read(ledger: &Ledger, topics: impl IntoIterator<Item = Topic>, history: &mut History) -> Result<(), Error> {
    let cursors = topics.into_iter().map(|topic| {
        let from = begun(ledger, &topic)?;
        Ok(ledger
            .read(Select::Topic(topic))
            .from(from)
            .checked()
            .envelopes()
            .peekable())
    });
    let mut cursors = cursors.collect::<Result<Vec<_>, Error>>()?;
    loop {
        let mut first: Option<(usize, u64)> = None;
        for (index, cursor) in cursors.iter_mut().enumerate() {
            // An unreadable record comes first, so that its error is told.
            let pos = cursor
                .peek()
                .map(|next| next.as_ref().map_or(0, |envelope| envelope.pos));
            if let Some(pos) = pos.filter(|pos| first.is_none_or(|(_, least)| *pos < least)) {
                first = Some((index, pos));
            }
        }
        let Some(envelope) = first.and_then(|(index, _)| cursors[index].next()) else {
            return Ok(());
        };
        add(ledger, history, &envelope?)?;
    }
}

/// The `pos` at which the body of a topic has begun again last; its first if it never has.
fn begun(ledger: &Ledger, topic: &Topic) -> Result<u64, Error> {
    let Some(seq) = ledger.store().keyed(topic, INCARNATION)? else {
        return Ok(1);
    };
    let row = ledger.store().row(topic, seq)?;
    Ok(row.map_or(1, |row| row.pos))
}

fn add(ledger: &Ledger, history: &mut History, envelope: &Envelope) -> Result<(), Error> {
    let Some(payload) = &envelope.body.payload else {
        return Ok(());
    };
    let artifacts = &envelope.body.artifacts;
    let beside = if envelope.body.kind == PackageAssigned::TYPE {
        // Its arguments are those that the body gives it again.
        None
    } else if envelope.body.kind == StepArtifact::TYPE {
        let kept = artifacts.first().and_then(|kept| kept.hash);
        kept.map(|hash| Json::of(&hash))
    } else if envelope.body.kind == EmitCompleted::TYPE {
        envelope.cause().map(|said| Json::of(&said))
    } else {
        large(ledger, envelope)
    };
    let place = Committed {
        pos: envelope.pos,
        at: envelope.at,
    };
    history
        .add(
            place,
            envelope.seq,
            envelope.body.kind.as_str(),
            payload,
            beside.transpose()?,
        )
        .map_err(|error| {
            let error = if error.kind() == ErrorKind::Schema {
                Error::new(ErrorKind::Corrupt, error)
            } else {
                error
            };
            error.context(format!("{} seq {}", envelope.topic, envelope.seq))
        })
}

/// The value that stands as an artifact beside a payload, as it was too large for it.
pub(crate) fn large(ledger: &Ledger, envelope: &Envelope) -> Option<Result<Json, Error>> {
    let mut artifacts = envelope.body.artifacts.iter();
    let hash = artifacts
        .find(|artifact| artifact.kind.as_deref() == Some("payload"))?
        .hash?;
    let read = || {
        let mut text = String::new();
        ledger.blob(&hash)?.read_to_string(&mut text)?;
        Json::parse(&text)
    };
    Some(read())
}
