use crate::{
    Envelope, Error, Json, Result,
    scope::{Given, Ruling, Sought},
    vocabulary::{
        Message as _,
        control::{ControlAnswered, ControlRequested, ControlResolved, StepRuling},
    },
};

/// What an envelope of a control topic gives to whoever wants that.
///
/// # Errors
/// [`ErrorKind::Schema`](crate::ErrorKind::Schema) if its payload is not what its type says.
pub(super) fn given(envelope: &Envelope, wanted: &Sought) -> Result<Option<Given>, Error> {
    let value = says(envelope, wanted)?;
    Ok(value.map(|value| Given {
        pos: envelope.pos,
        at: envelope.at,
        by: envelope.author.to_string(),
        value,
        cause: Some(envelope.reference()),
    }))
}

fn says(envelope: &Envelope, wanted: &Sought) -> Result<Option<Json>, Error> {
    Ok(match wanted {
        Sought::Answer(key) => {
            let answered = ControlAnswered::read(envelope)?.filter(|answered| *answered.key == **key);
            answered.map(|answered| answered.answer)
        }
        Sought::Update(name) => {
            let requested = ControlRequested::read(envelope)?.filter(|requested| *requested.update == **name);
            requested.map(|requested| requested.request)
        }
    })
}

/// What a person ruled.
pub(super) fn ruled(resolved: ControlResolved) -> Ruling {
    match resolved.ruling {
        StepRuling::Done => Ruling::Done(resolved.output.unwrap_or_else(Json::null)),
        StepRuling::Redo => Ruling::Redo,
        StepRuling::Fail => {
            let because = resolved
                .because
                .unwrap_or_else(|| "a ruling says that it failed".into());
            Ruling::Fail(Error::terminal(because))
        }
    }
}
