use serde::Serialize;

use super::{Ledger, injected::HeaderInjected};
use crate::{
    Author, Draft, Envelope, Error, Header, Headers, Json, Parent, Receipt, Result,
    store::{INJECTED, Select},
};

impl Ledger {
    /// Injects a header into a recorded envelope: an envelope of its own, whose parent is the target.
    ///
    /// # Errors
    /// [`Reserved`](crate::ErrorKind::Reserved) if the key belongs to the engine,
    /// [`Malformed`](crate::ErrorKind::Malformed) if the target is itself an injection; else as [`Ledger::append`].
    pub async fn inject(
        &self,
        target: &Envelope,
        key: &str,
        value: &(impl Serialize + ?Sized),
        reason: &str,
        author: &Author,
    ) -> Result<Receipt, Error> {
        let injected = HeaderInjected {
            key: key.into(),
            value: Json::of(value)?,
            schema: None,
            reason: reason.into(),
        };
        let draft = Draft::message(target.topic.clone(), author.clone(), &injected)?.parent(Parent::Seq(target.seq));
        self.publish(draft).await
    }

    /// The birth headers of an envelope and everything injected later, up to and with `pos`; `None` = to now. Blocks.
    ///
    /// # Errors
    /// A kind of the disk, or an injection that does not decode.
    pub fn headers(&self, envelope: &Envelope, upto: Option<u64>) -> Result<Headers, Error> {
        let reading = self.read(Select::Topic(envelope.topic.clone())).from(envelope.pos + 1);
        let mut later = Vec::new();
        for injection in reading.to(upto.unwrap_or(u64::MAX)).envelopes() {
            let injection = injection?;
            if injection.parent_seq == Some(envelope.seq) && injection.body.kind == INJECTED {
                let HeaderInjected { key, value, schema, .. } = injection.decode()?;
                later.push(Header {
                    key,
                    value,
                    author: injection.author,
                    at: injection.at,
                    schema,
                });
            }
        }
        Ok(envelope.headers.clone().extended(later))
    }
}
