use crate::{
    Envelope, Error, Json, Result,
    scope::{Ruling, Sought},
    vocabulary::{
        Message as _,
        control::{ControlAnswered, ControlRequested, ControlResolved, StepRuling},
    },
};

/// What an envelope of a control topic says to whoever wants that.
pub(super) fn says(envelope: &Envelope, wanted: &Sought) -> Result<Option<Json>, Error> {
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
