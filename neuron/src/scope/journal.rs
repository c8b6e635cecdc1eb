use std::{fmt, sync::Arc};

use futures::future::{self, BoxFuture};

use super::Content;
use crate::{
    Artifact, Cause, Digest, Draft, Envelope, EnvelopeRef, Error, ErrorKind, Expectation, Json, Millis, Result,
    SchemaRef, SchemaUse, Transaction,
    ledger::{Found, Wanted},
    limits, schema,
    store::tables::no_tables,
    vocabulary::{Message, step::StepProgressed},
};

/// Who keeps the log of a scope. Everything that a replayed body can learn comes through here.
///
/// Obligations: records become durable in the order in which they are handed over; `then` is called once per durable
/// record of [`append`](Self::append), in commit order, and not at all if the append fails; it returns quickly and
/// never calls the journal. An implementation holds no lock of its own that `then` could wait for.
pub trait Journal: Send + Sync + fmt::Debug + 'static {
    /// Appends a record and waits until it is durable. Dropping the future does not take the record back.
    fn append(&self, record: Record, then: Then) -> BoxFuture<'static, Result<Committed, Error>>;

    /// Appends a record with the next commit. One that is refused fails the next append.
    fn defer(&self, record: Record);

    /// Before anything is appended: the log holds a start of this call without an end, at this `seq` of its topic. The end
    /// responds to it.
    fn begun(&self, key: Arc<str>, seq: u64) {
        let _ = (key, seq);
    }

    /// The clock of the wall.
    fn now(&self) -> Millis;

    /// Waits for a ruling on the call `key` that was given after `pos`.
    fn ruling(&self, key: &str, pos: u64) -> BoxFuture<'static, Result<Ruling, Error>>;

    /// Waits for what was given from outside after `pos`: the next one, in the order of the log.
    /// Nobody gives anything to a log that does not say how.
    fn given(&self, wanted: Sought, pos: u64) -> BoxFuture<'static, Result<Given, Error>> {
        let _ = (wanted, pos);
        Box::pin(future::pending())
    }

    /// What was given from outside after `pos` and stands by now, whoever has committed it: the first. Where nobody gives
    /// anything, nothing.
    fn stands(&self, wanted: Sought, pos: u64) -> BoxFuture<'static, Result<Option<Given>, Error>> {
        let _ = (wanted, pos);
        Box::pin(future::ready(Ok(None)))
    }

    /// Stores a blob beside the log and gives the hash of its content. The inner error is the reader's, the outer one
    /// the log's. A log that keeps none refuses.
    fn store(&self, content: Content) -> BoxFuture<'static, Result<Result<Digest, Error>, Error>> {
        drop(content);
        let refused = Error::new(ErrorKind::Misuse, "this log keeps no artifacts");
        Box::pin(future::ready(Ok(Err(refused))))
    }

    /// Appends what a body says on a topic of the program's own, together with the answer that tells the body so, which
    /// names it as its cause. The inner error is about the body's draft, and nothing was written; the outer one is the
    /// log's. A log without topics refuses.
    fn emit(&self, said: Said, answer: Record, then: ThenSaid) -> BoxFuture<'static, Result<Result<(), Error>, Error>> {
        drop((said, answer, then));
        let refused = Error::new(ErrorKind::Misuse, "this log has no topics");
        Box::pin(future::ready(Ok(Err(refused))))
    }

    /// Runs work on the tables of the program, and appends the record with the payload that it gives, in one commit. The
    /// inner error is about the work, and nothing was written; the outer one is the log's. A log without tables refuses.
    fn transact(&self, work: Work, answer: Record, then: Then) -> BoxFuture<'static, Result<Result<(), Error>, Error>> {
        drop((work, answer, then));
        Box::pin(future::ready(Ok(Err(no_tables()))))
    }

    /// Waits for an envelope until `timer` ends; `None` is that none had come by then. The inner error says why none can
    /// come, the outer one is the log's. A log without topics refuses.
    fn wait(
        &self,
        wanted: Wanted,
        timer: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, Result<Result<Option<Found>, Error>, Error>> {
        drop((wanted, timer));
        let refused = Error::new(ErrorKind::Misuse, "this log has no topics");
        Box::pin(future::ready(Ok(Err(refused))))
    }

    /// The envelope that an answer names.
    ///
    /// # Errors
    /// A kind of the disk; [`ErrorKind::Corrupt`] if it is not the one that was written, or not there.
    fn envelope(&self, reference: &EnvelopeRef) -> Result<Envelope, Error> {
        let EnvelopeRef { topic, seq, .. } = reference;
        Err(Error::new(
            ErrorKind::Corrupt,
            format!("{topic} seq {seq} is not in this log"),
        ))
    }

    /// Tells whoever watches how far a body is. Nobody may be there, and nothing comes of that.
    fn progress(&self, progress: StepProgressed) {
        drop(progress);
    }

    /// A recorded value in the form of a newer schema; the same value if no upcaster is registered.
    ///
    /// # Errors
    /// What an upcaster says.
    fn upcast(&self, value: Json, from: SchemaRef, to: SchemaRef) -> Result<Json, Error> {
        let _ = (from, to);
        Ok(value)
    }
}

/// Told the place of a record once it is durable.
pub type Then = Box<dyn FnOnce(Committed) + Send>;

/// Work of a body on the tables of the program: the payload of its record.
pub type Work = Box<dyn FnOnce(&Transaction<'_>) -> Result<Json, Error> + Send>;

/// What a body says on a topic of the program's own.
#[derive(Clone, Debug)]
pub struct Said {
    /// What it says, without its author, which the journal knows.
    pub draft: Draft,
    /// What must hold for it to be said.
    pub expectations: Vec<Expectation>,
}

/// Told the place of the answer, and what was said, once both are durable.
pub type ThenSaid = Box<dyn FnOnce(Committed, EnvelopeRef) + Send>;

/// Whether an append was refused for what a body gave, and not for what became of the log or of its owner.
pub(crate) fn is_refusal(error: &Error) -> bool {
    use ErrorKind::{
        Conflict, Contract, Denied, Failed, IdempotencyConflict, Malformed, Misuse, NotFound, Reserved, Schema,
        TooLarge, UnknownTopic,
    };
    matches!(
        error.kind(),
        Conflict
            | Contract
            | Denied
            | Failed
            | IdempotencyConflict
            | Malformed
            | Misuse
            | NotFound
            | Reserved
            | Schema
            | TooLarge
            | UnknownTopic
    )
}

/// Where and when a record became durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its place in the store.
    pub pos: u64,
    /// Its time.
    pub at: Millis,
}

/// What a person or a policy says about a step in doubt.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It has happened, and this is what it gave.
    Done(Json),
    /// It has not happened: run it.
    Redo,
    /// Give up on it.
    Fail(Error),
}

/// What a body waits for that comes from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The answer to the question with this key.
    Answer(Arc<str>),
    /// An update of this name.
    Update(Arc<str>),
}

/// What was given from outside. It is a request: the body learns of it by a record of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Its place in the store, or its number where there is none.
    pub pos: u64,
    /// Its time.
    pub at: Millis,
    /// Who gave it.
    pub by: String,
    /// What it says.
    pub value: Json,
    /// The envelope that it stands in.
    pub cause: Option<EnvelopeRef>,
}

/// One envelope to be, without topic and author, which the journal knows.
#[derive(Clone, Debug)]
pub struct Record {
    /// The envelope type.
    pub kind: &'static str,
    /// The scope whose body it answers.
    pub scope: Arc<str>,
    /// The call; empty if it is about the whole scope. The end of an attempt responds to the last start of the key.
    pub key: Arc<str>,
    /// The payload.
    pub payload: Json,
    /// Its schema.
    pub schema: Arc<SchemaUse>,
    /// A value too large for the payload, and the field that it was: an artifact of kind `payload`.
    pub large: Option<(&'static str, Json)>,
    /// Evidence that rides with it; its blobs are stored already.
    pub artifacts: Vec<Artifact>,
    /// What brought it about, unless that is what the journal knows.
    pub cause: Option<Cause>,
    /// The birth header `key` under which the last such record of its topic is found.
    pub keyed: Option<Arc<str>>,
    /// Schemas that the payload names, registered with it.
    pub named: Vec<Arc<SchemaUse>>,
    /// What the work took.
    pub burn: Option<Burn>,
    /// To be refused as [`Cancelled`](crate::ErrorKind::Cancelled) if a cancel was committed before it.
    pub unless_cancelled: bool,
    /// To be refused as [`Denied`](crate::ErrorKind::Denied) besides if one of these threads, by key, was cancelled before it.
    pub threads: Option<Arc<[Arc<str>]>>,
}

/// What a piece of work took, without what the steps that it called took: they have an account of their own.
///
/// ```
/// use neuron::Burn;
/// let reply = Burn { tokens_in: 812, tokens_out: 40, ..Burn::default() };
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burn {
    /// Tokens given to a model.
    pub tokens_in: u64,
    /// Tokens taken from a model.
    pub tokens_out: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Time on a monotonic clock, in milliseconds. The engine measures it: a value that a body gives is not used.
    pub duration_ms: u64,
}

impl std::ops::AddAssign for Burn {
    fn add_assign(&mut self, more: Self) {
        self.tokens_in = self.tokens_in.saturating_add(more.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(more.tokens_out);
        self.tool_calls = self.tool_calls.saturating_add(more.tool_calls);
        self.duration_ms = self.duration_ms.saturating_add(more.duration_ms);
    }
}

impl Record {
    /// A record with a payload of the vocabulary.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the payload has no canonical form.
    pub fn of<W: Message>(scope: &Arc<str>, key: &Arc<str>, word: &W) -> Result<Self, Error> {
        Ok(Self {
            kind: W::TYPE,
            scope: scope.clone(),
            key: key.clone(),
            payload: Json::of(word)?,
            schema: schema::of::<W>()?,
            large: None,
            artifacts: Vec::new(),
            keyed: None,
            named: Vec::new(),
            cause: None,
            burn: None,
            unless_cancelled: false,
            threads: None,
        })
    }

    /// Names a value that the payload leaves out.
    #[must_use]
    pub fn large(mut self, large: Option<(&'static str, Json)>) -> Self {
        self.large = large;
        self
    }
}

/// Splits a value by size: what the payload holds, and what becomes an artifact under the field's name.
pub(crate) fn by_size(field: &'static str, value: Json) -> (Option<Json>, Option<(&'static str, Json)>) {
    if value.len() > limits::INLINE_VALUE_BYTES_MAX {
        (None, Some((field, value)))
    } else {
        (Some(value), None)
    }
}
