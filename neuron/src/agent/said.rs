use std::sync::Arc;

use super::journal::Inner;
use crate::{
    Append, EnvelopeRef, Error, Result,
    scope::{Committed, Record, Said, ThenSaid, is_refusal},
};

impl Inner {
    /// Appends what a body says and the answer that tells it so, in one batch.
    pub(super) async fn say(
        self: Arc<Self>,
        said: Said,
        answer: Record,
        then: ThenSaid,
    ) -> Result<Result<(), Error>, Error> {
        self.nothing_lost()?;
        let Said {
            mut draft,
            expectations,
        } = said;
        draft.author = self.place.author.clone();
        let (name, epoch) = &self.place.owner;
        let append = Append::of([draft, self.draft(answer, None)?]).owner(name, *epoch);
        let append = expectations.into_iter().fold(append, Append::expect);
        let append = append.then(move |outcome| {
            let Ok([said, answer]) = outcome.as_deref() else {
                return;
            };
            let reference = EnvelopeRef {
                topic: said.topic.clone(),
                seq: said.seq,
                id: said.id,
            };
            let place = Committed {
                pos: answer.pos,
                at: answer.at,
            };
            then(place, reference);
        });
        match self.ledger.append(append).await {
            Ok(_) => Ok(Ok(())),
            Err(error) if is_refusal(&error) => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }
}
