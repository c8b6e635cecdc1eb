use std::{
    any::TypeId,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures::future::BoxFuture;

use super::Ran;
use crate::{
    Error, Json, Result,
    plan::{Input, Outline, Row, Written},
    scope::{Scope, panicked},
    vocabulary::orchestration::{Claims, Expected},
};

/// What an attribute says about a function: a table, filled at compile time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Meta {
    /// `step`, `agent` or `orchestrator`.
    pub kind: &'static str,
    /// The name on the log and of the tool.
    pub name: &'static str,
    /// The names it had before: what was recorded under them is its own.
    pub was: &'static [&'static str],
    /// The doc comment.
    pub doc: &'static str,
    /// Where it is written.
    pub file: &'static str,
    /// Where it is written, from 1.
    pub line: u32,
    /// The parameters after the context, in order.
    pub params: &'static [Param],
    /// Resources that are shared or counted.
    pub uses: &'static [(&'static str, u32)],
    /// Resources that are held alone.
    pub owns: &'static [&'static str],
    /// What one run is expected to take.
    pub estimate: Option<Expected>,
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// Wait before the second attempt in milliseconds, which doubles from one attempt to the next; 0 for the engine's own.
    pub backoff_ms: u64,
    /// Which failures are tried again, of those that are not terminal; all, if nobody says.
    pub retry_on: Option<RetryOn>,
    /// The longest an attempt may take, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Whether it must never happen twice.
    pub once: bool,
    /// Whether equal work of several packages may be done for all of them at once.
    pub share: bool,
    /// The step that finds out whether a `once` step in doubt has happened.
    pub resolve: Option<Resolver>,
    /// Writes the plan that an agent declares.
    pub outline: Option<Outliner>,
}

/// Says whether another attempt is worth making after this failure.
pub type RetryOn = fn(&Error) -> bool;

/// A failure as `retry_on` judges it: terminal, if nothing is to be tried again.
pub(crate) fn judged(retry_on: Option<RetryOn>, error: Error) -> Error {
    let Some(retry_on) = retry_on.filter(|_| !error.is_terminal()) else {
        return error;
    };
    match catch_unwind(AssertUnwindSafe(|| retry_on(&error))) {
        Ok(true) => error,
        Ok(false) => error.settled(),
        Err(panic) => {
            let panic = panicked(panic.as_ref());
            error
                .settled()
                .context(format!("the function that says whether it is tried again {panic}"))
        }
    }
}

/// Writes an agent's plan for the given inputs; `None` while it reads a value that is still to come.
pub type Outliner = fn(&[Input]) -> Result<Option<Written>, Error>;

/// The body of a definition on in-memory arguments, in a scope; not yet polled.
pub type Run = fn(Arc<Scope>, Json) -> BoxFuture<'static, Result<Ran, Error>>;

/// The step that finds out whether another has happened.
#[derive(Clone, Copy, Debug)]
pub struct Resolver {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    pub(crate) args: fn() -> TypeId,
    pub(crate) output: fn() -> TypeId,
}

/// One parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) ignored: bool,
}

impl Param {
    /// A parameter and its doc comment.
    pub const fn new(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            doc,
            ignored: false,
        }
    }

    /// Recorded, but no part of a call's identity.
    #[must_use]
    pub const fn ignored(self) -> Self {
        Self { ignored: true, ..self }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its doc comment.
    pub const fn doc(&self) -> &'static str {
        self.doc
    }
}

impl Meta {
    /// A definition without options: one attempt, no claims.
    pub const fn new(
        kind: &'static str,
        name: &'static str,
        doc: &'static str,
        file: &'static str,
        line: u32,
        params: &'static [Param],
    ) -> Self {
        Self {
            kind,
            name,
            was: &[],
            doc,
            file,
            line,
            params,
            uses: &[],
            owns: &[],
            estimate: None,
            attempts: 1,
            backoff_ms: 0,
            retry_on: None,
            timeout_ms: None,
            once: false,
            share: false,
            resolve: None,
            outline: None,
        }
    }

    /// Another name than the function's.
    #[must_use]
    pub const fn name(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The names it had before.
    #[must_use]
    pub const fn was(self, was: &'static [&'static str]) -> Self {
        Self { was, ..self }
    }

    /// Whether this is its name, or one that it had before.
    ///
    /// ```
    /// # use neuron::def::Meta;
    /// let fetch = Meta::new("step", "fetch", "", "pages.rs", 1, &[]).was(&["get_page"]);
    /// assert!(fetch.is_called("fetch") && fetch.is_called("get_page") && !fetch.is_called("get"));
    /// ```
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.was.contains(&name)
    }

    /// Resources that are shared or counted, with how many of each.
    #[must_use]
    pub const fn uses(self, uses: &'static [(&'static str, u32)]) -> Self {
        Self { uses, ..self }
    }

    /// Resources that are held alone.
    #[must_use]
    pub const fn owns(self, owns: &'static [&'static str]) -> Self {
        Self { owns, ..self }
    }

    /// What one run is expected to take; what is not known is 0.
    #[must_use]
    pub const fn estimate(self, tokens: u64, seconds: u64, tool_calls: u64) -> Self {
        let estimate = Some(Expected {
            tokens,
            seconds,
            tool_calls,
        });
        Self { estimate, ..self }
    }

    /// At most `max` attempts, the second not before `backoff_ms` have passed, each further one twice as late; 0 for
    /// waits that begin at [`BACKOFF_MIN`](crate::limits::BACKOFF_MIN) and are spread by the call's key.
    #[must_use]
    pub const fn retry(self, max: u32, backoff_ms: u64) -> Self {
        Self {
            attempts: if max == 0 { 1 } else { max },
            backoff_ms,
            ..self
        }
    }

    /// Only after failures of which this is true is another attempt made, and never after a terminal one. It is asked once
    /// for each attempt but the last, and not by a replay. If it panics, that was the last.
    ///
    /// ```
    /// # use neuron::{Error, ErrorKind, def::Meta};
    /// fn passes(error: &Error) -> bool {
    ///     error.kind() == ErrorKind::Timeout
    /// }
    /// let fetch = Meta::new("step", "fetch", "", "pages.rs", 1, &[]).retry(3, 0).retry_on(passes);
    /// assert!(fetch.retry_on.is_some());
    /// ```
    #[must_use]
    pub const fn retry_on(self, retry_on: RetryOn) -> Self {
        Self {
            retry_on: Some(retry_on),
            ..self
        }
    }

    /// The longest an attempt may take.
    #[must_use]
    pub const fn timeout_ms(self, timeout_ms: u64) -> Self {
        Self {
            timeout_ms: Some(timeout_ms),
            ..self
        }
    }

    /// It must never happen twice.
    #[must_use]
    pub const fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Equal work of several packages may be done for all of them at once.
    #[must_use]
    pub const fn share(self) -> Self {
        Self { share: true, ..self }
    }

    /// Writes the plan that an agent declares.
    #[must_use]
    pub const fn plan(self, outline: Outliner) -> Self {
        Self {
            outline: Some(outline),
            ..self
        }
    }

    /// The row that a plan declares for it.
    pub(crate) fn row(&self, inputs: Vec<Input>) -> Row {
        let Claims { uses, owns, .. } = self.claims();
        Row {
            step: self.name.into(),
            inputs,
            when: None,
            after: Vec::new(),
            each: false,
            at_once: None,
            uses,
            owns,
            once: self.once,
            share: self.share,
            estimate: self.estimate,
        }
    }

    /// The plan of an agent that has none: one opaque step, of which its attribute says all that is known.
    pub fn opaque(&self) -> Outline {
        let inputs = (0..self.params.len()).map(Input::Param).collect();
        Outline {
            rows: vec![self.row(inputs)],
            result: Input::Wire(0),
        }
    }

    /// What it asks for while it runs.
    pub fn claims(&self) -> Claims {
        Claims {
            uses: self
                .uses
                .iter()
                .map(|&(resource, count)| (resource.into(), count))
                .collect(),
            owns: self.owns.iter().map(|&resource| resource.into()).collect(),
            once: self.once.then(|| self.name.into()).into_iter().collect(),
        }
    }

    /// Whether it claims a resource or must never happen twice: what clearance has to know in advance.
    pub const fn is_guarded(&self) -> bool {
        self.once || !self.uses.is_empty() || !self.owns.is_empty()
    }
}
