use std::sync::Arc;

use super::journal::Inner;
use crate::{
    Append, EnvelopeRef, Error, ErrorKind, Result,
    scope::{Committed, Record, Said, Then, ThenSaid, Work, is_refusal},
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

    /// Runs work on the tables of the program and appends the answer that tells of it, in one commit.
    pub(super) async fn transact(
        self: Arc<Self>,
        work: Work,
        answer: Record,
        then: Then,
    ) -> Result<Result<(), Error>, Error> {
        self.nothing_lost()?;
        let (name, epoch) = &self.place.owner;
        let append = Append::default()
            .owner(name, *epoch)
            .work(self.draft(answer, None)?, work);
        let append = append.then(move |outcome| {
            if let Ok([answer]) = outcome.as_deref() {
                then(Committed {
                    pos: answer.pos,
                    at: answer.at,
                });
            }
        });
        match self.ledger.append(append).await {
            Ok(_) => Ok(Ok(())),
            Err(error) if is_refusal(&error) || error.kind() == ErrorKind::Timeout => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }
}
