//! Which envelopes are meant, as data that stands on the log.

use std::{cell::OnceCell, collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Envelope, Kind, bounded};
use crate::{Error, ErrorKind, Json, Pattern, Result, Topic, limits};

/// Which envelopes a body waits for: by topic, type, birth headers and payload. All that it names must hold.
///
/// It is data, since it stands on the log. What is wrong with it is told by the call that it is given to.
///
/// ```
/// use neuron::Filter;
///
/// let approved = Filter::on("approvals.*")
///     .of_type("order.approved")
///     .header("region", &"eu")
///     .payload("/order", &7);
/// assert_eq!(approved.pattern().as_str(), "approvals.*");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// Which topics.
    pattern: Pattern,
    /// Which types; empty = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    types: Vec<Kind>,
    /// Birth headers whose last value is exactly this.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, Json>,
    /// What the payload holds at JSON pointers; the empty pointer is the whole of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    payload: BTreeMap<String, Json>,
    /// Only after this `pos`; absent = after the run's creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    /// The first thing that is wrong with it.
    #[serde(skip)]
    #[schemars(skip)]
    fault: Option<Error>,
}

impl Filter {
    /// Everything on a topic, or on the topics of a pattern.
    ///
    /// ```
    /// # use neuron::{Filter, Topic};
    /// let topic = Topic::new("approvals.eu").unwrap();
    /// assert_eq!(Filter::on(&topic), Filter::on("approvals.eu"));
    /// ```
    pub fn on(topics: impl fmt::Display) -> Self {
        let (pattern, fault) = match Pattern::new(topics.to_string()) {
            Ok(pattern) => (pattern, None),
            Err(error) => (Pattern::all(), Some(error)),
        };
        Self {
            pattern,
            types: Vec::new(),
            headers: BTreeMap::new(),
            payload: BTreeMap::new(),
            after: None,
            fault,
        }
    }

    /// Only of this type; called again, of any of them.
    #[must_use]
    pub fn of_type(mut self, kind: &str) -> Self {
        match Kind::new(kind) {
            Ok(kind) if self.types.contains(&kind) => {}
            Ok(kind) => {
                self.types.push(kind);
                self.types.sort_by(|one, other| one.as_str().cmp(other.as_str()));
            }
            Err(error) => self.blame(error),
        }
        self
    }

    /// Only with a birth header `key` whose last value is exactly this. What is injected later counts nowhere.
    #[must_use]
    pub fn header<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        let value = bounded("header key", key).and_then(|()| Json::of(value));
        match value {
            Ok(value) => drop(self.headers.insert(key.into(), value)),
            Err(error) => self.blame(error.context(format!("header `{key}` of a filter"))),
        }
        self
    }

    /// Only with exactly this value at a JSON pointer (RFC 6901) into the payload; `""` points to the whole payload.
    #[must_use]
    pub fn payload<T: Serialize + ?Sized>(mut self, pointer: &str, value: &T) -> Self {
        let value = pointed(pointer).and_then(|()| Json::of(value));
        match value {
            Ok(value) => drop(self.payload.insert(pointer.into(), value)),
            Err(error) => self.blame(error.context(format!("payload at `{pointer}` of a filter"))),
        }
        self
    }

    /// Only after the envelope at this `pos` of the store. A body that waits has else all since its run was created.
    #[must_use]
    pub fn after(mut self, pos: u64) -> Self {
        self.after = Some(pos);
        self
    }

    /// Which topics.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Whether an envelope is meant. Its place is not asked for.
    ///
    /// ```
    /// # use neuron::{Author, Draft, Envelope, Filter, Ledger};
    /// fn is_mine(envelope: &Envelope) -> bool {
    ///     Filter::on("approvals").payload("/order", &7).matches(envelope)
    /// }
    /// ```
    pub fn matches(&self, envelope: &Envelope) -> bool {
        self.pattern.matches(&envelope.topic) && self.selects(envelope, &OnceCell::new())
    }

    /// As [`matches`](Self::matches), of an envelope whose topic matches; its payload is parsed once for many filters.
    pub(crate) fn selects(&self, envelope: &Envelope, payload: &OnceCell<Value>) -> bool {
        let carries = |(key, value): (&String, &Json)| envelope.headers.current(key) == Some(value);
        (self.types.is_empty() || self.types.contains(&envelope.body.kind))
            && self.headers.iter().all(carries)
            && (self.payload.is_empty() || self.reads(envelope, payload))
    }

    fn reads(&self, envelope: &Envelope, payload: &OnceCell<Value>) -> bool {
        let Some(json) = &envelope.body.payload else {
            return false;
        };
        let payload = payload.get_or_init(|| json.to_value());
        self.payload.iter().all(|(pointer, wanted)| {
            let found = payload.pointer(pointer).map(Json::of);
            found.is_some_and(|found| found.is_ok_and(|found| found == *wanted))
        })
    }

    /// The `pos` after which it begins, if it names one.
    pub(crate) fn begins_after(&self) -> Option<u64> {
        self.after
    }

    /// Says what is wrong with it.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for a pattern, type, header or pointer that is none, or a value without canonical form;
    /// [`ErrorKind::TooLarge`] for one above [`limits::FILTER_BYTES_MAX`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let (bytes, max) = (Json::of(self)?.len(), limits::FILTER_BYTES_MAX);
        if bytes > max {
            let why =
                format!("a filter has {bytes} bytes, {max} are allowed: wait for a value that names the large one");
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        Ok(())
    }

    fn blame(&mut self, error: Error) {
        self.fault.get_or_insert(error);
    }
}

impl Eq for Filter {}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pattern)?;
        let types: Vec<&str> = self.types.iter().map(Kind::as_str).collect();
        if !types.is_empty() {
            write!(f, ": {}", types.join(" or "))?;
        }
        for (key, value) in &self.headers {
            write!(f, ", {key} = {value}")?;
        }
        for (pointer, value) in &self.payload {
            let pointer = if pointer.is_empty() { "payload" } else { pointer };
            write!(f, ", {pointer} = {value}")?;
        }
        match self.after {
            Some(pos) => write!(f, ", after pos {pos}"),
            None => Ok(()),
        }
    }
}

impl From<&str> for Filter {
    fn from(topics: &str) -> Self {
        Self::on(topics)
    }
}

impl From<&Topic> for Filter {
    fn from(topic: &Topic) -> Self {
        Self::on(topic)
    }
}

impl From<&Pattern> for Filter {
    fn from(topics: &Pattern) -> Self {
        Self::on(topics)
    }
}

/// Refuses what is no JSON pointer.
fn pointed(pointer: &str) -> Result<(), Error> {
    let escaped = |rest: &str| rest.starts_with(['0', '1']);
    if (pointer.is_empty() || pointer.starts_with('/')) && pointer.split('~').skip(1).all(escaped) {
        return Ok(());
    }
    let why = "a JSON pointer is empty or begins with `/`, and `~` stands only in `~0` and `~1`";
    Err(Error::new(ErrorKind::Malformed, why))
}
