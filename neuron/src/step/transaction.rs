use std::{
    future::ready,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use serde::Serialize;

use super::{Cx, builtin::stop, halt::held};
use crate::{
    Error, ErrorKind, Json, Payload, Result, Transaction,
    def::{Context as _, recorded},
    limits,
    scope::{Answer, Ask, Manner, Record, Scope, Then, Work, panicked},
    vocabulary::step::{TransactionCommitted, TransactionFailed},
};

const TRANSACTION: &str = "$transaction";

impl Cx {
    /// Runs SQL on tables of the program's own, which stand in the file of the store, in the very commit that records its
    /// answer: the change and the answer are both there, or neither. So it happens exactly once, whatever crashes, and a
    /// replay is given the answer and runs nothing.
    ///
    /// `body` runs on another thread while nobody else writes to the store, so it takes what it needs along and does no
    /// other work: it has [`TRANSACTION_TIME_MAX`](crate::limits::TRANSACTION_TIME_MAX). What it gives is at most
    /// [`INLINE_VALUE_BYTES_MAX`](crate::limits::INLINE_VALUE_BYTES_MAX) long. If it fails or panics, nothing of it stands.
    /// It is known by its place among the transactions of this body, not by what it does.
    ///
    /// Once begun it is not called off: whoever lets go of it, a timeout too, waits for its commit.
    ///
    /// In a step it holds for later attempts of the step. A failure that is not terminal does not: if the step is attempted
    /// again, `body` runs again.
    ///
    /// ```
    /// use neuron::{Cx, Result, step};
    ///
    /// /// Books a seat; how many are taken by now.
    /// #[step(retry(3))]
    /// async fn book(cx: &Cx, seat: String) -> Result<u64> {
    ///     let taken = cx.transaction(move |tx| {
    ///         tx.execute("CREATE TABLE IF NOT EXISTS booking (seat TEXT PRIMARY KEY)", ())?;
    ///         tx.execute("INSERT INTO booking (seat) VALUES (?1)", [seat])?;
    ///         Ok(tx.query_one("SELECT count(*) FROM booking", ())?.unwrap_or(0))
    ///     });
    ///     Ok(taken.await?)
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// // A plain test has no file, and so no tables.
    /// let refused = book(&neuron::test(), "12a".into()).await.unwrap_err();
    /// assert_eq!(refused.kind(), neuron::ErrorKind::Misuse);
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `body` gives, and a replay is told the same. [`ErrorKind::Timeout`], after which a step may be attempted again;
    /// [`ErrorKind::TooLarge`]; [`ErrorKind::Conflict`] for a deferred foreign key that does not hold at the commit;
    /// [`ErrorKind::Denied`] for a table that refers to one of the store's; [`ErrorKind::Misuse`] on a store in memory.
    pub fn transaction<T, F>(&self, body: F) -> Answer<'_, T>
    where
        T: Payload,
        F: FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    {
        Answer::new(transaction(self.scope(), body))
    }
}

/// What a transaction is known by, besides its place.
#[derive(Serialize)]
struct Args<'a> {
    /// The failed one that it comes after, in a later attempt of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a str>,
}

/// The key of a transaction that is made now.
fn key(scope: &Scope) -> Result<Arc<str>, Error> {
    let mut key = scope.claim(TRANSACTION, &Json::of(&Args { after: None })?)?;
    // Nothing of a failure stands, so another attempt may do better.
    while scope.manner() == Manner::Free
        && let Some(Err(error)) = scope.recorded(&key)
        && !error.is_terminal()
    {
        let args = Json::of(&Args { after: Some(&key) })?;
        key = scope.claim(TRANSACTION, &args)?;
    }
    Ok(key)
}

fn transaction<T: Payload>(
    scope: &Arc<Scope>,
    body: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
) -> Result<Ask, Error> {
    let key = key(scope)?;
    let transacting = Transacting {
        home: scope.clone(),
        key: key.clone(),
        told: Arc::default(),
    };
    let start = move |mut hold| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let home = transacting.home.clone();
            if held(&mut hold, ready(())).await.is_err() {
                return;
            }
            // Nobody calls it off once it is with the store: an attempt that was not told that it stands would do it again.
            if let Err(error) = transacting.run(body).await {
                stop(&home, error);
            }
        })
    };
    Ok(Ask::new(scope, key, Box::new(start)))
}

struct Transacting {
    home: Arc<Scope>,
    key: Arc<str>,
    /// What the body gave, once it has run.
    told: Arc<Mutex<Option<Result<Json, Error>>>>,
}

impl Transacting {
    async fn run<T: Payload>(
        self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<(), Error> {
        let journal = self.home.runtime().journal().clone();
        let mut committed = TransactionCommitted {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: TRANSACTION.into(),
            output: Json::null(),
        };
        let answer = Record::of(self.home.id(), &self.key, &committed)?;
        let told = self.told.clone();
        let work: Work = Box::new(move |tx| {
            let output = catch_unwind(AssertUnwindSafe(|| recorded(body(tx)).and_then(|value| output(&value))));
            let output = output.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(output.clone());
            // Of what kind its failure is matters to the caller alone: the log is in order.
            committed.output = output.map_err(|_| Error::terminal("the body of a transaction has failed"))?;
            Json::of(&committed)
        });
        let (home, key, told) = (self.home.clone(), self.key.clone(), self.told.clone());
        let hand_over: Then = Box::new(move |place| {
            let output = told.lock().unwrap_or_else(PoisonError::into_inner).take();
            home.answer(&key, TRANSACTION, place, output.unwrap_or_else(|| Ok(Json::null())));
        });
        match journal.transact(work, answer, hand_over).await? {
            Ok(()) => Ok(()),
            Err(refusal) => self.failed(refusal).await,
        }
    }

    /// Nothing of it stands; why is the answer.
    async fn failed(self, refusal: Error) -> Result<(), Error> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).take();
        let error = told.and_then(Result::err).unwrap_or(refusal);
        // What a step was told is no answer to its next attempt unless it is terminal; to any other body it is.
        let error = if self.home.manner() == Manner::Replayed {
            error.settled()
        } else {
            error
        };
        let failed = TransactionFailed {
            scope: self.home.id().to_string(),
            key: self.key.to_string(),
            name: TRANSACTION.into(),
            error: error.clone(),
        };
        let record = Record::of(self.home.id(), &self.key, &failed)?;
        let journal = self.home.runtime().journal().clone();
        let hand_over: Then = Box::new(move |place| self.home.answer(&self.key, TRANSACTION, place, Err(error)));
        journal.append(record, hand_over).await?;
        Ok(())
    }
}

/// The recorded form of what a body gave.
fn output(value: &impl Serialize) -> Result<Json, Error> {
    let (output, max) = (Json::of(value)?, limits::INLINE_VALUE_BYTES_MAX);
    if output.len() > max {
        let why = format!(
            "a transaction gives {} bytes, more than {max}, which nobody can write meanwhile: give what names them",
            output.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, why));
    }
    Ok(output)
}
