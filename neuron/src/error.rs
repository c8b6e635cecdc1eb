//! One opaque error. What a body sees is always its recorded form, so that live and replay agree.

use std::{error::Error as StdError, fmt, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// What a body may fail with: anything that `?` turns into a boxed standard error.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// The result of a body (any boxed error by default) and of this crate's functions (`Result<T, Error>`).
pub type Result<T, E = BoxError> = std::result::Result<T, E>;

/// What is to be done about an [`Error`]; callers branch on this, never on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A body failed with an error of its own.
    Failed,
    /// A body panicked.
    Panicked,
    /// It is unknown whether a `once` step happened; only a ruling settles it.
    InDoubt,
    /// Something this work depends on failed.
    Upstream,
    /// A clearer or a guard refused.
    Denied,
    /// A committed cancel stopped the work.
    Cancelled,
    /// A deadline passed.
    Timeout,
    /// The code no longer asks for what the log has recorded.
    Diverged,
    /// A recorded value does not decode as the present type, and no upcaster is registered.
    ReplayDecode,
    /// The run id stands for a run with another orchestrator or other arguments.
    RunIdConflict,
    /// The call itself is wrong: the code must change.
    Misuse,
    /// A draft, name, number or JSON text breaks its form.
    Malformed,
    /// A value does not match its schema, or a schema is not allowed.
    Schema,
    /// A reserved header key was given by somebody who does not own it.
    Reserved,
    /// The topic was never declared.
    UnknownTopic,
    /// The topic's contract does not allow the operation, or was declared otherwise.
    Contract,
    /// An expectation of an append did not hold; nothing was written.
    Conflict,
    /// The idempotency key stands for other content.
    IdempotencyConflict,
    /// A newer epoch of the owned name exists; this owner may no longer write.
    Fenced,
    /// A bound named in [`limits`](crate::limits) was reached.
    TooLarge,
    /// Another process or program holds the store longer than the limit.
    Busy,
    /// A process that is alive owns the name; its pid is the detail.
    Owned,
    /// The disk is full.
    Full,
    /// The store can only be read.
    ReadOnly,
    /// The file is not a store, or is a store of another root or format.
    NotAStore,
    /// Stored bytes contradict themselves; `verify` tells where.
    Corrupt,
    /// What was asked for is not there.
    NotFound,
    /// The operating system refused.
    Io,
}

/// An error with a kind, a message for the person who reads it, its causes, and a typed detail that survives the log.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Error(Box<Repr>);

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Repr {
    kind: ErrorKind,
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<Value>,
    terminal: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    not_done: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl Error {
    /// A terminal error of `kind`: asking again gives the same.
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self(Box::new(Repr {
            kind,
            message: message.to_string(),
            causes: Vec::new(),
            detail: None,
            terminal: true,
            not_done: false,
            retry_after_ms: None,
        }))
    }

    /// A failure that no retry can mend.
    ///
    /// ```
    /// # use neuron::{Error, ErrorKind};
    /// let gone = Error::terminal("the page is gone").with(&410);
    /// assert_eq!((gone.kind(), gone.detail::<u16>()), (ErrorKind::Failed, Some(410)));
    /// ```
    pub fn terminal(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// A failure worth another attempt, not before `after` has passed.
    pub fn retry_after(after: Duration, message: impl fmt::Display) -> Self {
        let mut error = Self::terminal(message);
        error.0.terminal = false;
        error.0.retry_after_ms = Some(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        error
    }

    /// A failure of a `once` step that is known not to have happened, so that it is not in doubt.
    pub fn not_done(message: impl fmt::Display) -> Self {
        let mut error = Self::terminal(message);
        error.0.terminal = false;
        error.0.not_done = true;
        error
    }

    /// Attaches a typed detail. One that does not serialise is left out.
    #[must_use]
    pub fn with(mut self, detail: &impl Serialize) -> Self {
        self.0.detail = serde_json::to_value(detail).ok();
        self
    }

    /// Puts `context` before the message; the former message becomes the first cause.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        let message = std::mem::replace(&mut self.0.message, context.to_string());
        self.0.causes.insert(0, message);
        self
    }

    /// The typed detail, if one of this shape was attached.
    pub fn detail<T: DeserializeOwned>(&self) -> Option<T> {
        self.0
            .detail
            .clone()
            .and_then(|detail| serde_json::from_value(detail).ok())
    }

    /// What is to be done about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone, without causes.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The causes, outermost first.
    pub fn causes(&self) -> &[String] {
        &self.0.causes
    }

    /// Whether no further attempt is worth making.
    pub fn is_terminal(&self) -> bool {
        self.0.terminal
    }

    /// Whether it is known that the step did not happen.
    pub fn is_not_done(&self) -> bool {
        self.0.not_done
    }

    /// How long to wait before another attempt, if the failure says so.
    pub fn wait(&self) -> Option<Duration> {
        self.0.retry_after_ms.map(Duration::from_millis)
    }

    /// The recorded form of whatever a body returned: ours as it is, any other as a retryable failure with its chain.
    pub fn record(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(foreign) => {
                let mut recorded = Self::terminal(&foreign);
                recorded.0.terminal = false;
                let mut next = foreign.source();
                while let Some(cause) = next {
                    recorded.0.causes.push(cause.to_string());
                    next = cause.source();
                }
                recorded
            }
        }
    }

    /// The same failure, worth another attempt.
    #[must_use]
    pub(crate) fn retryable(mut self) -> Self {
        self.0.terminal = false;
        self
    }

    /// The form of a failure that has become an answer: terminal, whatever it was before.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.0.terminal = true;
        self.0.retry_after_ms = None;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        self.0.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.0.message, self.0.kind)?;
        self.0
            .causes
            .iter()
            .try_for_each(|cause| write!(f, "\n  caused by: {cause}"))
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.0.kind == other.0.kind && self.0.message == other.0.message && self.0.causes == other.0.causes
    }
}

impl StdError for Error {}

impl From<std::io::Error> for Error {
    #[cold]
    fn from(error: std::io::Error) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::StorageFull => ErrorKind::Full,
            std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => ErrorKind::ReadOnly,
            _ => ErrorKind::Io,
        };
        Self::new(kind, error)
    }
}

/// `.terminal()?` on any result: this failure is final, no retry can mend it.
///
/// ```
/// use neuron::Terminal as _;
/// let failed = "x".parse::<u32>().terminal().unwrap_err();
/// assert!(failed.is_terminal());
/// ```
pub trait Terminal<T> {
    /// Turns the failure into a terminal [`Error`].
    ///
    /// # Errors
    /// The same failure, marked final.
    fn terminal(self) -> Result<T, Error>;
}

impl<T, E: Into<BoxError>> Terminal<T> for Result<T, E> {
    fn terminal(self) -> Result<T, Error> {
        self.map_err(|error| Error::record(error.into()).settled())
    }
}
