use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;

use super::{
    given::{given, ruled},
    memory::{Says, State, locked},
};
use crate::{
    Append, Artifact, Author, Cause, Digest, Draft, Envelope, EnvelopeRef, Error, ErrorKind, Expectation, Json, Ledger,
    Millis, Parent, Pattern, Result, SchemaRef, Topic,
    envelope::Reserved,
    ledger::{Found, From, Wanted},
    schema::Upcasters,
    scope::{Burn, Committed, Content, Given, Journal, Record, Ruling, Said, Sought, Then, ThenSaid, Work, panicked},
    store::Select,
    token::{Control, Orders},
    vocabulary::{
        Message as _,
        control::ControlResolved,
        step::{StepArtifact, StepProgressed},
    },
};

/// Where the records of one token, or of one orchestrator's body, go.
#[derive(Clone, Debug)]
pub struct Place {
    /// The topic of the records.
    pub topic: Topic,
    /// Who writes them.
    pub author: Author,
    /// The owned name and the epoch under which every append is made.
    pub owner: (String, u64),
    /// The topics on which orders and rulings for it come: the run's, and the token's own.
    pub control: Vec<Topic>,
    /// The one of these on which its body is answered and asked.
    pub given: Topic,
    /// What the first record names as its cause.
    pub cause: Option<Cause>,
    /// The ephemeral topic on which bodies say how far they are: the run's.
    pub progress: Option<Topic>,
}

/// A [`Journal`] on the ledger.
pub struct LedgerJournal(Arc<Inner>);

pub(super) struct Inner {
    pub(super) ledger: Ledger,
    pub(super) place: Place,
    upcasters: Arc<Upcasters>,
    state: Arc<Mutex<State>>,
}

impl LedgerJournal {
    /// A journal at a place.
    pub fn new(ledger: Ledger, place: Place, upcasters: Arc<Upcasters>) -> Self {
        let state = State {
            cause: place.cause.clone(),
            heads: vec![0; place.control.len()],
            ..State::default()
        };
        Self(Arc::new(Inner {
            ledger,
            place,
            upcasters,
            state: Arc::new(Mutex::new(state)),
        }))
    }
}

impl Inner {
    /// The draft of a record: its payload is the engine's own, so it is trusted to fit its schema.
    pub(super) fn draft(&self, record: Record, large: Option<Artifact>) -> Result<Draft, Error> {
        let mut draft = Draft::new(self.place.topic.clone(), self.place.author.clone(), record.kind)?;
        draft.payload = Some(record.payload);
        draft.payload_schema = Some(record.schema);
        draft.trusted = true;
        draft.artifacts.extend(large);
        draft.artifacts.extend(record.artifacts);
        draft.named.extend(record.named);
        draft.key = record.keyed.map(|key| key.to_string());
        if let Some(burn) = record.burn {
            draft = metered(draft, burn)?;
        }
        let state = locked(&self.state);
        draft.cause = record.cause.or_else(|| state.cause.clone());
        // Of a step's own artifact, the step's start: the scope of a step is its key.
        let within = (record.kind == StepArtifact::TYPE).then_some(&record.scope);
        let start = state.starts.get(&record.key);
        draft.parent = start.or_else(|| state.starts.get(within?)).cloned();
        Ok(draft)
    }

    fn owned(&self, draft: Draft) -> Append {
        let (name, epoch) = &self.place.owner;
        Append::of([draft]).owner(name, *epoch)
    }

    /// Fails if a deferred record was lost: nothing may stand that relies on it.
    pub(super) fn nothing_lost(&self) -> Result<(), Error> {
        locked(&self.state).lost.take().map_or(Ok(()), Err)
    }

    /// Refuses if a cancel stands on a control topic, of all or of one of these threads; else remembers how far they were
    /// read.
    fn orders(&self, within: Option<&[Arc<str>]>) -> Result<Vec<u64>, Error> {
        let mut heads = Vec::with_capacity(self.place.control.len());
        for topic in &self.place.control {
            let orders = self.ledger.fold(&Control::new(topic.clone()), None)?.state;
            let Orders {
                cancelled,
                threads,
                head,
                ..
            } = orders;
            if let Some(because) = cancelled {
                let because = because.map_or_else(String::new, |because| format!(": {because}"));
                return Err(Error::new(
                    ErrorKind::Cancelled,
                    format!("cancelled on {topic}{because}"),
                ));
            }
            let is_cancelled = |thread: &&Arc<str>| threads.get(&***thread).is_some_and(|of| of.cancelled.is_some());
            if let Some(thread) = within.into_iter().flatten().find(is_cancelled) {
                let why = format!("thread {thread} was cancelled on {topic}");
                return Err(Error::new(ErrorKind::Denied, why));
            }
            heads.push(head);
        }
        locked(&self.state).heads.clone_from(&heads);
        Ok(heads)
    }

    async fn commit(self: Arc<Self>, record: Record, then: Then) -> Result<Committed, Error> {
        let large = self.clone().large(&record).await?;
        let then = Arc::new(Mutex::new(Some(then)));
        let (says, key) = (Says::of(&record), record.key.clone());
        loop {
            self.nothing_lost()?;
            let draft = self.draft(record.clone(), large.clone())?;
            let mut append = self.owned(draft);
            if record.unless_cancelled {
                let heads = locked(&self.state).heads.clone();
                for (topic, head) in self.place.control.iter().zip(heads) {
                    append = append.expect(Expectation::Head(topic.clone(), head));
                }
            }
            let (told, state, call) = (then.clone(), self.state.clone(), key.clone());
            append = append.then(move |outcome| {
                let Some(receipt) = outcome.as_ref().ok().and_then(|receipts| receipts.first()) else {
                    return;
                };
                locked(&state).wrote(call, says, Parent::Seq(receipt.seq));
                let then = told.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(then) = then {
                    then(Committed {
                        pos: receipt.pos,
                        at: receipt.at,
                    });
                }
            });
            match self.ledger.append(append).await {
                Ok(receipts) => {
                    let first = receipts.first();
                    let first = first.ok_or_else(|| Error::new(ErrorKind::Corrupt, "the store gave no receipt"))?;
                    return Ok(Committed {
                        pos: first.pos,
                        at: first.at,
                    });
                }
                // An order came in between. Unless it is a cancel, the record is still wanted.
                Err(error) if error.kind() == ErrorKind::Conflict && record.unless_cancelled => {
                    let (this, threads) = (self.clone(), record.threads.clone());
                    blocking(move || this.orders(threads.as_deref())).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Stores the value that the payload leaves out.
    async fn large(self: Arc<Self>, record: &Record) -> Result<Option<Artifact>, Error> {
        let Some((field, value)) = record.large.clone() else {
            return Ok(None);
        };
        let hash = blocking(move || self.ledger.store_blob(value.as_str().as_bytes())).await?;
        Ok(Some(Artifact {
            name: field.into(),
            hash: Some(hash),
            kind: Some("payload".into()),
        }))
    }
}

/// Runs what may block where it stalls no task.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::new(ErrorKind::Io, error))?
}

/// Stamps what the work took, at the boundary.
fn metered(mut draft: Draft, burn: Burn) -> Result<Draft, Error> {
    let meter = Author::new("meter")?;
    let stamps = [
        (Reserved::TokensIn, burn.tokens_in, false),
        (Reserved::TokensOut, burn.tokens_out, false),
        (Reserved::ToolCalls, burn.tool_calls, false),
        (Reserved::DurationMs, burn.duration_ms, true),
    ];
    for (key, value, always) in stamps {
        if value > 0 || always {
            draft = draft.stamp(key, Json::of(&value)?, Some(meter.clone()));
        }
    }
    Ok(draft)
}

impl Journal for LedgerJournal {
    fn append(&self, record: Record, then: Then) -> BoxFuture<'static, Result<Committed, Error>> {
        Box::pin(self.0.clone().commit(record, then))
    }

    fn defer(&self, record: Record) {
        let (says, key, owner) = (Says::of(&record), record.key.clone(), self.0.place.owner.clone());
        let deferred = self
            .0
            .draft(record, None)
            .and_then(|draft| self.0.ledger.defer(Append::of([draft]).owner(owner.0, owner.1)));
        match deferred {
            Ok(handles) => {
                for handle in handles {
                    locked(&self.0.state).wrote(key.clone(), says, Parent::Deferred(handle));
                }
            }
            Err(error) => {
                tracing::warn!(%error, topic = %self.0.place.topic, "a deferred record was refused");
                locked(&self.0.state).lost.get_or_insert(error);
            }
        }
    }

    fn begun(&self, key: Arc<str>, seq: u64) {
        locked(&self.0.state).starts.insert(key, Parent::Seq(seq));
    }

    fn now(&self) -> Millis {
        self.0.ledger.clock().now()
    }

    fn ruling(&self, key: &str, pos: u64) -> BoxFuture<'static, Result<Ruling, Error>> {
        let (this, key) = (self.0.clone(), key.to_owned());
        Box::pin(async move {
            let wait = |topic: &Topic| {
                let subscription = this.ledger.subscribe(Pattern::exactly(topic), From::After(pos));
                let key = key.clone();
                Box::pin(async move {
                    let mut subscription = subscription?;
                    let mut last = None;
                    loop {
                        // Of several that stand already the last counts: a person may have corrected the first.
                        let next = match subscription.try_next()? {
                            Some(envelope) => envelope,
                            None => match last.take() {
                                Some(resolved) => return Ok(ruled(resolved)),
                                None => subscription.next().await?,
                            },
                        };
                        let resolved = ControlResolved::read(&next)?.filter(|resolved| resolved.key == key);
                        last = resolved.or(last);
                    }
                })
            };
            let waits: Vec<_> = this.place.control.iter().map(wait).collect();
            if waits.is_empty() {
                return std::future::pending().await;
            }
            futures::future::select_all(waits).await.0
        })
    }

    fn given(&self, wanted: Sought, pos: u64) -> BoxFuture<'static, Result<Given, Error>> {
        let this = self.0.clone();
        Box::pin(async move {
            // Of one topic, so that what is first is never in question.
            let topic = Pattern::exactly(&this.place.given);
            let mut requests = this.ledger.subscribe(topic, From::After(pos))?;
            loop {
                let envelope = match requests.try_next()? {
                    Some(envelope) => envelope,
                    None => requests.next().await?,
                };
                if let Some(given) = given(&envelope, &wanted)? {
                    return Ok(given);
                }
            }
        })
    }

    fn stands(&self, wanted: Sought, pos: u64) -> BoxFuture<'static, Result<Option<Given>, Error>> {
        let this = self.0.clone();
        Box::pin(blocking(move || {
            let topic = Select::Topic(this.place.given.clone());
            for envelope in this.ledger.read(topic).from(pos.saturating_add(1)).envelopes() {
                if let Some(given) = given(&envelope?, &wanted)? {
                    return Ok(Some(given));
                }
            }
            Ok(None)
        }))
    }

    fn store(&self, mut content: Content) -> BoxFuture<'static, Result<Result<Digest, Error>, Error>> {
        let ledger = self.0.ledger.clone();
        Box::pin(async move {
            let stored = tokio::task::spawn_blocking(move || {
                let stored = ledger.store_blob(&mut content);
                content.judge(stored)
            });
            match stored.await {
                Ok(stored) => stored,
                // The reader is the body's own, and so is its panic.
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => Ok(Err(panicked(panic.as_ref()))),
                    Err(error) => Err(Error::new(ErrorKind::Io, error)),
                },
            }
        })
    }

    fn emit(&self, said: Said, answer: Record, then: ThenSaid) -> BoxFuture<'static, Result<Result<(), Error>, Error>> {
        Box::pin(self.0.clone().say(said, answer, then))
    }

    fn transact(&self, work: Work, answer: Record, then: Then) -> BoxFuture<'static, Result<Result<(), Error>, Error>> {
        Box::pin(self.0.clone().transact(work, answer, then))
    }

    fn wait(
        &self,
        wanted: Wanted,
        timer: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, Result<Result<Option<Found>, Error>, Error>> {
        let ledger = self.0.ledger.clone();
        Box::pin(async move { ledger.wait(&wanted, timer).await })
    }

    fn envelope(&self, reference: &EnvelopeRef) -> Result<Envelope, Error> {
        self.0.ledger.written(reference)
    }

    fn progress(&self, progress: StepProgressed) {
        let Some(topic) = self.0.place.progress.clone() else {
            return;
        };
        let draft = progress.draft(topic, self.0.place.author.clone());
        if let Err(error) = draft.and_then(|draft| self.0.ledger.bus().publish(draft)) {
            // Losing it is no loss of data, and no reason for a step to end.
            tracing::debug!(%error, "a body's progress was not told");
        }
    }

    fn upcast(&self, value: Json, from: SchemaRef, to: SchemaRef) -> Result<Json, Error> {
        Json::of(&self.0.upcasters.upcast(value.to_value(), from, to)?)
    }
}

impl fmt::Debug for LedgerJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerJournal")
            .field("topic", &self.0.place.topic)
            .finish_non_exhaustive()
    }
}
